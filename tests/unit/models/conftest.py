"""What tests of models share."""

from __future__ import annotations

import pytest
import torch

from spdebench.accel import can_use_kernels


@pytest.fixture
def kernels_are_there() -> None:
    """A test of a kernel would pass without one, torch against torch."""
    assert can_use_kernels(torch.zeros(1, device="cuda"))
