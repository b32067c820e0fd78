"""NORS, the neural operator with regularity structure (Hu et al. 2022): an FNO trunk on the trees of the equation.

    u = D L_n .. L_1 P [ tau_1(t, x), .., tau_F(t, x), t, x ]

tau_i are the trees of the expansion of u in its noise and its initial datum (`regularity`), without xi itself. P is one
linear map, L_1 .. L_n are Fourier layers and D decodes (`layers/fourier.py`). The trees have no parameters and are
computed once. Their sizes differ by orders of magnitude, so each is divided by its root mean square over the training
part.

The authors' code uses the Wiener path W instead of xi = dW/dt, so that its I[xi] is I[W]; it adds the current source
without the kernel; it propagates u0 with the Dirichlet kernel on a periodic box; and it omits the trees I[I[xi]] and
I[I_c], without which the paper's number of parameters cannot be reproduced.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spdebench.models.base import Features
from spdebench.models.regularity import TrunkConfig, TrunkOnTrees
from spdebench.tasks import Setting


@dataclass(frozen=True, kw_only=True)
class NORSConfig(TrunkConfig):
    """The fields of `TrunkConfig`."""


class NORS(TrunkOnTrees, name="nors"):
    """FNO trunk on tree features.

    ``form="published"`` has the paper's number of parameters: 6,300,449 on phi41.
    """

    title = "NORS"
    config_class = NORSConfig

    def __init__(self, setting: Setting, config: NORSConfig) -> None:
        super().__init__(setting, config)
        self.add_trunk()

    def forward(self, features: Features) -> Tensor:
        return self.decode(self.sizes(features["trees"]))
