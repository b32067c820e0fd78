"""Fetching and uploading, against a server that speaks the hub's protocol: whole files, or one line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hub_server import Hub
from in_children import run_code
from spdebench.data import Dataset, generate, hub, open_dataset, publish
from spdebench.data.hub import Repository
from spdebench.equations import equation
from spdebench.errors import UserError

pytest.importorskip("huggingface_hub")
REPO = "owner/spde"
NAME = "Phi41-01_xi-128-1200.parquet"
LARGE = np.random.default_rng(0).bytes(24 << 20)  # the library writes ten million bytes at a time


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[Hub]:
    """A hub with two data files; no token of the user's takes part."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with Hub() as made:
        made.repos[REPO] = {NAME: LARGE[: 1 << 18], "sub/KdV-cyl_xi-32-10.parquet": b"small", "README.md": b"theirs"}
        yield made
        made.shutdown()


@pytest.fixture
def place(server) -> Repository:
    return Repository(REPO, endpoint=server.address, token=server.token or None)


def left_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} if folder.exists() else set()


# --- get ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [NAME, NAME.removesuffix(".parquet")])
def test_a_file_comes_by_its_name(server, place, tmp_path, name):
    path = hub.get(name, place, tmp_path / "data")
    assert path == tmp_path / "data" / NAME and path.read_bytes() == server.repos[REPO][NAME]
    assert left_in(tmp_path / "data") == {NAME}
    before = len(server.sent)
    assert hub.get(name, place, tmp_path / "data") == path and len(server.sent) == before  # there already


def test_a_small_file_in_a_folder_has_gits_checksum(place, tmp_path):
    assert hub.get("KdV-cyl_xi-32-10", place, tmp_path).read_bytes() == b"small"


def test_a_file_that_differs_is_not_touched(place, tmp_path):
    (tmp_path / NAME).write_bytes(b"mine")
    with pytest.raises(UserError, match="already exists and differs"):
        hub.get(NAME, place, tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"mine"


FETCH = (
    "import sys; from spdebench.data import hub\n"
    "print(hub.get(sys.argv[1], hub.Repository(sys.argv[2], endpoint=sys.argv[3]), sys.argv[4]))"
)


def test_a_killed_download_continues(server, place, tmp_path):
    """Only what had not reached the disk is sent twice; meanwhile nothing has the final name."""
    server.repos[REPO][NAME] = LARGE
    server.stall_after = 22 << 20
    child = subprocess.Popen([sys.executable, "-c", FETCH, NAME, REPO, server.address, str(tmp_path / "data")])
    try:
        assert server.stalled.wait(300)
        part = next(p for p in _until(lambda: _parts(tmp_path / "data", 20 * 10**6)) if p)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    kept = part.stat().st_size
    assert not (tmp_path / "data" / NAME).exists() and kept >= 20 * 10**6
    server.stall_after = None
    assert hub.get(NAME, place, tmp_path / "data").read_bytes() == LARGE
    assert server.sent == [(0, 22 << 20), (kept, len(LARGE) - kept)] and left_in(tmp_path / "data") == {NAME}
    twice = sum(count for _, count in server.sent) - len(LARGE)
    assert 0 <= twice <= 10 * 2**20


def _parts(folder: Path, least: int) -> Path | None:
    found = [p for p in folder.glob(".*.download/*") if p.name != "lock" and p.stat().st_size >= least]
    return found[0] if found else None


def _until(look):
    import time

    for _ in range(6000):
        yield look()
        time.sleep(0.05)


def test_a_file_that_changed_is_not_joined_to_the_old_part(server, place, tmp_path):
    parts = tmp_path / f".{NAME}.download"
    parts.mkdir()
    (parts / ("0" * 64)).write_bytes(b"of another version")
    assert hub.get(NAME, place, tmp_path).read_bytes() == server.repos[REPO][NAME]
    assert server.sent == [(0, 1 << 18)] and left_in(tmp_path) - _own(tmp_path) == {NAME}


def _own(folder: Path) -> set[str]:
    return {name for name in left_in(folder) if name.startswith("hf/")}


def test_other_bytes_than_promised_are_refused(server, place, tmp_path):
    server.spoil = True
    with pytest.raises(UserError, match="does not match its checksum"):
        hub.get(NAME, place, tmp_path / "data")
    assert not list((tmp_path / "data").iterdir())
    server.spoil = False
    assert hub.get(NAME, place, tmp_path / "data").read_bytes() == server.repos[REPO][NAME]


def test_missing_repositories_and_files_are_one_line_errors(server, place, tmp_path):
    with pytest.raises(UserError, match=f"did you mean '{NAME}'"):
        hub.get("Phi41-01_xi-128-120", place, tmp_path / "data")
    with pytest.raises(UserError, match="no dataset repository 'owner/none'"):
        hub.get(NAME, Repository("owner/none", endpoint=server.address), tmp_path / "data")
    with pytest.raises(UserError, match="no revision 'v9'"):
        hub.get(NAME, Repository(REPO, "v9", endpoint=server.address), tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("repo", ["", "name", "a/b/c", "../x", "a/..", "a b/c", "https://x/y"])
def test_an_invalid_repository_name_is_a_one_line_error(repo):
    with pytest.raises(UserError, match="OWNER/NAME"):
        Repository(repo)


def test_a_hub_cannot_name_files_elsewhere(server, place, tmp_path):
    for name in ("sub/..parquet", "a/con.parquet", "x\n.parquet", ".hidden.parquet"):
        server.repos[REPO] = {name: b"evil"}
        with pytest.raises(UserError):
            hub.get(name.rpartition("/")[2], place, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_token_is_asked_for(server, place, tmp_path):
    server.token = "secret"
    with pytest.raises(UserError, match="set HF_TOKEN"):
        hub.get(NAME, place, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    mine = Repository(REPO, endpoint=server.address, token="secret")
    assert hub.get(NAME, mine, tmp_path / "data").stat().st_size == 1 << 18


def test_a_server_that_is_gone(server, place, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match="cannot be reached"):
        hub.get(NAME, place, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_disk_that_is_too_small_is_seen_before(server, place, tmp_path):
    server.declared = 10 * shutil.disk_usage(tmp_path).total
    with pytest.raises(UserError, match="GB are free"):
        hub.get(NAME, place, tmp_path / "data")
    assert not server.sent and not (tmp_path / "data").exists()


# --- push ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    eq = equation("phi41", points=32, truncation=8, frames=4, steps=4)
    return generate(eq, n=40, out=tmp_path_factory.mktemp("push"))


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    eq = equation("phi41", points=16, truncation=4, frames=2, steps=2)
    return generate(eq, n=20, out=tmp_path_factory.mktemp("other"))


def brief(dataset: Dataset) -> str:
    return f"# A card\n\n{len(dataset)} samples, of {dataset.equation.title}\n"


def test_a_dataset_goes_up_with_its_card_and_comes_back(server, dataset, tmp_path):
    new = Repository("owner/new", endpoint=server.address, token="t")
    address = publish.push(dataset, new, card=brief)
    files = server.repos["owner/new"]
    assert set(files) == {dataset.name, dataset.with_suffix(".md").name, "README.md", "croissant.json"}
    assert len(server.lfs) == 1  # the data; texts are small
    address_of_data = json.loads(files["croissant.json"])["distribution"][0]["contentUrl"]
    assert address_of_data == f"{server.address}/datasets/owner/new/resolve/main/{dataset.name}"
    assert address.endswith(server.commit("owner/new")) and dataset.name in server.messages[0]
    card = files[dataset.with_suffix(".md").name].decode()
    assert card.startswith("# A card") and card.rstrip() in files["README.md"].decode()
    back = hub.get(dataset.stem, new, tmp_path / "back")
    assert back.read_bytes() == files[dataset.name] and open_dataset(back).identity == open_dataset(dataset).identity
    assert all(np.array_equal(open_dataset(back).read(c), open_dataset(dataset).read(c)) for c in ("u0", "dw", "u"))


def test_a_second_dataset_joins_the_first_on_the_front_page(server, dataset, other, tmp_path):
    yaml = pytest.importorskip("yaml")
    new = Repository("owner/new", endpoint=server.address, token="t")
    publish.push(other, new, card=brief)
    publish.push(dataset, new, card=brief)
    _, head, body = server.repos["owner/new"]["README.md"].decode().split("---\n", 2)
    values = yaml.safe_load(head)
    named = {c["config_name"]: (c["data_files"][0]["path"], c.get("default", False)) for c in values["configs"]}
    assert named == {other.stem: (other.name, False), dataset.stem: (dataset.name, True)}
    assert values["pretty_name"] and "spdebench" in values["tags"] and publish.MARK in body
    assert values["license"] == "cc-by-4.0" and values["size_categories"] == ["n<1K"]
    before = dict(server.repos["owner/new"])
    publish.push(dataset, new, card=brief)
    assert server.repos["owner/new"] == before  # the same again
    server.repos["owner/new"]["croissant.json"] = b'{"recordSet": 3}'
    with pytest.raises(UserError, match="is not one that 'data push' has written"):
        publish.push(dataset, new, card=brief)


def test_a_card_that_is_there_is_taken_and_a_readme_of_others_is_left(server, dataset, place, tmp_path):
    mine = tmp_path / dataset.name
    shutil.copy(dataset, mine)
    mine.with_suffix(".md").write_text("# my own words\n")
    publish.push(mine, Repository(REPO, endpoint=server.address, token="t"), card=brief)
    assert server.repos[REPO][mine.with_suffix(".md").name] == b"# my own words\n"
    assert server.repos[REPO]["README.md"] == b"theirs" and NAME in server.repos[REPO]


def test_what_cannot_go_up(server, dataset, tmp_path):
    server.token = "secret"
    with pytest.raises(UserError, match="write access"):
        publish.push(dataset, Repository("owner/new", endpoint=server.address), card=brief)
    damaged = tmp_path / "x.parquet"
    content = bytearray(dataset.read_bytes())
    content[300] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        publish.push(damaged, Repository("owner/new", endpoint=server.address, token="secret"), card=brief)
    assert "owner/new" not in server.repos


# --- the command --------------------------------------------------------------------------------------------------
COMMANDS = """
import json, sys
from spdebench.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main(["data", *words])
    except SystemExit as stop:
        print("exit", stop.code)
"""


def test_the_commands(server, dataset, tmp_path):
    """In a process of their own: the library reads HF_ENDPOINT when it is imported."""
    file = tmp_path / "native" / dataset.name
    file.parent.mkdir()
    shutil.copy(dataset, file)
    file.with_suffix(".md").write_text("# my own words\n")
    words = [
        ["push", str(file), "--repo", "owner/cli"],
        ["get", dataset.stem, "--repo", "owner/cli", "--out", str(tmp_path)],
        ["get", dataset.stem],
        ["get", "nothing", "--repo", "owner/cli"],
    ]
    environment = {"HF_ENDPOINT": server.address, "HF_TOKEN": "t", "SPDEBENCH_REPO": ""}
    done = run_code(COMMANDS, json.dumps(words), environment=environment)
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit")]
    assert codes == ["exit 0", "exit 0", "exit 2", "exit 2"], done.stderr
    assert "next: spdebench data info" in done.stdout and "/datasets/owner/cli/commit/" in done.stdout
    errors = done.stderr.splitlines()
    assert len(errors) == 2 and "10.57967" in errors[0] and "has no file 'nothing'" in errors[1]
    assert np.array_equal(open_dataset(tmp_path / dataset.name).u, open_dataset(dataset).u)


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="pip install 'huggingface_hub>="):
        hub.get("x", Repository("a/b"))


def test_the_server_is_what_we_think(server):
    """The checksum of a file in LFS is that of its content."""
    import urllib.request

    with urllib.request.urlopen(f"{server.address}/api/datasets/{REPO}/tree/main") as answer:
        tree = json.loads(answer.read())
    assert {e["path"]: "lfs" in e for e in tree}[NAME] is True


def test_the_network_is_tried_before_a_card_is_computed(server, dataset):
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match=r"cannot be reached.*nothing was uploaded"):
        publish.push(
            dataset,
            Repository("me/fresh", endpoint=server.address, token="t"),
            card=lambda _: pytest.fail("the card was computed first"),
        )
