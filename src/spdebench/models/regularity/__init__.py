"""Regularity features: trees from an equation's rule (`trees`), the integral that plants them (`schemes`, `kernels`),
products (`products`), their fields for a batch (`features`), and what the models on them share (`model`)."""

from spdebench.models.regularity.features import Scales, TreeFeatures
from spdebench.models.regularity.kernels import Kernel, make_kernel
from spdebench.models.regularity.model import TreeConfig, TreeModel, TrunkConfig, TrunkOnTrees
from spdebench.models.regularity.trees import Tree, grow

__all__ = [
    "Kernel",
    "Scales",
    "Tree",
    "TreeConfig",
    "TreeFeatures",
    "TreeModel",
    "TrunkConfig",
    "TrunkOnTrees",
    "grow",
    "make_kernel",
]
