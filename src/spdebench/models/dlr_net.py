"""DLR-Net, deep latent regularity network (Gong et al. 2023): trees, a latent initial datum, trees again, an FNO trunk.

    v = B gelu(A tau),     tau'_i = tau_i with I_c := v,  for the trees that contain I_c,
    u = D L_n .. L_1 P [ tau, tau', t, x ]

tau are the trees of the expansion of u in its noise and initial datum (`regularity`), without xi itself: 10 on phi41, 6
of them with I_c. The first pass has no parameters and is computed once; the second is differentiated in every step,
as one batched matrix product over all of its trees.

The reference computes the trees with u0 in every step in both passes, each integral as a product with a dense matrix
over all (t, x); carries u0 with the Dirichlet kernel on a periodic box; has no kernel but that of the heat equation by
implicit Euler (the generator's own, grid and step included: ``kernel="exact"`` shows what that gives away) and, for the
Navier-Stokes equation, products without the velocity and no force. Here trees and kernel are the equation's own. Trees,
v and u are in units of their size over the training part. The reference's graph for the Navier-Stokes equation has 34
nodes, ours 13 (transport as one product): its count there, 527,482, is not had.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.models.base import Features
from spdebench.models.layers.mlp import MLP
from spdebench.models.regularity import TrunkConfig, TrunkOnTrees
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class DLRNetConfig(TrunkConfig):
    """``latent``: width of the map that makes v."""

    width: int = 8
    modes: tuple[int, ...] = (16, 16)
    latent: int = 32


class DLRNet(TrunkOnTrees, name="dlr-net"):
    """Trees twice, the second time from a learned datum; ``form="published"`` has the paper's 133,178 on phi41."""

    title = "DLR-Net"
    config_class = DLRNetConfig

    config: DLRNetConfig
    second: Tensor

    def __init__(self, setting: Setting, config: DLRNetConfig) -> None:
        super().__init__(setting, config)
        trees = self.trees.trees
        self.start = next(i for i, t in enumerate(trees) if t.kind == "datum")
        self.register_buffer("second", torch.tensor(self.trees.with_datum), persistent=False)
        self.latent = MLP(len(trees), config.latent, 1)
        self.add_trunk(extra=len(self.trees.with_datum))

    def prepare(self, batch: Batch) -> Features:
        features = super().prepare(batch)
        return features | {"dw": batch.dw} if self.trees.needs_noise else features

    def forward(self, features: Features) -> Tensor:
        known = features["trees"]
        first = self.sizes(known)
        v = self.latent(first).squeeze(-1) * self.sizes.size[self.start]
        with torch.autocast(known.device.type, enabled=False):  # transforms, and sums over all frames: full precision
            again = self.trees_on(known[..., 0]).again(known, v.float(), features.get("dw"))
        return self.decode(first, again / self.sizes.size[self.second])
