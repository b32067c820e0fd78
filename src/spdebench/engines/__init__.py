"""Run keyed, idempotent units of work, here or on a cluster. Knows nothing of SPDEs."""

from spdebench.engines.choose import ENGINES, check_engine, check_workers, run
from spdebench.engines.locks import held, locked
from spdebench.engines.memory import free_memory, keep_freed_memory, release
from spdebench.engines.need import Need

__all__ = [
    "ENGINES",
    "Need",
    "check_engine",
    "check_workers",
    "free_memory",
    "held",
    "keep_freed_memory",
    "locked",
    "release",
    "run",
]
