"""GPU kernels (Triton) behind the plain torch code of noise, solvers and models, and when they are used."""
