"""README's commands run as they are printed, in the order of the page, in a shell that has nothing but HOME and PATH.

The shell starts in an empty folder with a virtual environment ``.venv``, which README's own line activates. It inherits
the number of threads that the Makefile sets for all tests, which share the cores of a machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from spdebench.cli.main import app

ROOT = Path(__file__).parents[2]
NOT_RUN = {
    "make setup": "installs from a package index; the test has an environment with the same packages",
    "make demo": "runs 'make setup'; tests/e2e/test_examples.py runs examples/demo.py",
    "make test": "runs this test",
    "make test-slow": "runs this test",
    "make test-gpu": "needs a CUDA device",
    "make docs": "tests/e2e/test_docs_site.py builds the site",
    "make drills": "takes minutes; tests/drills/test_drills.py runs a part",
    "make fuzz": "is 'make test' with more files",
    "spdebench bench data": "takes minutes; tests/unit/test_bench.py calls the verbs",
    "spdebench data import": "needs a file of the authors; tests/unit/test_published.py imports one",
    "spdebench data export": "takes the file to write; tests/unit/test_published.py exports one",
    "spdebench findings": "tests/unit/test_findings.py runs it",
    "spdebench data card": "the page names the verb; the command with its file is run",
}
"""Commands within sentences that the test does not run, and why."""


def blocks(text: str) -> list[str]:
    """The indented commands of a page, comments removed."""
    lines = re.findall(r"^    ((?:spdebench|make|source) .*)$", text, flags=re.M)
    return [line.partition("  #")[0].strip() for line in lines]


def mentioned(text: str) -> list[str]:
    """Commands within sentences."""
    prose = re.sub(r"^    .*$", "", re.sub(r"```.*?```", "", text, flags=re.S), flags=re.M)
    return re.findall(r"`((?:spdebench|make) [^`]+)`", prose)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with an environment that sees the packages of this one and has the command."""
    venv.create(tmp_path / ".venv", with_pip=False, symlinks=True)
    (site,) = (tmp_path / ".venv" / "lib").glob("python*/site-packages")
    (site / "same.pth").write_text("\n".join(p for p in sys.path if p.endswith(("site-packages", "src"))) + "\n")
    (site / "first.pth").write_text(f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n")
    script = tmp_path / ".venv" / "bin" / "spdebench"
    script.write_text(f"#!{tmp_path}/.venv/bin/python\nfrom spdebench.cli.main import main\nmain()\n")
    script.chmod(0o755)
    return tmp_path


def in_a_fresh_shell(lines: list[str], folder: Path) -> tuple[int, str]:
    clean = {"HOME": str(folder), "PATH": os.defpath, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    done = subprocess.run(
        ["bash", "-e", "-x"], input="\n".join(lines), cwd=folder, env=clean, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_without_the_line_that_activates_the_shell_does_not_find_the_command(folder: Path) -> None:
    assert in_a_fresh_shell(["spdebench --version"], folder)[0] == 127
    code, out = in_a_fresh_shell(["source .venv/bin/activate", "spdebench --version"], folder)
    assert code == 0 and "spdebench 0." in out, out
    assert "source .venv/bin/activate" in blocks((ROOT / "README.md").read_text())


@pytest.mark.slow
def test_every_command_of_readme_runs_as_printed(folder: Path) -> None:
    text = (ROOT / "README.md").read_text()
    known = [line for line in blocks(text) if line not in NOT_RUN and "--device cuda" not in line]  # no GPU here
    within = [line for line in mentioned(text) if line not in NOT_RUN]
    assert len(known) > 9 and "spdebench list" in within
    code, out = in_a_fresh_shell([*known, *within], folder)
    assert code == 0, out[-3000:]
    assert (folder / "site" / "index.html").is_file()


def test_every_command_that_is_not_run_is_on_the_page() -> None:
    text = (ROOT / "README.md").read_text()
    assert set(NOT_RUN) <= {*blocks(text), *mentioned(text)}


OWN_PAGES = [
    p for folder in ("", "concepts", "howto", "notebooks") for p in sorted((ROOT / "docs" / folder).glob("*.md"))
]


@pytest.mark.parametrize("page", [ROOT / "README.md", *OWN_PAGES], ids=lambda p: p.name)
def test_every_command_of_a_page_has_a_verb_and_its_options(page: Path) -> None:
    """In all pages: the verb exists, and so does each option (placeholders such as FILE are not run)."""
    from typer.main import get_command

    root = get_command(app)
    for line in re.findall(r"spdebench ((?:--with \S+ )?[a-z][^`\n|]*)", page.read_text()):
        words = re.sub(r"^--with \S+ ", "", line.partition("  #")[0]).split()
        command = root.commands.get(words[0])
        if command is None and not re.search(r"^    .*spdebench " + re.escape(words[0]), page.read_text(), re.M):
            continue  # a sentence about the package
        assert command is not None, line
        if hasattr(command, "commands") and len(words) > 1:
            assert words[1] in command.commands, line
            command = command.commands[words[1]]
        known = {opt for p in command.params for opt in (*p.opts, *p.secondary_opts)} | {"--with", "--help", "--"}
        given = [w.partition("=")[0] for w in words if re.match(r"--?[a-z]", w)]
        if words[0] != "bench":
            assert set(given) <= known, line
