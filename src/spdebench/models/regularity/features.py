"""The fields of all trees for a batch, on all frames.

    trees (B, T, X.., F):   I_c, I[xi], I[p], ..   for xi = dW/dt, without xi itself

They are computed once per sample and have no parameters. `TreeFeatures.again` replaces I_c by another field and
computes the trees that contain it again, differentiably; DLR-Net uses it. The sizes of trees differ by orders of
magnitude, so `Scales` divides them by their root mean squares over the training part.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spdebench.models.regularity.kernels import DispersiveKernel, make_kernel
from spdebench.models.regularity.products import Fields, Products
from spdebench.models.regularity.schemes import Kind
from spdebench.models.regularity.trees import Tree
from spdebench.tasks import Setting


class TreeFeatures(nn.Module):
    """The fields of ``trees`` for one setting. ``trees`` must contain all parts of each tree; xi has no field."""

    fixed: Tensor

    def __init__(self, setting: Setting, trees: Sequence[Tree], kernel: Kind = "generator") -> None:
        super().__init__()
        equation, grid = setting.equation, setting.grid
        assert equation is not None, "trees belong to an equation"
        self.trees = tuple(t for t in trees if t.kind != "xi")
        self.with_datum = tuple(i for i, t in enumerate(self.trees) if t.has_datum)
        self.needs_noise = any(self.trees[i].noise for i in self.with_datum)  # `again` needs dw
        self.dt = setting.dt
        self.kernel = make_kernel(setting, kernel)
        self.products = Products(equation, grid, differences=kernel == "generator" and equation.differences)
        one = torch.ones(grid.points, dtype=torch.float64)
        sources = torch.stack((one, equation.drift(grid)(torch.zeros_like(one))))
        sources = sources.unsqueeze(1).expand(2, setting.frames, *grid.points).float()
        self.register_buffer("fixed", self.kernel.drift(sources), persistent=False)  # I[1] and I[f]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.trees))

    def forward(self, u0: Tensor, dw: Tensor) -> Tensor:
        """(B, T, X.., F) from u0 (B X..) and dw (B T X..)."""
        xi = dw / self.dt
        fields: Fields = {}
        for tree in self.trees:
            if tree.kind == "datum":
                fields[tree] = self.kernel.datum(u0)
            elif not tree.factors:
                fields[tree] = self.kernel.noise(xi) if tree.noise else self.fixed[int(tree.form == "force")]
        self._grow(fields, self.trees, xi)
        return torch.stack([fields[t].expand_as(dw) for t in self.trees], -1)

    def trees_with_datum(self, known: Tensor, datum: Tensor, dw: Tensor | None = None) -> Tensor:
        """The trees that contain I_c, with ``datum`` (B T X..) instead of I_c: (B, T, X.., len(with_datum)).

        ``known`` are all trees of the first pass; ``dw`` is needed if the noise is multiplicative.
        """
        fields = {t: known[..., i] for i, t in enumerate(self.trees) if not t.has_datum}
        wanted = [self.trees[i] for i in self.with_datum]
        fields |= {t: datum for t in wanted if t.kind == "datum"}
        self._grow(fields, wanted, None if dw is None else dw / self.dt)
        return torch.stack([fields[t] for t in wanted], -1)

    def _grow(self, fields: Fields, wanted: Sequence[Tree], xi: Tensor | None) -> None:
        """Add the integrals of products to ``fields``, depth by depth; those of one kind are computed together."""
        for depth in range(2, max(t.depth for t in wanted) + 1):
            level = [t for t in wanted if t.depth == depth]
            noisy = [t for t in level if t.noise]
            fluxes = [t for t in level if t.form == "flux" and isinstance(self.kernel, DispersiveKernel)]
            others = [t for t in level if t not in noisy and t not in fluxes]
            if others:
                fields.update(zip(others, self.kernel.drift(self.products(others, fields)), strict=True))
            if noisy:
                assert xi is not None
                fields.update(zip(noisy, self.kernel.multiplied(self.products(noisy, fields), xi), strict=True))
            for count in sorted({len(t.factors) for t in fluxes}):
                alike = [t for t in fluxes if len(t.factors) == count]
                factors = [torch.stack([fields[t.factors[i].tree] for t in alike]) for i in range(count)]
                assert isinstance(self.kernel, DispersiveKernel)
                fields.update(zip(alike, self.kernel.flux(*factors), strict=True))


class Scales(nn.Module):
    """x -> x / s with one s per channel (last axis): its root mean square over the training part, 1 before `fit`."""

    size: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("size", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return x / self.size

    def fit(self, values: Tensor, chunk: int = 64) -> None:
        """Fit s to values (N, .., channels), block by block in float64; s is 1 for a channel that is 0."""
        total = sum(
            (part.double().flatten(0, -2).square().sum(0) for part in torch.split(values, chunk)), torch.zeros(())
        )
        assert isinstance(total, Tensor)
        size = (total / (values.numel() / values.shape[-1])).sqrt()
        self.size.copy_(torch.where(size > 0, size, 1.0))
