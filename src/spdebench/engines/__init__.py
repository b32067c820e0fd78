"""Engines run independent units of work on this machine or on a Ray cluster. They do not depend on SPDEs."""

from spdebench.engines.choose import ENGINES, check_engine, check_workers, run
from spdebench.engines.locks import holder_of, locked
from spdebench.engines.memory import (
    check_free_memory,
    free_memory,
    is_out_of_memory,
    keep_freed_memory,
    peak_memory,
    release,
    reset_peak_memory,
)
from spdebench.engines.need import Need

__all__ = [
    "ENGINES",
    "Need",
    "check_engine",
    "check_free_memory",
    "check_workers",
    "free_memory",
    "holder_of",
    "is_out_of_memory",
    "keep_freed_memory",
    "locked",
    "peak_memory",
    "release",
    "reset_peak_memory",
    "run",
]
