"""Reads older written forms of a record.

Version 1 called ``exclusive_timing`` "alone", ``shared_device`` "beside" and ``figure_data`` "kept", counted parameters
in an object ``counts``, and gave the ``dataset`` of a shift as one identity or a list of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spdebench.errors import UserError

RENAMED = {"alone": "exclusive_timing", "beside": "shared_device", "kept": "figure_data"}


def migrated(values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The fields under the names of ``version``; an unknown version is a `UserError`."""
    found = values.get("version")
    if found == version and not isinstance(found, bool):
        return dict(values)
    if found != 1 or isinstance(found, bool):
        shown = found if isinstance(found, int) and abs(found) < 1 << 31 else type(found).__name__
        raise UserError(f"version must be 1 or {version}, got {shown}")
    new = {RENAMED.get(key, key): value for key, value in values.items()}
    counts = new.pop("counts", {})
    if not isinstance(counts, dict):
        raise UserError("counts must be an object")
    new |= {f"{'real_' * (key == 'real')}parameters": counts[key] for key in ("parameters", "real") if key in counts}
    if isinstance(new.get("shifts"), dict):
        new["shifts"] = {label: _shift(scored) for label, scored in new["shifts"].items()}
    return new


def _shift(scored: Any) -> Any:
    """The scores of a shift with ``datasets`` as a list instead of ``dataset``."""
    if not isinstance(scored, dict) or "dataset" not in scored:
        return scored
    dataset = scored["dataset"]
    others = {key: value for key, value in scored.items() if key != "dataset"}
    return others | {"datasets": dataset if isinstance(dataset, list) else [dataset]}
