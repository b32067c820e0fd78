"""A challenge from its secret to a checked submission, and everything that is refused: one line, nothing written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.command_line import call
from tests.submitted import CARD

import spdebench as sb
from spdebench.challenge import (
    make_challenge,
    open_challenge,
    read_secret,
    score,
    score_submission,
    submissions,
    write_submission,
)
from spdebench.challenge.arrays import write_arrays
from spdebench.challenge.predictions import open_predictions
from spdebench.challenge.truth import solved_truth
from spdebench.engines import memory
from spdebench.metrics import evaluate, law_scores
from spdebench.noise import KeyedSeed
from spdebench.suites import SUITES, Suite, SuiteProblem

SECRET = b"0123456789abcdef0123456789abcdef"
FIELDS = {"points": 16, "truncation": 8, "steps": 4, "frames": 4, "sigma": 1.0, "kappa": 0.5}
TINY = Suite(
    name="tiny",
    title="two small problems",
    problems=tuple(SuiteProblem(name=name, equation=name, fields=FIELDS) for name in ("phi41", "burgers")),
)
CARD_ONE = CARD.replace("seeds = [0, 1, 2]", "seeds = [0]")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with secret, card, a challenge, runs, and a scored submission ``my-method``; the suite is registered."""
    with pytest.MonkeyPatch.context() as patch:
        SUITES.values()
        patch.setattr(SUITES, "_items", {**SUITES._items, "tiny": TINY})
        folder = tmp_path_factory.mktemp("challenge")
        patch.chdir(folder)
        Path("SECRET").write_bytes(SECRET + b"\n")
        Path("card.toml").write_text(CARD_ONE)
        made = ("challenge", "make", "tiny", "--seed-file", "SECRET", "-n", 6, "--members", 4, "--seen", 2)
        assert call(*made, "--only", "phi41", "--out", "inputs") == 0
        data = sb.generate(sb.equation("phi41", **FIELDS), n=40, seen=2, out="data")
        path, law = (
            sb.train("mean", data, out="runs").path,
            sb.train("climatology", sb.Task(data, seen=2), out="runs").path,
        )
        runs = ("--run", path, "--run", law, "--members", 3)
        assert call("challenge", "predict", "inputs", *runs, "--card", "card.toml", "--out", "my-method") == 0
        assert call("challenge", "score", "my-method", "--seed-file", "SECRET") == 0
        yield folder


@pytest.fixture
def copy(place, tmp_path, monkeypatch):
    """A copy of that folder as the current one, the submission not scored yet."""
    shutil.copytree(place, tmp_path / "copy", ignore=shutil.ignore_patterns("scores.json", "runs", "data"))
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def refused(capsys, *words: object) -> str:
    """The one line of a command that is refused."""
    capsys.readouterr()
    assert call(*words) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return err


def test_inputs_are_the_solvers_own_and_without_truth(place):
    challenge = open_challenge(place / "inputs")
    assert challenge.labels == ("phi41", "phi41-seen2")
    path, law = (challenge.inputs(label) for label in challenge.labels)
    eq = sb.equation("phi41", **FIELDS)
    truth = sb.simulate(eq, KeyedSeed.of(SECRET, "tiny/phi41"), range(6))
    assert np.array_equal(path.u0, truth.u0) and np.array_equal(path.dw, truth.dw)
    assert np.array_equal(solved_truth(path.problem, KeyedSeed.of(SECRET, "tiny/phi41")), truth.u)
    seed = KeyedSeed.of(SECRET, "tiny/phi41-seen2")
    members = solved_truth(law.problem, seed)
    assert members.shape == (6, 4, 5, 16) and np.array_equal(members[:, 2, 0], law.u0)
    partial = sb.noise.PartialNoise(2, 3)
    assert np.array_equal(members[:, 2], sb.simulate(eq, seed, range(6), partial=partial).u)
    seen = sb.simulate(eq, seed, range(6), partial=sb.noise.PartialNoise(2))
    assert np.array_equal(law.dw, seen.dw) and not np.array_equal(law.u0, path.u0)
    import pyarrow.parquet as pq

    assert pq.read_schema(place / "inputs" / "phi41.parquet").names == ["u0", "dw"]
    assert pq.read_schema(place / "inputs" / "phi41-seen2.parquet").names == ["u0", "dw_seen"]
    assert SECRET not in b"".join(file.read_bytes() for file in (place / "inputs").iterdir())


def test_scores_are_those_of_evaluate_on_the_hidden_truth(place):
    found = {scored.seen: scored for scored in submissions_of(place)[0].results}
    opened = {prediction.problem.seen: prediction for prediction in open_predictions(place / "my-method").predictions}
    for seen, prediction in opened.items():
        problem, grid = prediction.problem, sb.Grid.unit(16)
        truth = solved_truth(problem, KeyedSeed.of(SECRET, f"tiny/{problem.label}"))
        times = problem.build().times.numpy()
        score = evaluate if seen is None else law_scores
        expected = score(prediction.read(), truth, grid, times=times, resamples=200)
        scored = found[seen]
        assert scored.value == expected[scored.metric].value and scored.hidden and scored.n == 6
        assert scored.scores[scored.metric].low < scored.value < scored.scores[scored.metric].high
    assert set(found[None].scores) > {"rel_l2", "w12", "sigw1", "spectrum"} and found[2].members == 3


def test_solutions_that_memory_cannot_hold_are_refused_before_anything_is_solved(copy, monkeypatch, capsys):
    solution = 4 * 5 * 16  # bytes: float32, 5 frames, 16 points
    monkeypatch.setattr(memory, "free_memory", lambda: 6 * 4 * solution - 1)
    monkeypatch.setattr(score, "solved_truth", lambda *_: pytest.fail("a problem was solved"))
    err = refused(capsys, "challenge", "score", "my-method", "--seed-file", "SECRET")
    assert "the 24 true solutions of phi41-seen2: " in err and "fewer inputs or members" in err
    assert not Path("my-method/scores.json").exists()
    monkeypatch.setattr(memory, "free_memory", lambda: 6 * (solution + 4 * 16) - 1)
    err = refused(capsys, "challenge", "make", "tiny", "--seed-file", "SECRET", "-n", 6, "--out", "more")
    assert "6 inputs of phi41: " in err and "use -n for fewer inputs" in err and not Path("more").exists()


def submissions_of(place: Path):
    """The submissions of a folder into which the scored one was copied."""
    target = place / "submissions" / "my-method"
    target.mkdir(parents=True, exist_ok=True)
    for name in ("card.toml", "scores.json"):
        shutil.copy(place / "my-method" / name, target)
    return submissions(place / "submissions")


def test_a_submission_is_checked(place, tmp_path, capsys, monkeypatch):
    submissions_of(place)
    monkeypatch.chdir(place)
    capsys.readouterr()
    assert call("challenge", "check") == 0
    assert "my-method: good; fewer than 3 training seeds; seals were not checked" in capsys.readouterr().out
    assert call("challenge", "check", "submissions/my-method", "--seed-file", "SECRET") == 0
    shutil.copytree("submissions", tmp_path / "submissions")
    monkeypatch.chdir(tmp_path)
    scores = Path("submissions/my-method/scores.json")
    values = json.loads(scores.read_text())
    values["results"][0]["scores"]["rel_l2"]["value"] /= 2
    scores.write_text(json.dumps(values))
    assert call("challenge", "check") == 0
    assert "were changed since they were made" in refused(capsys, "challenge", "check", "--seed-file", place / "SECRET")
    Path("submissions/my-method/weights.bin").write_bytes(bytes(10))
    Path("submissions/notes.txt").write_text("x")
    capsys.readouterr()
    assert call("challenge", "check") == 2
    err = capsys.readouterr().err
    assert "notes.txt: is not a folder" in err and "weights.bin does not belong to a submission" in err
    assert "no such folder" in refused(capsys, "challenge", "check", "nowhere")


def test_a_second_run_reproduces_the_scores(copy, capsys):
    score_submission("my-method", SECRET, own=True)
    shutil.copytree("my-method", "again")
    note = ("challenge", "reproduce", "my-method", "again", "--seed-file", "SECRET")
    assert "or are not those of again" in refused(capsys, *note)  # a copy of the scores is no second run
    score_submission("again", SECRET)
    assert call(*note, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["reproduced"] for row in rows] == [True, True] and not any(row["hidden truth"] for row in rows)
    check = ("challenge", "check", submissions_of(copy)[0].name, "--seed-file", "SECRET")
    shutil.copytree("submissions/my-method", "forged/my-method")
    assert call(*check[:2], "submissions", *check[3:]) == 0
    scores = Path("forged/my-method/scores.json")
    scores.write_text(re.sub(r'("again": )[^,]*', r"\g<1>0.5", scores.read_text(), count=1))
    assert "the second run of phi41, seed 0, was not noted" in refused(capsys, *check[:2], "forged", *check[3:])
    make_challenge("tiny", bytes(range(32)), "other", only="phi41", n=6)
    challenge = open_challenge("other")
    write_submission("third", challenge, "card.toml", {("phi41", 0): np.zeros((6, 5, 16))})
    score_submission("third", bytes(range(32)))
    assert "predicts the same inputs" in refused(capsys, *note[:3], "third", *note[4:])


def changed_manifest(folder: Path, **changes: object) -> None:
    file = folder / "manifest.json"
    values = json.loads(file.read_text())
    values["problems"][0]["equation"]["sigma"] = 0.5
    values["problems"][0].update(changes)
    file.write_text(json.dumps(values))


def other_array(folder: Path, array: np.ndarray, **identity: object) -> None:
    path = folder / "predictions" / "phi41-seed0.parquet"
    stated = open_predictions(folder).predictions[0].file.identity
    path.unlink()
    write_arrays(path, {**stated, **identity}, {"u": array})


def as_link(path: Path) -> None:
    """Put the file or folder elsewhere, and a link in its place."""
    path.symlink_to(path.rename(Path.cwd() / f"elsewhere-{path.name}"))


BAD = np.zeros((6, 5, 16))
BAD[3, 2, 1] = np.nan


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (changed_manifest, "was changed since the challenge was made"),
        (
            lambda f: (f.parent / "SECRET").write_text("0123456789" * 4),
            "this is not the secret of the manifest in my-method",
        ),
        (
            lambda f: (f.parent / "SECRET").write_text("short"),
            "has 5 bytes, 5 of them different; at least 32 and 8 are needed",
        ),
        (lambda f: (f.parent / "SECRET").unlink(), "no such file: SECRET; make a secret with: openssl"),
        (lambda f: other_array(f, np.zeros((6, 5, 15))), "expected u (6, 5, 16)"),
        (lambda f: other_array(f, np.zeros((5, 5, 16))), "expected u (6, 5, 16)"),
        (lambda f: other_array(f, BAD), "is not finite in 1 of 480 numbers"),
        (lambda f: other_array(f, np.zeros((6, 5, 16)), inputs="0" * 64), "has inputs 000000000000..., expected"),
        (lambda f: other_array(f, np.zeros((6, 5, 16)), challenge="0" * 64), "has challenge 000000000000..., expected"),
        (lambda f: (f / "card.toml").write_text(CARD_ONE.replace("parameters = 120\n", "")), "parameters is missing"),
        (lambda f: (f / "card.toml").unlink(), "my-method/card.toml is missing"),
        (lambda f: (f / "manifest.json").unlink(), "my-method/manifest.json is missing"),
        (lambda f: changed_manifest(f, n=5), "was changed since the challenge was made"),
        (lambda f: (f / "card.toml").write_text(CARD), "phi41 has the training seeds [0], the card says [0, 1, 2]"),
        (lambda f: as_link(f / "card.toml"), "card.toml is not a regular file"),
        (lambda f: as_link(f / "predictions"), "predictions is not a folder"),
        (lambda f: as_link(f / "predictions" / "phi41-seed0.parquet"), "phi41-seed0.parquet is not a regular file"),
        (
            lambda f: (f / "weights.pkl").write_bytes(b"x"),
            "weights.pkl does not belong to a submission, which has card",
        ),
        (lambda f: (f / "predictions" / "more.txt").write_text("x"), "more.txt does not belong to a submission"),
        (lambda f: (f / "predictions" / "phi41-seed0.parquet").write_bytes(b"PAR1"), "is not a whole Parquet file"),
        (lambda f: shutil.rmtree(f / "predictions"), "my-method has no predictions"),
        (lambda f: f.rename(f.with_name("gone")), "my-method has no predictions"),
    ],
)
def test_a_spoilt_submission_is_not_scored(copy, spoil, message):
    spoil(copy / "my-method")
    with pytest.raises(sb.UserError, match=re.escape(message)):
        score_submission("my-method", read_secret("SECRET"))
    assert not list(copy.rglob("scores.json")) and not list(copy.rglob("*.tmp"))


def test_the_command_refuses_it_in_one_line(copy, capsys):
    changed_manifest(copy / "my-method")
    assert "was changed" in refused(capsys, "challenge", "score", "my-method", "--seed-file", "SECRET")
    assert not list(copy.rglob("scores.json")) and not list(copy.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("make", "tin", "--out", "x"), "unknown suite 'tin'; did you mean 'tiny'?"),
        (("make", "tiny", "--out", "x", "--only", "phi4"), "unknown problem of the suite tiny 'phi4'"),
        (("make", "tiny", "--out", "x", "-n", 2), "n must be between 3 and 100000, got 2"),
        (("make", "tiny", "--out", "x", "--seen", 8), "seen must be between 0 and J-1 = 7, got 8"),
        (("make", "tiny", "--out", "inputs"), "inputs already exists"),
        (("make", "tiny", "--out", "runs", "--overwrite"), "runs is not replaced, because runs/"),
    ],
)
def test_mistakes_of_making_are_one_line(place, words, message, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert message in refused(capsys, "challenge", *words, "--seed-file", "SECRET")
    assert not Path("x").exists()


def test_a_secret_that_can_be_guessed_is_refused(tmp_path):
    """Its SHA-256 is published: whoever guesses the secret sees that the guess is right."""
    for secret in (b"", b"abc", b"a" * 64, b"0123456" * 10):
        (tmp_path / "SECRET").write_bytes(secret)
        with pytest.raises(sb.UserError, match="or it could be guessed; draw one with: openssl rand"):
            read_secret(tmp_path / "SECRET")
        with pytest.raises(sb.UserError, match="or it could be guessed"):
            make_challenge("core", secret, tmp_path / "x", only="phi41", n=3)
    assert not (tmp_path / "x").exists()


def test_mistakes_of_predicting_are_one_line(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    run, law = sorted(Path("runs").iterdir(), key=lambda path: sb.open_run(path).spec.task_spec.seen is not None)
    predict = ("challenge", "predict", "inputs", "--card", "card.toml", "--out")
    assert "small letters" in refused(capsys, *predict, "My_Method", "--run", run)
    assert "my-method already exists" in refused(capsys, *predict, "my-method", "--run", run)
    assert "are both for phi41" in refused(capsys, *predict, "x", "--run", run, "--run", run)
    assert "no such run" in refused(capsys, *predict, "x", "--run", "nowhere")
    Path("other.toml").write_text(CARD_ONE.replace("seeds = [0]", "seeds = [5]"))
    other = (*predict[:4], "other.toml", "--out", "x")
    assert "phi41-seen2 has the training seeds [0], the card says [5]" in refused(capsys, *other, "--run", law)
    make_challenge("tiny", SECRET, tmp_path / "b", only="burgers", n=6)
    words = ("challenge", "predict", tmp_path / "b", "--card", "card.toml", "--out", "x", "--run", run)
    assert "was trained for none of the problems burgers" in refused(capsys, *words)
    shutil.copytree("inputs", tmp_path / "inputs")
    shutil.copy(tmp_path / "b" / "burgers.parquet", tmp_path / "inputs" / "phi41.parquet")
    words = ("challenge", "predict", tmp_path / "inputs", "--card", "card.toml", "--out", "x", "--run", run)
    assert "does not have the checksum of the manifest" in refused(capsys, *words)
    assert not Path("x").exists()


def test_predict_ends_with_the_command_of_the_owner(place, tmp_path, capsys):
    run = next(path for path in (place / "runs").iterdir() if path.name.startswith("mean"))
    words = ("predict", place / "inputs", "--run", run, "--card", place / "card.toml", "--out", tmp_path / "mine")
    assert call("challenge", *words) == 0
    command = f"spdebench challenge score {tmp_path / 'mine'} --seed-file SECRET"
    assert capsys.readouterr().out.endswith(f"the owner of the challenge, who scores it with\n  {command}\n")


def test_arrays_of_any_framework_are_taken_and_checked(place, tmp_path):
    challenge = open_challenge(place / "inputs")
    card, given = place / "card.toml", challenge.inputs("phi41-seen2")
    members = np.repeat(given.u0[:, None, None], 5, axis=2).repeat(3, axis=1)
    write_submission(tmp_path / "constant", challenge, card, {("phi41-seen2", 0): members})
    assert score_submission(tmp_path / "constant", SECRET).results[0].members == 3
    for array, message in [
        (members[:, 0], "must have the shape"),
        (np.full_like(members, np.inf), "is not finite in 1440 of 1440"),
        (members.astype(complex), "expected real numbers, got complex128"),
        ([[1.0], [1.0, 2.0]], "is not an array"),
    ]:
        with pytest.raises(sb.UserError, match=message):
            write_submission(tmp_path / "bad", challenge, card, {("phi41-seen2", 0): array})
    with pytest.raises(sb.UserError, match="unknown problem of the challenge 'phi42'"):
        write_submission(tmp_path / "bad", challenge, card, {("phi42", 0): members})
    for key in ("phi41", ("phi41", "0"), ("phi41", True)):
        with pytest.raises(sb.UserError, match="predictions are keyed by problem and training seed"):
            write_submission(tmp_path / "bad", challenge, card, {key: members})
    tensor = torch.tensor(members, requires_grad=True)
    write_submission(tmp_path / "tensor", place / "inputs", card, {("phi41-seen2", np.int64(0)): tensor})
    assert np.array_equal(open_predictions(tmp_path / "tensor").predictions[0].read(), members)
    with pytest.raises(sb.UserError, match="no predictions were given"):
        write_submission(tmp_path / "bad", challenge, card, {})
    assert not (tmp_path / "bad").exists()


PAGE = Path(__file__).parents[2] / "docs" / "submit.md"


@pytest.mark.slow
def test_the_page_leads_from_an_empty_folder_to_a_row(tmp_path):
    """docs/submit.md as written: indented lines are typed, the card is saved, the Python block is run, in order."""
    lines = ["set -e", f'spdebench() {{ {sys.executable} -m spdebench "$@"; }}']
    pattern = r"```toml\n(.*?)```|```py\n(.*?)```|^    (\S[^\n]*)$"
    for card, script, typed in re.findall(pattern, PAGE.read_text(), re.M | re.S):
        file = "card.toml" if card else f"{sys.executable} -"
        lines.append(typed.strip() if typed else f"{'cat > ' * bool(card)}{file} <<'END'\n{card or script}END")
    assert sum(line.startswith("spdebench ") for line in lines) == 8
    (tmp_path / "page.sh").write_text("\n".join(lines))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "page.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "my-method: good" in done.stdout and "my-method: hidden truth" in done.stdout
    (mine,) = submissions(tmp_path / "submissions")
    assert mine.results[0].value < 0.5
    assert score_submission(tmp_path / "constant", read_secret(tmp_path / "SECRET")).results[0].seen == 8


def test_the_submissions_of_the_repository_are_good(tmp_path, capsys):
    """Their files, and the seals of the entry whose secret the page has published."""
    (published,) = re.findall(r"```text\n([0-9a-f]{64})\n```", PAGE.read_text())
    (tmp_path / "SECRET").write_text(published)
    folder = PAGE.parents[1] / "submissions"
    assert call("challenge", "check", folder, "--seed-file", tmp_path / "SECRET") == 0
    assert "step: good" in capsys.readouterr().out
    closed = hashlib.sha256(published.encode()).hexdigest()
    assert {scored.challenge for entry in submissions(folder) if entry.name == "step" for scored in entry.results} == {
        closed
    }
