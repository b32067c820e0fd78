"""Declaring registers; a second class of the same name is refused; third parties come in by entry points."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from in_children import run_command
from spdebench.errors import UserError, did_you_mean
from spdebench.registry import Registry
from spdebench.registry import command as command_line


def test_names_and_did_you_mean():
    registry: Registry[object] = Registry("thing", "things", lambda: None)
    registry.add("alpha", int)
    registry.add("beta", str)
    assert list(registry) == ["alpha", "beta"] and "alpha" in registry and registry["beta"] is str
    with pytest.raises(UserError, match="unknown thing 'alpa'; did you mean 'alpha'"):
        registry["alpa"]
    with pytest.raises(UserError, match="unknown thing 'zzz'; choose from alpha, beta"):
        registry["zzz"]
    with pytest.raises(UserError, match="declared twice"):
        registry.add("alpha", float)


def test_an_equation_of_another_package_is_found_by_the_command(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "add-an-equation.md"
    block = re.search(r"```python\n(.*?)```", page.read_text(), flags=re.S)
    assert block
    (tmp_path / "fisher_package.py").write_text(block.group(1))
    info = tmp_path / "fisher_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fisher-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spdebench.equations]\nfisher = fisher_package:Fisher\n")
    out = tmp_path / "data"
    words = ["generate", "fisher", "points=32", "truncation=8", "-n", "3", "--out", str(out)]
    for command in (words, ["show", "fisher"], ["data", "verify", *()]):
        if command[0] == "data":
            command = ["data", "verify", str(next(out.glob("fisher-*.parquet")))]
        done = run_command(*command, path=[tmp_path])
        assert done.returncode == 0, done.stderr
    assert "the same bits" in done.stdout


def test_a_file_of_ones_own_is_found_by_the_command_and_its_workers(tmp_path):
    """``--with FILE`` declares an equation for one command, worker processes included."""
    example = Path(__file__).parents[2] / "examples" / "own_equation.py"
    words = ["--with", str(example), "generate", "nagumo", "points=32", "truncation=8", "-n", "4", "--chunk", "2"]
    done = run_command(*words, "--workers", "2", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("nagumo-*.parquet"))


@pytest.mark.parametrize(("text", "message"), [(None, "no such file"), ("1/0", "line 1: ZeroDivisionError")])
def test_a_bad_file_is_one_line(tmp_path, text, message):
    path = tmp_path / "mine.py"
    if text:
        path.write_text(text)
    done = run_command("--with", path, "list")
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_a_very_long_name_is_refused_at_once_and_a_word_of_three_times_the_length_may_be_near():
    start = time.process_time()
    assert did_you_mean("ab" * 500_000, ["alpha", "beta"]) == "; choose from alpha, beta"
    assert time.process_time() - start < 0.1
    assert did_you_mean("alpha" + "x" * 10, ["alpha", "beta"]) == "; did you mean 'alpha'?"
    assert did_you_mean("alpha" + "x" * 11, ["alpha", "beta"]) == "; choose from alpha, beta"


def test_a_command_for_the_user_quotes_paths():
    line = command_line("evaluate", Path("my runs/a"), "--part test", "")
    assert line == "spdebench evaluate 'my runs/a' --part test"
