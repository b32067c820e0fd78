"""``make release-check``: a checkout whose tag, version, citation and changelog disagree is refused, one line each."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "release_check.py"
FILES = {
    "src/spdebench/version.py": '__version__ = "1.2.0"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\n",
    "src/spdebench/report/site/static/CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0 - 2026-01-02\n\n- A line.\n\n## 1.1.0 - 2025-01-02\n",
}


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def check(folder: Path, *words: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, "-S", str(SCRIPT), *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that is ready to be released as 1.2.0."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def test_all_agree_before_and_after_tagging(checkout):
    assert check(checkout, "v1.2.0") == (0, ["tag, src/spdebench/version.py, CITATION.cff and CHANGELOG.md agree"])
    code, (line,) = check(checkout)
    assert code == 2 and line.endswith("make release-check TAG=v1.2.0")
    git(checkout, "tag", "v1.2.0")
    assert check(checkout)[0] == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("src/spdebench/version.py", '__version__ = "1.1.0"\n', 'and the tag 1.2.0; set __version__ = "1.2.0"'),
        ("CITATION.cff", "cff-version: 1.2.0\n", "CITATION.cff says nothing and the tag 1.2.0"),
        ("src/spdebench/report/site/static/CITATION.cff", "version: 1.1.0\n", "static/CITATION.cff says 1.1.0"),
        ("CHANGELOG.md", "## Unreleased\n\n## 1.2.0 - 2026-01-02\n", "begins with the section 'Unreleased'"),
        ("CHANGELOG.md", "## 1.2.0\n", "begins with the section '1.2.0'; its first must be '1.2.0 - YYYY-MM-DD'"),
    ],
)  # fmt: skip
def test_each_disagreement_is_one_line(checkout, name, text, words):
    (checkout / name).write_text(text)
    git(checkout, "commit", "--quiet", "-a", "-m", "second")
    code, (line,) = check(checkout, "v1.2.0")
    assert code == 2 and line.startswith("error: ") and words in line


def test_a_tag_elsewhere_a_strange_tag_and_changed_files_are_refused(checkout):
    git(checkout, "tag", "v1.2.0")
    (checkout / "CHANGELOG.md").write_text(FILES["CHANGELOG.md"] + "more\n")
    code, (line,) = check(checkout)
    assert code == 2 and "1 file(s) differ from the commit (CHANGELOG.md)" in line
    git(checkout, "commit", "--quiet", "-a", "-m", "second")
    code, (line,) = check(checkout, "v1.2.0")
    assert code == 2 and "the tag v1.2.0 is on the commit" in line
    code, (line,) = check(checkout, "1.2.0")
    assert code == 2 and "three numbers, such as v1.2.0; got '1.2.0'" in line


def test_the_committed_version_citation_and_changelog_agree():
    """Between releases the changelog begins with what is not released; the two versions agree at any time."""
    version = re.search(r'^__version__ = "(.*)"$', (ROOT / "src/spdebench/version.py").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version and cited and version[1] == cited[1] == next(name for name in sections if name != "Unreleased")
