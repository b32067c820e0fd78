"""Cached features: a step of DLR-Net on trees that `prepare` made once, against a step that computes its trees again,
each integral by a dense matrix over all (t, x) as in the reference."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.models.base import build
from spdebench.models.dlr_net import DLRNet
from spdebench.models.regularity import TreeFeatures
from spdebench.tasks import Batch
from speed.models.base import Case, training_step
from speed.models.dlr_net import dense, example


def anew(trees: TreeFeatures, batch: Batch, drift: Tensor, noise: Tensor) -> Tensor:
    """`TreeFeatures` of phi41 by dense matrices: (B, T, X, F)."""

    def integral(source: Tensor, matrix: Tensor) -> Tensor:
        return (source.flatten(1) @ matrix).view_as(source)

    fields = {"I_c": trees.kernel.datum(batch.u0), "I[xi]": integral(batch.dw / trees.dt, noise)}
    for tree in trees.trees:
        if tree.factors:
            product = torch.ones_like(batch.dw)
            for factor in tree.factors:
                product = product * fields[str(factor.tree)]
            fields[str(tree)] = integral(product, drift)
    return torch.stack([fields[name] for name in trees.names], -1)


def case(batch: int = 20) -> Case:
    setting, inputs = example(batch)
    model = build("dlr-net", setting)
    assert isinstance(model, DLRNet)
    features = model.prepare(inputs)
    kernel = model.trees.kernel
    drift, noise = dense(kernel.drift, setting.shape), dense(kernel.noise, setting.shape)

    def reference() -> None:
        training_step(model, {"trees": anew(model.trees, inputs, drift, noise)})()

    return Case("features", 2.0, training_step(model, features), reference, "10 trees of 20 samples: 9 integrals")
