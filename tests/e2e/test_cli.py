"""The command line as a user meets it: verbs, mistakes, interruptions."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spdebench as sb
from command_line import call
from spdebench.cli.output import size
from spdebench.cli.train import one_dataset
from spdebench.equations import meanings as meanings_of_fields
from spdebench.errors import UserError
from spdebench.models import meanings as meanings_of_settings

TINY = ["points=16", "truncation=8", "steps=10", "frames=10"]


@pytest.fixture
def dataset(tmp_path) -> Path:
    assert call("generate", "phi41", *TINY, "-n", "6", "--out", str(tmp_path)) == 0
    return next(tmp_path.glob("*.parquet"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["generate", "ph41"], "unknown equation 'ph41'; did you mean 'phi41'?"),
        (["generate", "phi41", "sgima=1"], "did you mean 'sigma'"),
        (["generate", "phi41", "sigma=abc"], "must be a number"),
        (["generate", "phi41", "truncation=0"], "at least 1"),
        (["generate", "phi41", "truncation=-2"], "at least 1"),
        (["generate", "phi41", "boundary=dirichlet", "basis=fourier"], "use basis=sine"),
        (["generate", "phi41", "-n", "0"], "n must be at least 1"),
        (["generate", "phi41", "-n", "many"], "Invalid value for '-n'"),
        (["generate", "phi41", "-n", "3", "--out", "/proc/nowhere"], "choose another folder"),
        (["generate", "phi41", "-n", "99999999999"], "GB are free"),
        (["generate", "phi41", "--device", "tpu9"], "unknown device"),
        (["generate", "phi41", "--device", "cuda", "-n", "2"], "use --device cpu"),
        (["generate", "phi41", "--workers", "0", "-n", "2"], "workers must be at least 1"),
        (["generate", "phi41", "--nope"], "No such option"),
        (["generate", "phi41", "--sigma", "3"], "--sigma; fields are given without dashes: sigma=VALUE"),
        (["train", "fno", "x.parquet", "--epochs=3"], "--epochs; fields are given without dashes: epochs=VALUE"),
        (["generate", "phi41", "seen=3"], "'seen' is an option of this command, not a field: --seen 3"),
        (["generate", "phi41", "n=3"], "'n' is an option of this command, not a field: -n 3"),
        (["genrate"], "No such command"),
        (["list", "equation"], "did you mean 'equations'"),
        (["show", "phi4"], "did you mean 'phi4"),
        (["data", "info", "missing.parquet"], "no such dataset"),
        (["plot", "solutoin", "x"], "did you mean 'solution'"),
        (["plot", "animatoin", "nse"], "did you mean 'animation'"),
        (["plot", "truncation", "ph41"], "did you mean 'phi41'"),
        (["plot", "truncation", "phi41", "-n", "0"], "-n must be at least 1, got 0"),
        (["plot", "solution", "x.parquet", "-n", "3"], "-n and --seed are options of the studies"),
        (["bench", "data", "-n", "0"], "-n must be at least 1, got 0"),
        (["generate", "phi41", "--device", "mps"], "unknown device 'mps'; use cpu or cuda"),
        (["show", "etdrk4", "x=1"], "show etdrk4 takes no key=value; a scheme has no fields"),
        (["show", "phi41-periodic"], "'phi41-periodic' is a table: spdebench table phi41-periodic prints it"),
        (["show", "paper"], "'paper' is a suite: spdebench suite paper prints it"),
        (["show", "solution"], "'solution' is a kind of plot: spdebench plot solution ... draws it"),
        (["show", "phi99"], "; did you mean 'phi41', 'phi42' or 'phi43'?"),
        (["evaluate", "x.npy", "--truth", "missing.parquet"], "no such file or folder: x.npy"),
        (["evaluate", "nofile"], "no such file or folder: nofile"),
        (["results", "--results", "nowhere", "--out", "x.md"], "no run record in nowhere"),
        (["results", "--results", __file__, "--out", "x.md"], "is a file, not a folder of run records"),
        (["table", "wave-dirichlet", "--results", __file__], "is a file, not a folder of run records"),
        (["findings", "kvd"], "unknown finding 'kvd'; did you mean 'kdv'?\n"),
        (["results", "--out", "no/x.md"], "no such folder: no; make it first, or write x.md into another"),
        (["findings", "--out", "no/x.md"], "no such folder: no"),
        (["predict", "run", "x.parquet", "--out", "no/x.npy"], "no such folder: no"),
        (["plot", "solution", "x.parquet", "--out", "no/x.png"], "no such folder: no"),
        (["compare", "a", "b", "--out", "no/x.png"], "no such folder: no"),
        (["show", "run", "--out", "no/x.png"], "no such folder: no"),
        (["data", "card", "x.parquet", "--out", "no/x.md"], "no such folder: no"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call(*words) == 2
    err = capsys.readouterr().err
    assert message in err and err.startswith("error: ") and err.count("\n") == 1
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.*")) and not (tmp_path / "no").exists()


@pytest.mark.parametrize("words", [[], ["data"], ["bench"]])
def test_a_group_without_a_word_shows_its_help(words, capsys):
    assert call(*words) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("Usage: ") and "\n\nCommands:\n" in shown.err and not shown.out


def test_the_version(capsys):
    assert call("--version") == 0
    assert capsys.readouterr().out == f"spdebench {sb.__version__}\n"


def test_generate_info_verify_card_plot(dataset, capsys, tmp_path):
    capsys.readouterr()
    assert call("data", "info", str(dataset), "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n"] == 6 and facts["identity"]["equation"] == "phi41"
    assert call("data", "verify", str(dataset)) == 0
    assert "1 checksum matches; 6 samples solved again from seed 0: the same bits" in capsys.readouterr().out
    assert call("data", "card", str(dataset), "--samples", "2", "--out", str(tmp_path / "card.md")) == 0
    text = (tmp_path / "card.md").read_text()
    assert "edition paper | edition converged" in text and "continuous path" in text
    picture = tmp_path / "p.png"
    assert call("plot", "solution", str(dataset), "--out", str(picture)) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert call("generate", "phi41", *TINY, "-n", "6", "--out", str(tmp_path)) == 0
    assert "already exists" in capsys.readouterr().out


def test_commands_for_files_take_several_or_say_how_to_choose(dataset, tmp_path, capsys):
    assert call("generate", "phi41", *TINY, "-n", "8", "--chunk", "3", "--out", str(tmp_path)) == 0
    other = next(tmp_path.glob("*n8*.parquet"))
    files = [str(dataset), str(other)]
    capsys.readouterr()
    assert call("data", "verify", *files) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(files[0]) and "6 samples solved again from seed 0: the same bits" in first
    assert (
        second.startswith(files[1])
        and "of 8 samples solved again from seed 0: the same bits; the solved chunks were chosen at random" in second
    )
    assert call("data", "verify", *files, "--json") == 0
    assert [each["coverage"] >= 5 / 8 for each in json.loads(capsys.readouterr().out)] == [True, True]
    assert call("data", "card", *files, "--samples", "2", "--out", str(tmp_path / "cards")) == 0
    assert {p.stem for p in (tmp_path / "cards").iterdir()} == {dataset.stem, other.stem}
    capsys.readouterr()
    (tmp_path / "broken.parquet").write_bytes(b"no")
    assert call("data", "verify", str(tmp_path / "broken.parquet"), files[0]) == 1
    shown = capsys.readouterr()
    assert "is not a whole Parquet file" in shown.err and "the same bits" in shown.out  # the others are still verified
    for words in (["train", "mean"], ["sweep", "deeponet"]):
        assert call(*words, *files) == 2
        assert "one run has one dataset, 2 were given: choose one" in capsys.readouterr().err
    assert call("predict", "run", *files) == 2
    assert "takes one dataset file: choose one of them" in capsys.readouterr().err


def test_a_pattern_may_also_match_the_file_of_members_of_a_dataset():
    members, samples = (
        "data/phi41-seen8-0a-members64-1b.parquet",
        "data/phi41-seen8-0a.parquet",
    )
    assert one_dataset(Path(members), [samples, "seen=8"]) == (Path(samples), ["seen=8"])
    assert one_dataset(Path(samples), [members]) == (Path(samples), [])
    assert one_dataset(Path(members), ["seen=8"]) == (Path(members), ["seen=8"])  # refused later, with a reason
    assert one_dataset(Path("."), []) == (Path("."), [])  # a folder, refused later too
    with pytest.raises(UserError, match=r"2 were given: choose one, such as data/phi41-seen8-0a.parquet"):
        one_dataset(Path(members), [samples, "data/kpz.parquet"])


def test_dry_run_makes_nothing(tmp_path, capsys):
    assert call("generate", "phi41", *TINY, "-n", "50", "--out", str(tmp_path / "new"), "--dry-run", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == 50 * 4 * (16 + 2 * 11 * 16) and facts["seconds"] > 0
    assert not (tmp_path / "new").exists()


def test_export_and_import(dataset, tmp_path, capsys):
    assert call("data", "export", str(dataset), "--out", str(tmp_path / "flat")) == 0
    flat = next((tmp_path / "flat").glob("*.parquet"))
    assert call("data", "import", str(flat), "--out", str(tmp_path / "back")) == 0
    back = sb.open_dataset(next((tmp_path / "back").glob("*.parquet")))
    np.testing.assert_allclose(back.u, sb.open_dataset(dataset).u, atol=1e-7)
    assert call("data", "verify", str(back.path)) == 0
    assert "no seed" in capsys.readouterr().out


def test_evaluate(dataset, tmp_path, capsys):
    truth = sb.open_dataset(dataset)
    np.save(tmp_path / "p.npy", truth.u[2:6] * 1.1)
    capsys.readouterr()
    assert (
        call(
            "evaluate",
            str(tmp_path / "p.npy"),
            "--truth",
            str(dataset),
            "--rows",
            "2:6",
            "--metrics",
            "rel_l2,rmse",
            "--floors",
            "--json",
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    assert {r["metric"]: r["value"] for r in result["scores"]}["rel_l2"] == pytest.approx(0.1, rel=1e-5)
    assert {row["metric"] for row in result["floors"]} == {"rel_l2", "rmse"}
    assert all(row["converged"] > 0 for row in result["floors"])
    assert call("evaluate", str(dataset), "--truth", str(dataset), "--metrics", "rel_l2") == 0
    assert call("evaluate", str(dataset), "--truth", str(dataset), "--label", "z") == 2
    assert call("evaluate", str(dataset), "--truth", str(dataset), "--device", "cpu:0") == 2
    assert call("evaluate", str(dataset), "--truth", "missing.parquet") == 2
    err = capsys.readouterr().err
    assert "--label is for a run's folder" in err and "no such dataset" in err
    assert "--device is for a run's folder" in err
    np.save(tmp_path / "bad.npy", truth.u[:, :5])
    assert call("evaluate", str(tmp_path / "bad.npy"), "--truth", str(dataset)) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "metrics"],
        ["show", "kpz", "sigma=1"],
        ["show", "acf"],
        ["show", "etdrk4"],
        ["show", "etdrk4", "--json"],
        ["doctor"],
        ["show", "phi41", "--json"],
    ],
)
def test_verbs_that_tell(words, capsys):
    assert call(*words) == 0
    assert len(capsys.readouterr().out) > 100


def test_models_are_listed_with_formulas_and_shown_with_all_their_settings(capsys):
    assert call("list", "models", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["models"]
    assert all("=" in line.splitlines()[1] for line in listed.values())
    assert listed["trees"].endswith("tau_i the trees of height 2 (`regularity`)")
    assert call("show", "ncde-fno", "--json") == 0
    shown = json.loads(capsys.readouterr().out)["settings"]
    phi = {row["when"].get("sigma", 0.1): row for row in shown if row["equation"] == "phi41"}
    assert [phi[sigma]["parameters"] for sigma in (0.1, 1.0)] == [33313, 11729]
    assert call("show", "ncde-fno") == 0
    assert "  phi41 sigma=1.0: 11,729 parameters\n" in capsys.readouterr().out


def test_every_field_and_every_setting_has_a_meaning(capsys):
    for name, cls in ((n, sb.EQUATIONS[n]) for n in sb.EQUATIONS):
        fields = (f.name for f in dataclasses.fields(cls) if cls.__module__.startswith("spdebench."))
        assert [field for field in fields if not meanings_of_fields.meaning(cls, field)] == [], name
    for name, cls in ((n, sb.MODELS[n]) for n in sb.MODELS):
        settings = (f.name for f in dataclasses.fields(cls.config_class) if cls.__module__.startswith("spdebench."))
        assert [setting for setting in settings if not meanings_of_settings.meaning(name, setting)] == [], name
    assert call("show", "heat") == 0
    assert re.search(r"^  noise_type +additive +\w.*; choices: additive, mult", capsys.readouterr().out, re.M)
    assert call("show", "linear") == 0
    assert re.search(r"^  ridge +1e-12 +ridge parameter", capsys.readouterr().out, re.M)
    assert call("show", "rel_l2") == 0
    assert "e = V - U" in capsys.readouterr().out


def test_truncation_study(tmp_path, capsys):
    picture = tmp_path / "j.svg"
    assert call("plot", "truncation", "phi41", *TINY[:1], *TINY[2:], "-n", "8", "--out", str(picture)) == 0
    out = capsys.readouterr().out
    assert "energy" in out and picture.read_text().startswith("<?xml")


STOPS = """
import importlib, time
gen = importlib.import_module("spdebench.data.generate")
real, made = gen.make_part, []
def stops(unit):
    if len(made) == 2:
        print("two", flush=True)
        time.sleep(600)
    made.append(unit)
    return real(unit)
gen.make_part = stops
"""
"""A command of which the third chunk takes ten minutes."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> bytes:
    return sb.generate(sb.equation("kdv"), n=24, chunk=8, out=tmp_path_factory.mktemp("whole")).read_bytes()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_typed_again_gives_the_same_bytes(uninterrupted, tmp_path, how):
    (tmp_path / "stops.py").write_text(STOPS)
    words = ["generate", "kdv", "-n", "24", "--chunk", "8", "--out", str(tmp_path / "cut")]
    process = subprocess.Popen(
        [sys.executable, "-m", "spdebench", "--with", str(tmp_path / "stops.py"), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None and "two\n" in iter(process.stdout.readline, "")
    process.send_signal(how)
    _, err = process.communicate(timeout=120)
    assert process.returncode == (-9 if how == signal.SIGKILL else 130)
    if how == signal.SIGINT:
        assert "command continues" in err and "Traceback" not in err
    assert not list((tmp_path / "cut").glob("*.parquet"))
    assert len(list((tmp_path / "cut").glob(".*.parts/chunk-*.f4"))) == 2
    assert call(*words) == 0
    again = next((tmp_path / "cut").glob("*.parquet"))
    assert again.read_bytes() == uninterrupted
    assert os.listdir(tmp_path / "cut") == [again.name]


MEASURED = """
import sys
from spdebench.__main__ import main
from spdebench.engines import peak_memory

try:
    main()
finally:
    print(peak_memory(), file=sys.stderr)
"""


@pytest.mark.slow
def test_memory_is_bounded_by_the_chunk(tmp_path):
    """phi41, n = 12,000, which is 0.6 GB of u and dW: under 1 GiB in all, of which the libraries take their share."""
    words = ("generate", "phi41", "-n", "12000", "--out", tmp_path)
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.splitlines()[-1]) < 1 << 30


def test_out_is_a_folder_and_not_the_name_of_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = sb.generate(sb.equation("phi41", points=16, truncation=8, frames=4, steps=4), n=4, out="data")
    for words in (["generate", "phi41", "-n", "2"], ["data", "export", data], ["data", "import", data]):
        assert call(*words, "--out", "flat.parquet") == 2
        assert "--out is a folder" in capsys.readouterr().err
    assert not Path("flat.parquet").exists()


def test_sizes_are_rounded_to_the_next_unit():
    assert [size(b) for b in (999, 999_400, 999_600, 1_500_000)] == ["999 B", "999 kB", "1 MB", "1.5 MB"]
