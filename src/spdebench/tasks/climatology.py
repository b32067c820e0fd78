"""The climatology: the Gaussian law with the mean and the covariance of the training part, the same for every input.

    X = mean + sum_i g_i (u_i - mean) / (n - 1)^{1/2},      g_i ~ N(0, 1) independent, u_i the n training samples

X has exactly the empirical mean and covariance, of rank n - 1, without a matrix of that size. A model of a law that is
no better has not used its input.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from spdebench.errors import UserError
from spdebench.tasks.parts import Part


def climatology(train: Part, inputs: int, members: int, seed: int = 0) -> np.ndarray:
    """``members`` draws for each of ``inputs`` inputs: (inputs, members, T, X..), float32."""
    n = len(train)
    if n < 2:
        raise UserError(f"a climatology needs at least 2 training samples, got {n}")
    u = train.u.flatten(1).double()
    mean = u.mean(0)
    away = (u - mean).div_(math.sqrt(n - 1))
    generator = torch.Generator().manual_seed(seed)
    out = np.empty((inputs, members, u.shape[1]), dtype=np.float32)
    for row in range(inputs):
        weights = torch.randn(members, n, generator=generator, dtype=torch.float64)
        out[row] = (mean + weights @ away).numpy()
    return out.reshape(inputs, members, *train.shape)
