"""A user's own file (`--with FILE`): mistakes name file and line, and old results are not shown for new code."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from pathlib import Path

import pytest

import spdebench as sb
from command_line import call as command
from spdebench import registry
from spdebench.campaign.deadline import FOREVER, Deadline
from spdebench.campaign.one_run import collect, make_run
from spdebench.campaign.unit import Places, Unit
from spdebench.data.identity import dataset_of
from spdebench.equations import EQUATIONS
from spdebench.models import MODELS
from spdebench.report.numbers import first_few
from spdebench.tasks import TaskSpec

ROOT = Path(__file__).parents[2]
FISHER = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "add-an-equation.md").read_text(), flags=re.S).group(1)
WALKER = (ROOT / "examples" / "own_model.py").read_text()
SIZE = ("points=16", "truncation=8", "frames=5", "steps=5", "-n", "20")


@pytest.fixture(autouse=True)
def own_file(monkeypatch, tmp_path):
    """The tests run in a folder of their own, and what they declare is forgotten at the end."""
    known = [(each, dict(each._items)) for each in (EQUATIONS, MODELS) if list(each)]
    before = os.environ.get(registry.FILES)
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "mine.py"
    forget()
    for each, items in known:
        each._items.clear()
        each._items.update(items)
    registry.WITH.clear()
    if before is None:
        os.environ.pop(registry.FILES, None)
    else:
        os.environ[registry.FILES] = before


def forget() -> None:
    """As in a new process: the file is not loaded."""
    sys.modules.pop("spdebench_with_mine", None)
    registry._FILES.pop("spdebench_with_mine", None)
    os.environ.pop(registry.FILES, None)


def edited(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = 1 / 0\n", "--with mine.py, line 2: ZeroDivisionError: division by zero"),
        ("import no_such_package\n", "--with mine.py, line 1: ModuleNotFoundError"),
        ("def f(:\n", "--with mine.py, line 1: SyntaxError"),
        (edited(FISHER, ', name="fisher"', ""), "mine.py declares nothing: a class is declared by its name"),
        (edited(FISHER, "@dataclass(frozen=True, kw_only=True)", ""), "fisher: write @dataclass(frozen=True, kw_only="),
        (edited(FISHER, "growth: float = 20.0", "growth: float"), "fisher: growth has no value; give growth=VALUE"),
        (edited(FISHER, "return grid.lapl", "return -grid.lapl"), "does not support growing modes (Re L > 0"),
        (
            edited(FISHER, "self.growth", "self.grwth"),
            "mine.py, line 22: AttributeError: 'Fisher' object has no attribute 'grwth'",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(own_file, capsys, text, message):
    own_file.write_text(text)
    assert command("--with", own_file, "generate", "fisher", *SIZE) == 2
    told = capsys.readouterr().err
    assert f"error: {message}" in told or (message in told and "error: fisher: the scheme" in told)
    assert told.count("\n") == 1 and not list(Path("data").glob("*.parquet"))


def test_old_data_and_runs_are_not_shown_for_an_edited_file(own_file, capsys):
    def told(text: str, *words: object) -> str:
        forget()
        own_file.write_text(text)
        code = command("--with", own_file, *words)
        out = capsys.readouterr()
        return out.err if code else out.out

    make, edition = ("generate", "fisher", *SIZE), edited(FISHER, "self.growth *", "2 * self.growth *")
    assert "next: " in told(FISHER, *make)
    file = next(Path("data").glob("fisher*.parquet"))
    assert "already exists" in told(FISHER, *make) and "the same bits" in told(FISHER, "data", "verify", file)
    assert "which has changed" in told(edition, *make) and "already exists" in told(edition, *make, "--force")
    file.unlink()
    assert "next: " in told(edition, *make)

    EQUATIONS._items.pop("fisher")
    assert command("generate", "phi41", *SIZE) == 0
    train = ("train", "walker", next(Path("data").glob("phi41*.parquet")), "width=2", "epochs=1")
    assert "rel_l2" in told(WALKER, *train) and "already finished" in told(WALKER, *train)
    assert "mine.py, which has changed" in told(WALKER + "\n# edited\n", *train)
    assert "already finished" in told(WALKER + "\n# edited\n", *train, "--force")
    run, places = sb.open_run(next(Path("runs").glob("walker-*"))), Places("data", "runs", "results")
    refused, taken = (collect(run.spec, places, force) for force in (False, True))  # as `table --run` does
    assert refused.state == "failed" and "which has changed" in refused.message and taken.state == "added"
    shift = {"fresh": dataclasses.replace(dataset_of(run.spec.datasets[0]), seed=1)}  # a score is still to be added
    unit = Unit(run.spec, shift, places, "cpu", Deadline.after(FOREVER))
    refused, taken = (make_run(dataclasses.replace(unit, force=force)) for force in (False, True))
    assert refused.state == "failed" and "which has changed" in refused.message and taken.state == "added"


def test_a_folder_for_a_dataset_and_a_changed_byte(own_file, capsys):
    """A folder is answered by a file in it; a changed byte is a difference for ``data verify``, exit code 1."""
    assert command("generate", "phi41", *SIZE) == 0
    file = next(Path("data").glob("*.parquet"))
    assert command("data", "info", "data") == 2
    assert f"data is a folder; give one of its files, such as {file}" in capsys.readouterr().err
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(content)
    assert command("data", "verify", file) == 1
    assert "damaged" in capsys.readouterr().err


def test_a_task_is_shown_with_its_view_of_the_data():
    assert TaskSpec().text == "xi -> u" and TaskSpec(seen=0, every=2).text == "xi -> u with seen=0, every=2"


def test_the_count_of_further_names_agrees_with_its_noun():
    assert first_few("abc", 2, "cell") == "a; b and 1 more cell" and first_few("abcd", 2, "cell")[-7:] == "e cells"
    assert first_few("abcd", 2) == "a; b and 2 more" and first_few("ab", 2, "cell") == "a; b"
