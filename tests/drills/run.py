"""``python tests/drills/run.py [WORDS]``: run the drills (those whose names contain a word) and print their table."""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from drills import DRILLS, undisturbed
from spdebench.cli.output import print_table


def main(words: list[str]) -> int:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        wanted = undisturbed(Path(folder) / "wanted")
        for number, (name, drill) in enumerate(DRILLS.items()):
            if words and not any(word in name for word in words):
                continue
            start = time.monotonic()
            try:
                outcome = drill(Path(folder) / f"drill{number}", wanted)
                facts = {"killed or broken": outcome.killed, "lost": "nothing", "recovered in s": outcome.seconds}
            except Exception:
                traceback.print_exc()
                facts = {"killed or broken": "", "lost": "FAILED", "recovered in s": None}
            rows.append({"drill": name, **facts, "whole drill s": time.monotonic() - start})
            sys.stderr.write(f"{name}: {facts['lost']}\n")
    for row in rows:
        for key in ("recovered in s", "whole drill s"):
            row[key] = None if row[key] is None else f"{row[key]:.1f}"
    print_table(rows)
    return any(row["lost"] != "nothing" for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
