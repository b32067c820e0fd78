"""Pipes, devices and huge files in the place of ours, specs that ask for too much memory, and escape sequences."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from test_fuzz_data import forged, texts_of

import spdebench as sb
from command_line import call
from fake_records import dataset, record
from in_children import run_code
from spdebench.errors import UserError
from spdebench.files import MOST_JSON, read_text
from spdebench.records import store
from spdebench.report.board.shown import shown_runs
from spdebench.report.results import page as results_page
from spdebench.report.site import build
from spdebench.report.site.content import Content
from spdebench.report.site.datasets import dataset_pages
from spdebench.report.site.render import Templates
from spdebench.solvers.loop import check_memory

TINY = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)
ESCAPE = "\x1b[31mred\x07<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with data, a finished run and its record."""
    folder = tmp_path_factory.mktemp("made")
    path = sb.generate(TINY, n=40, out=folder / "data")
    run = sb.train("mean", path, out=folder / "runs")
    store.add(folder / "results", run.record)
    return folder


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(30 << 30)


@pytest.mark.parametrize("put", [pipe, endless, huge])
@pytest.mark.parametrize("name", ["spec.json", "record.json", "log.jsonl", "scores.json", "best.safetensors", "lock"])
def test_a_foreign_file_is_refused_at_once_with_one_line(tmp_path, put, name, capsys):
    run = tmp_path / "runs" / "mean-phi41-0123456789"
    run.mkdir(parents=True)
    (run / "spec.json").write_text("{}")
    (run / name).unlink(missing_ok=True)
    put(run / name)
    for words in (["status"], ["evaluate", str(run)]):
        folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")] * (words == ["status"])
        assert call(*words, *folders) in (0, 2)
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("put", [pipe, endless, huge])
def test_records_that_are_no_regular_file_of_bounded_size(tmp_path, put):
    put(tmp_path / "phi41.jsonl")
    with pytest.raises(UserError, match=r"cannot (read|write)"):
        store.read(tmp_path)
    with pytest.raises(UserError, match=r"cannot (read|write)"):
        store.add(tmp_path, record("fno", dataset(8, 0.0)))


@pytest.mark.parametrize("words", ["results --readme README.md", "findings printed-twice --out README.md", "merge ."])
def test_a_page_or_a_file_of_records_that_is_not_text_is_one_line(made, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    Path("unfinished.json").write_text("{}")
    for name in ("README.md", "records.jsonl"):
        Path(name).write_bytes(b"\xff\n")
    results = [] if words == "merge ." else ["--results", made / "results"]
    assert call(*words.split(), *results) == 2
    assert "is not a text file in UTF-8" in capsys.readouterr().err


def test_a_card_that_is_not_text_is_one_line(made, tmp_path, capsys):
    file = shutil.copy(next((made / "data").glob("*.parquet")), tmp_path)
    Path(file).with_suffix(".md").write_bytes(b"\xff\n")
    assert call("data", "push", file, "--out", tmp_path / "published") == 2
    assert "is not a text file in UTF-8" in capsys.readouterr().err


def test_the_bound_of_a_json_file(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b" " * 100)
    assert len(read_text(path, 100)) == 100
    with pytest.raises(OSError, match="100 bytes, more than 99"):
        read_text(path, 99)
    assert MOST_JSON == 64 << 20


# --- memory ---------------------------------------------------------------------------------------------------------
def test_a_forged_truncation_is_refused_before_memory_is_asked_for(made, tmp_path):
    (path,) = (made / "data").glob("*.parquet")
    texts = texts_of(path)
    spec = json.loads(texts["spec"])
    spec["fields"]["truncation"] = 4194302
    (tmp_path / "data").mkdir()
    bad = forged(path, tmp_path / "data" / "bad.parquet", texts | {"spec": json.dumps(spec, sort_keys=True)})
    for words in (["verify", str(bad)], ["card", str(bad)], ["info", str(bad)]):
        assert call("data", *words) == 2
    content = build.gather(made / "results", None, bad.parent)  # the site names the file, and shows the rest
    assert content.runs and "1024 times" in content.unread["bad.parquet"]


def test_samples_that_do_not_fit_into_memory_are_refused(monkeypatch):
    check_memory(TINY, 1000)
    with pytest.raises(UserError, match=r"solving 1000000000 samples of .* with J=8 .*: \S+ GB .* GB are free"):
        sb.simulate(TINY, 0, range(10**9))


def test_memory_that_cannot_be_had_is_one_line(tmp_path):
    """With 300 MB of address space beyond what is loaded, and no estimate that would refuse earlier."""
    script = (
        "import resource, sys, torch, numpy, scipy, pandas, pyarrow.parquet\n"
        "import spdebench.solvers.loop as loop, spdebench.data.generate, spdebench.data, spdebench.cli.main as cli\n"
        "loop.check_memory = lambda *_: None\n"
        "used = 4096 * int(open('/proc/self/statm').read().split()[0])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)\n"
        "cli.main(['generate', 'phi41', 'points=4096', 'frames=500', 'steps=500', '-n', '512', '--chunk', '512',\n"
        f"          '--out', {str(tmp_path)!r}])"
    )
    done = run_code(script)
    assert done.returncode == 2 and "error: out of memory; use a smaller --chunk" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not list(tmp_path.rglob("*.parquet"))


# --- escape sequences -----------------------------------------------------------------------------------------------
def without_controls(text: str) -> bool:
    return not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_nothing_from_a_record_reaches_the_terminal_raw(made, tmp_path, capsys):
    run = sb.open_run(next((made / "runs").glob("mean-*")))
    path = run.file("record.json")
    values = run.record.to_dict()
    values["shifts"] = {ESCAPE: {"scores": values["scores"], "samples": values["samples"], "datasets": [], "n": 3}}
    kept = path.read_text()
    path.write_text(json.dumps(values))
    stopped = tmp_path / "runs" / "mean-x"
    stopped.mkdir(parents=True)
    (stopped / "spec.json").write_bytes(run.file("spec.json").read_bytes())
    (stopped / "failed.json").write_text(json.dumps({"reason": ESCAPE}))
    try:
        assert call("evaluate", str(run.path)) == 0
        assert "also scored on" in (said := capsys.readouterr().out) and without_controls(said)
    finally:
        path.write_text(kept)
    assert call("status", "--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "none")) == 0
    assert "red" in (said := capsys.readouterr().out) and without_controls(said)


def test_provenance_is_escaped_in_results(made):
    known = store.read(made / "results")
    bad = {
        digest: replace(r, provenance=replace(r.provenance, device=ESCAPE, torch=ESCAPE, commit=ESCAPE, started=ESCAPE))
        for digest, r in known.items()
    }
    page = results_page(bad)
    assert "<script" not in page and "&lt;script" in page and without_controls(page)


def test_a_key_of_a_dataset_is_escaped_on_its_page(made):
    (known,) = store.read(made / "results").values()
    first = dict(known.datasets[0])
    bad = replace(known, datasets=({**first, "fields": {**first["fields"], "a\x1b\x07b": 1}},))
    content = Content(shown_runs({bad.digest: bad}), {}, {}, {}, [])
    for name, page in dataset_pages(content, Templates(tables=False)):
        assert without_controls(page.replace("\t", "")), name
