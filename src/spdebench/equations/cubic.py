"""a u + b u^3 at every point: the drift of the Phi^4 equations."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Cubic:
    """u -> linear u + cube u^3. A scheme may use `polynomial` to compute the drift and its own step in one pass."""

    linear: float
    cube: float

    @property
    def polynomial(self) -> tuple[float, ...]:
        """c_0, c_1, .. of F(u) = sum_i c_i u^i."""
        return 0.0, self.linear, 0.0, self.cube

    def __call__(self, u: Tensor) -> Tensor:
        factor = (u * u).mul_(self.cube)
        return (factor.add_(self.linear) if self.linear else factor).mul_(u)
