"""Put records that were made again in the place of those that they differ from.

    python tools/replace_records.py reproduced/results [results]

``spdebench reproduce`` makes the new records. A record is replaced if a score of it is not the same, with the
additions to it; all others keep their lines. Records that the second folder does not have are left out. One line per
replaced record says what it had and the new one lacks, such as scores on data of a table that was not made again; the
next ``spdebench table --run`` of that table adds it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spdebench.campaign.reproduce import compare_records
from spdebench.files import write_text
from spdebench.records import Record, store


def replace_records(again: str | Path, results: str | Path = store.FOLDER) -> dict[str, list[str]]:
    """Rewrite the files of ``results``; the runs whose records are new, and what these lack that the old ones had."""
    recorded, made = store.read(results), store.read(again)
    new = {
        digest: record
        for digest, record in made.items()
        if digest in recorded and (one := compare_records(recorded[digest], record)) and one.verdict != "same"
    }
    for path in sorted(Path(results).glob("*.jsonl")):
        before = path.read_text(encoding="utf-8").splitlines()
        after, seen = [], set()
        for line in before:
            digest = json.loads(line)["digest"]
            if digest not in new:
                after.append(line)
            elif digest not in seen:
                seen.add(digest)
                after.append(json.dumps(new[digest].to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False))
        if seen:
            write_text(path, "".join(f"{line}\n" for line in after))
    return {record.name: _lacking(record, recorded[digest]) for digest, record in new.items()}


def _lacking(record: Record, old: Record) -> list[str]:
    """The names of scores, other data and figure data that only the old record has."""
    rest = old.addition_to(record)
    return [] if rest is None else [*rest.scores, *rest.shifts, *rest.figure_data.names]


if __name__ == "__main__":
    for name, lacking in replace_records(*sys.argv[1:3]).items():
        print(f"{name} lacks {', '.join(lacking)}" if lacking else name)
