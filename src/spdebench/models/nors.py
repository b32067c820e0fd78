"""NORS, the neural operator with regularity structure (Hu et al. 2022): an FNO trunk on the trees of the equation.

    u = D L_n .. L_1 P [ tau_1(t, x), .., tau_F(t, x), t, x ]

tau_i are the trees of the expansion of u in its noise and its initial datum (`regularity`), without xi itself; P is one
linear map and D L_n .. L_1 the trunk of `layers/fourier.py`. The trees have no parameters and are computed once.

The reference feeds the Wiener path W where xi = dW/dt is meant, so that its I[xi] is I[W]; adds the current source
without the kernel; carries u0 with the Dirichlet kernel on a periodic box; and leaves I[I[xi]] and I[I_c] out of its
graph, without which the paper's count cannot be had. Here the trees are those of `regularity`, each divided by its size
over the training part (as they come they differ by orders of magnitude).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spdebench.models.base import Features
from spdebench.models.regularity import TrunkConfig, TrunkOnTrees
from spdebench.tasks import Setting


@dataclass(frozen=True, kw_only=True)
class NORSConfig(TrunkConfig):
    """As `TrunkConfig`."""


class NORS(TrunkOnTrees, name="nors"):
    """FNO on trees; the paper's count on phi41 is that of ``form="published"``: 6,300,449."""

    title = "NORS"
    config_class = NORSConfig

    def __init__(self, setting: Setting, config: NORSConfig) -> None:
        super().__init__(setting, config)
        self.add_trunk()

    def forward(self, features: Features) -> Tensor:
        return self.decode(self.sizes(features["trees"]))
