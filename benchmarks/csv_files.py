"""CSV files of measurements."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spdebench.files import write_text


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows that have the same keys, below a header."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, stream.getvalue())
