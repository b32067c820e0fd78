"""NSPDE-S:  u = R( 2 sigmoid(|a(t)|/a_max) z ),  z the latent field of NSPDE, a(t) the renormalisation constant.

(The paper's own model, appendix "Model".) a(t) depends only on the equation and its J and not on solutions.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from spdebench.equations import Equation, renormalise
from spdebench.errors import UserError
from spdebench.models.base import Features
from spdebench.models.nspde import NSPDE, NSPDEConfig
from spdebench.noise import Wiener
from spdebench.tasks import Batch, Setting


class NSPDES(NSPDE, name="nspde-s"):
    """NSPDE whose latent field is multiplied by a function of the renormalisation constant.

    It has as many parameters as NSPDE.

    a(t) is that of each sample's own equation (`constant`), one number per frame, so training data with several J can
    be mixed. It is divided by its largest value in the training part, so that the factor lies between 1 and 1.46 there;
    test data with a larger J have larger factors. This is our reading of "normalised" and "fixed on the training split"
    in the paper. The authors' code uses a Monte-Carlo estimate of X^2 over all samples, including the test part,
    without normalisation, and its loops exchange a and u, so that it learns a from a factor made of the solution. Here
    u is learned.
    """

    title = "NSPDE-S"
    dims = (1, 2)
    needs_equation = True

    largest: Tensor

    @classmethod
    def supports(cls, setting: Setting) -> None:
        super().supports(setting)
        eq = setting.equation
        assert eq is not None
        if eq.order != 1 or eq.multiplicative or eq.symbol(eq.grid).is_complex():
            raise UserError(
                f"model '{cls.name}' needs the variance of the linear solution, which is known for equations of first "
                f"order in time with additive noise and without dispersion; this is {setting.label}. Use nspde instead"
            )

    def __init__(self, setting: Setting, config: NSPDEConfig) -> None:
        super().__init__(setting, config)
        self.register_buffer("largest", torch.ones(()))

    def prepare(self, batch: Batch) -> Features:
        known = batch.equations or (self.setting.equation,)
        table = torch.stack([constant(eq, self.setting.times) for eq in known if eq is not None]).to(batch.dw)
        source = batch.source if batch.source is not None else torch.zeros(len(batch), dtype=torch.long)
        return {**super().prepare(batch), "renorm": table[source.to(table.device)]}

    def calibrate(self, features: Features, target: Tensor) -> None:
        super().calibrate(features, target)
        if (largest := features["renorm"].abs().max()) > 0:
            self.largest.copy_(largest)

    def forward(self, features: Features) -> Tensor:
        z = self.latent(features["dw"], features["u0"])
        factor = 2 * torch.sigmoid(features["renorm"].abs() / self.largest)  # (B, T)
        return self.decode(z * factor.T.reshape(len(z), *(1,) * self.setting.dim, -1, 1))


@functools.lru_cache(maxsize=64)
def constant(eq: Equation, times: tuple[float, ...]) -> Tensor:
    """a(t) = E X^2, X the linear solution from 0, at the given times, float64.

    For phi42 it is the paper's sum over 0 < |k| <= J (`ball_variance`), which its data use too. With
    renormalisation=exact, and for equations without such a constant, it is `linear_variance`.
    """
    t = torch.tensor(times, dtype=torch.float64)
    if eq.name == "phi42" and getattr(eq, "renormalisation", "") != "exact":
        return renormalise.ball_variance(eq, t)  # type: ignore[arg-type]
    return linear_variance(eq, t)


def linear_variance(eq: Equation, times: Tensor) -> Tensor:
    """E X^2 = sigma^2 sum_k w_k E|dW_k|^2/dt (1 - e^{-2 l_k t})/(2 l_k), l = -L(k), averaged over space.

    This holds for any basis, boundary and covariance: |dW_k|^2 is summed over the basis functions of the noise, as they
    appear on the solver's grid.
    """
    grid = eq.solving_grid
    noise = Wiener(eq.series(), eq.eigenvalue_roots(), grid, eq.edition == "converged")
    power = torch.zeros(grid.spectral_shape, dtype=torch.float64)
    for c in noise.functions():  # each function by itself, because the variances of aliased functions add
        power += c.abs().square().sum(0)
    weights = grid.multiplicity() * power
    return eq.sigma**2 * renormalise.relaxed(-eq.symbol(grid).flatten(), weights.flatten(), times)
