"""Run keyed, idempotent units of work. Knows nothing of SPDEs."""

from spdebench.engines.local import run
from spdebench.engines.memory import keep_freed_memory

__all__ = ["keep_freed_memory", "run"]
