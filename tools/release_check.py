"""``make release-check [TAG=vX.Y.Z]``: whether tag, version.py, CITATION.cff and CHANGELOG.md name the same version.

Without TAG the tag of the checked-out commit counts. Each thing that is wrong is one line; the exit code is then 2.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TAG = re.compile(r"v(\d+\.\d+\.\d+)")
SECTION = re.compile(r"(\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}")
VERSION_FILE = "src/spdebench/version.py"
CITATIONS = ("CITATION.cff", "src/spdebench/report/site/static/CITATION.cff")


def mistakes(root: Path, tag: str = "") -> Iterator[str]:
    """One line for each thing that keeps this checkout from being released as ``tag``."""
    tag = tag or _git(root, "describe", "--tags", "--exact-match")
    version = found(root / VERSION_FILE, r'^__version__ = "(.*)"$')
    if not tag:
        yield f"this commit has no tag; name the one that it will get: make release-check TAG=v{version}"
        return
    if not TAG.fullmatch(tag):
        yield f"the tag must be v and three numbers, such as v{version}; got '{tag}'"
        return
    wanted = tag.removeprefix("v")
    if version != wanted:
        yield f'{VERSION_FILE} says {version or "nothing"} and the tag {wanted}; set __version__ = "{wanted}"'
    for name in CITATIONS:
        cited = found(root / name, r'^version: "?([^"\n]*)"?$')
        if cited != wanted:
            yield f"{name} says {cited or 'nothing'} and the tag {wanted}; write 'version: {wanted}'"
    section = found(root / "CHANGELOG.md", r"^## (.*)$")
    if not (match := SECTION.fullmatch(section)) or match[1] != wanted:
        yield f"CHANGELOG.md begins with the section '{section}'; its first must be '{wanted} - YYYY-MM-DD'"
    here, tagged = _git(root, "rev-parse", "HEAD"), _git(root, "rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}")
    if tagged and tagged != here:
        yield f"the tag {tag} is on the commit {tagged[:10]} and not on this one, {here[:10]}; choose a new version"
    if changed := _git(root, "status", "--porcelain", "--untracked-files=no").splitlines():
        yield f"{len(changed)} file(s) differ from the commit ({changed[0].split()[-1]}); commit them first"


def found(path: Path, pattern: str) -> str:
    """What the pattern's group holds where it first matches; empty where it does not."""
    match = re.search(pattern, path.read_text(encoding="utf-8") if path.is_file() else "", flags=re.MULTILINE)
    return match[1] if match else ""


def _git(root: Path, *words: str) -> str:
    """What git prints; empty where it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def main(words: list[str]) -> int:
    """Print what is wrong, or that all agrees."""
    lines = list(mistakes(Path.cwd(), *words[:1]))
    for line in lines:
        print(f"error: {line}", file=sys.stderr)
    if not lines:
        print(f"tag, {VERSION_FILE}, CITATION.cff and CHANGELOG.md agree")
    return 2 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
