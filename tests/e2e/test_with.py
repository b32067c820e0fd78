"""--with FILE: before or after the verb, in every hint, and named where it is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spdebench import registry
from spdebench.cli.main import main, with_first
from spdebench.errors import UserError
from spdebench.registry import FILES, extend

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY = ["points=32", "truncation=8", "steps=10", "frames=10"]


@pytest.fixture
def spdebench(tmp_path):
    """The command in a process of its own, because declarations last as long as the process."""
    for name in ("own_equation.py", "own_model.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    environment = {k: v for k, v in os.environ.items() if k != "SPDEBENCH_WITH"} | {"OMP_NUM_THREADS": "1"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "spdebench", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
def test_with_may_stand_anywhere_and_is_repeated_and_asked_for(spdebench, tmp_path):
    made = spdebench("generate", "nagumo", *TINY, "-n", "20", "--with", "own_equation.py")
    assert made.returncode == 0, made.stderr
    hint = made.stdout.splitlines()[-1]
    assert hint.startswith("next: spdebench --with own_equation.py data verify ")
    assert spdebench(*hint.split()[2:]).returncode == 0
    file = hint.split()[-1]
    for words in (["data", "info", file], ["train", "mean", file]):
        without = spdebench(*words)
        assert without.returncode == 2
        assert f"{file} needs the equation 'nagumo', which is not declared; load the file" in without.stderr
    trained = spdebench("--with", "own_equation.py", "train", "walker", file, "epochs=1", "--with", "own_model.py")
    assert trained.returncode == 0, trained.stderr
    hint = trained.stdout.splitlines()[-1]
    first = "spdebench --with own_equation.py --with own_model.py evaluate runs/walker-"
    assert first in hint and "spdebench --with own_equation.py --with own_model.py predict runs/walker-" in hint
    folder = next((tmp_path / "runs").iterdir()).relative_to(tmp_path)
    without = spdebench("--with", "own_equation.py", "predict", str(folder), file)
    assert f"the run {folder.name} needs the model 'walker'" in without.stderr and without.returncode == 2


def test_an_unknown_name_mentions_it(capsys):
    for words in (["generate", "nagumoo"], ["show", "nagumoo"], ["train", "walkerr", "x.parquet"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "(a file of yours that declares it: --with FILE)" in capsys.readouterr().err


def test_words():
    assert with_first(["a", "--with", "f", "b", "--with=g"]) == ["--with", "f", "--with=g", "a", "b"]
    assert with_first(["a", "--", "--with", "f"]) == ["a", "--", "--with", "f"]
    with pytest.raises(UserError, match="--with takes a Python file"):
        with_first(["train", "--with"])


DECLARES = """
import os
from spdebench.registry import Registry

class Thing:
    pass

Registry("thing", "things", lambda: None).add("thing", Thing)
os.environ["TIMES"] = os.environ.get("TIMES", "") + "{0}"
"""


def test_a_colon_in_a_path_and_two_files_of_one_stem(tmp_path, monkeypatch):
    """Each file is run once, however often the registries ask, in this process and for its workers."""
    monkeypatch.setenv(FILES, "")
    monkeypatch.setenv("TIMES", "")
    paths = []
    for number in range(2):
        folder = tmp_path / f"a:b{number}"
        folder.mkdir()
        paths.append(folder / "same.py")
        paths[-1].write_text(DECLARES.format(number))
    for _ in range(3):
        extend(paths)
        extend(())
    assert os.environ["TIMES"] == "01"
    assert json.loads(os.environ[FILES]) == [str(path) for path in paths]
    for given in (str(paths[0]), os.pathsep.join(["x.py", "y.py"])):
        monkeypatch.setenv(FILES, given)
        listed = registry._listed(os.environ[FILES])
        assert listed == ([given] if given == str(paths[0]) else ["x.py", "y.py"])
