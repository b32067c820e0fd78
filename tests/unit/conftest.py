"""The tiny table as a fixture."""

from __future__ import annotations

import pytest
import torch

from spdebench.paper.base import Table
from tiny_tables import tiny_table


@pytest.fixture
def tiny() -> Table:
    torch.set_num_threads(1)
    return tiny_table()
