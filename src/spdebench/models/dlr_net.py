"""DLR-Net, the deep latent regularity network (Gong et al. 2023).

    v = B gelu(A tau),     tau'_i = tau_i with I_c := v,  for the trees that contain I_c,
    u = D L_n .. L_1 P [ tau, tau', t, x ]

tau are the trees of the expansion of u in its noise and initial datum (`regularity`), without xi itself: 10 on phi41,
of which 6 contain I_c, the initial datum propagated by the linear part. The network replaces I_c by a learned field v,
computes the trees that contain it again (tau'), and passes all trees and the coordinates to an FNO trunk (P lifts them,
L_1 .. L_n are Fourier layers, D decodes). The first trees have no parameters and are computed once. The second ones are
differentiated in every step, as one batched matrix product. Trees, v and u are divided by their root mean squares over
the training part.

The authors' code differs as follows. It computes the trees with u0 in every step, each integral as a product with a
dense matrix over all (t, x). It propagates u0 with the Dirichlet kernel on a periodic box. Its only kernel is that of
implicit Euler for the heat equation, which is the scheme, grid and step that generated the data; ``kernel="exact"``
shows how much is gained from that. For the Navier-Stokes equation it leaves the velocity out of products and has no
force. Here the trees and the kernel are those of the equation. The authors' graph for the Navier-Stokes equation has 34
nodes and ours 13, as a transport term is one product here, so their number of parameters (527,482) is not reproduced.
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
    """``latent``: hidden width of the map that computes v."""

    width: int = 8
    modes: tuple[int, ...] = (16, 16)
    latent: int = 32


class DLRNet(TrunkOnTrees, name="dlr-net"):
    """FNO trunk on tree features, computed twice: from u0 and from a learned initial datum.

    ``form="published"`` has the paper's number of parameters: 133,178 on phi41.
    """

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
        with torch.autocast(known.device.type, enabled=False):  # transforms and long sums need full precision
            again = self.trees_on(known[..., 0]).trees_with_datum(known, v.float(), features.get("dw"))
        return self.decode(first, again / self.sizes.size[self.second])
