"""Run keyed, idempotent units of work. Knows nothing of SPDEs."""

from spdebench.engines.local import run

__all__ = ["run"]
