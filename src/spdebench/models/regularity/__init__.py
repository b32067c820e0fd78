"""Tree features from the theory of regularity structures.

`trees` generates the trees of an equation, `kernels` integrates against its linear part, `products` multiplies trees,
`features` computes their fields for a batch, and `model` is the base of the models that use them.
"""

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
