"""Datasets: their spec, generation, native files, the published layout, verification and cards."""

from spdebench.data.generate import generate
from spdebench.data.identity import DatasetSpec
from spdebench.data.store import Dataset, open_dataset
from spdebench.data.verify import Verification, verify

__all__ = ["Dataset", "DatasetSpec", "Verification", "generate", "open_dataset", "verify"]
