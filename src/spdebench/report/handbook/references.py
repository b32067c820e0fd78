"""Literature on each equation and each model."""

from __future__ import annotations

BENCHMARK = (
    "Y. Zhu et al., *SPDEBench: An Extensive Benchmark for Learning Stochastic PDEs* (the paper, "
    "arXiv:2505.18511; data: doi 10.57967/hf/8682)"
)
WALSH = (
    "J. B. Walsh, *An introduction to stochastic partial differential equations*, Lecture Notes in Mathematics 1180 "
    "(1986) 265-439"
)
QUANTISATION = "G. Parisi, Y.-S. Wu, *Perturbation theory without gauge fixing*, Scientia Sinica 24 (1981) 483-496"
NEURAL_SPDE = (
    "C. Salvi, M. Lemercier, A. Gerasimovics, *Neural stochastic PDEs: resolution-invariant learning of continuous "
    "spatiotemporal dynamics*, NeurIPS 2022, arXiv:2110.10249"
)

OF_EQUATIONS: dict[str, tuple[str, ...]] = {
    "allen_cahn": (
        "S. M. Allen, J. W. Cahn, *A microscopic theory for antiphase boundary motion and its application to antiphase "
        "domain coarsening*, Acta Metallurgica 27 (1979) 1085-1095",
        "T. Funaki, *The scaling limit for a stochastic PDE and the separation of phases*, Probability Theory and "
        "Related Fields 102 (1995) 221-288",
    ),
    "burgers": (
        "L. Bertini, N. Cancrini, G. Jona-Lasinio, *The stochastic Burgers equation*, Communications in Mathematical "
        "Physics 165 (1994) 211-232",
        "G. Da Prato, A. Debussche, R. Temam, *Stochastic Burgers' equation*, NoDEA 1 (1994) 389-402",
    ),
    "heat": (WALSH,),
    "kdv": (
        "A. de Bouard, A. Debussche, *On the stochastic Korteweg-de Vries equation*, Journal of Functional Analysis "
        "154 (1998) 215-251",
    ),
    "kpz": (
        "M. Kardar, G. Parisi, Y.-C. Zhang, *Dynamic scaling of growing interfaces*, Physical Review Letters 56 (1986) "
        "889-892",
        "M. Hairer, *Solving the KPZ equation*, Annals of Mathematics 178 (2013) 559-664",
    ),
    "ks": (
        "Y. Kuramoto, T. Tsuzuki, *Persistent propagation of concentration waves in dissipative media far from thermal "
        "equilibrium*, Progress of Theoretical Physics 55 (1976) 356-369",
        "P. Gao, H. D. Nguyen, *Exponential mixing for the stochastic Kuramoto-Sivashinsky equation on the 1D torus*, "
        "2025, arXiv:2508.01794",
    ),
    "nse": (
        "F. Flandoli, D. Gatarek, *Martingale and stationary solutions for stochastic Navier-Stokes equations*, "
        "Probability Theory and Related Fields 102 (1995)",
        "M. Hairer, J. C. Mattingly, *Ergodicity of the 2D Navier-Stokes equations with degenerate stochastic "
        "forcing*, Annals of Mathematics 164 (2006) 993-1032",
    ),
    "phi41": (QUANTISATION,),
    "phi42": (
        QUANTISATION,
        "G. Da Prato, A. Debussche, *Strong solutions to the stochastic quantization equations*, Annals of Probability "
        "31 (2003) 1900-1916",
    ),
    "phi43": (
        "M. Hairer, *A theory of regularity structures*, Inventiones Mathematicae 198 (2014) 269-504",
        "R. Zhu, X. Zhu, *Lattice approximation to the dynamical Phi^4_3 model*, 2018, arXiv:1508.05613",
    ),
    "wave": (WALSH,),
}

OF_MODELS: dict[str, tuple[str, ...]] = {
    "deeponet": (
        "L. Lu, P. Jin, G. Pang, Z. Zhang, G. E. Karniadakis, *Learning nonlinear operators via DeepONet based on the "
        "universal approximation theorem of operators*, Nature Machine Intelligence 3 (2021) 218-229",
    ),
    "dlr-net": (
        "S. Gong et al., *Deep latent regularity network for modeling stochastic partial differential equations*, "
        "AAAI 2023, 7740-7747",
    ),
    "flow-fno": (
        "Y. Lipman, R. T. Q. Chen, H. Ben-Hamu, M. Nickel, M. Le, *Flow matching for generative modeling*, ICLR 2023, "
        "arXiv:2210.02747",
        "G. Kerrigan, G. Migliorini, P. Smyth, *Functional flow matching*, 2023, arXiv:2305.17209",
    ),
    "fno": (
        "Z. Li et al., *Fourier neural operator for parametric partial differential equations*, ICLR 2021, "
        "arXiv:2010.08895",
    ),
    "gt": ("S. Cao, *Choose a transformer: Fourier or Galerkin*, NeurIPS 2021, arXiv:2105.14995",),
    "ncde": (
        "P. Kidger, J. Morrill, J. Foster, T. Lyons, *Neural controlled differential equations for irregular time "
        "series*, NeurIPS 2020, arXiv:2005.08926",
    ),
    "ncde-fno": (NEURAL_SPDE,),
    "nors": (
        "P. Hu et al., *Neural operator with regularity structure for modeling dynamics driven by SPDEs*, 2022, "
        "arXiv:2204.06255",
    ),
    "nrde": (
        "J. Morrill, C. Salvi, P. Kidger, J. Foster, *Neural rough differential equations for long time "
        "series*, ICML 2021, arXiv:2009.08295",
    ),
    "nspde": (NEURAL_SPDE,),
    "nspde-s": (BENCHMARK, NEURAL_SPDE),
    "wno": (
        "T. Tripura, S. Chakraborty, *Wavelet neural operator for solving parametric partial differential equations in "
        "computational mechanics problems*, Computer Methods in Applied Mechanics and Engineering 404 (2023) 115783",
    ),
}
