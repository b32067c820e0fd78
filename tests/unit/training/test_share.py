"""Trained models given to others: one line loads them from a folder, a file or the hub; forged ones are one line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import spdebench as sb
from hub_server import Hub
from spdebench import tensors
from spdebench.cli.main import main
from spdebench.data.hub import Repository
from spdebench.data.identity import from_dict as dataset_from_dict
from spdebench.errors import UserError
from spdebench.records.summary import number
from spdebench.report.model_card import model_card
from spdebench.training import share
from spdebench.training.held_out import own_test_part
from spdebench.training.identity import from_dict

pytest.importorskip("huggingface_hub")


ROOT = Path(__file__).parents[3]
MODELS = sorted(path.parent for path in (ROOT / "models").glob("*/spec.json"))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> sb.Run:
    """The folder of a run as `train` leaves it: the committed FNO without its card, with weights and nothing else."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs") / "run"
    shutil.copytree(ROOT / "models" / "fno", folder)
    (folder / "README.md").unlink()
    content = tensors.load(folder / share.WEIGHTS)
    tensors.save(folder / share.WEIGHTS, {k: v for k, v in content.items() if k not in ("spec", "record")})
    return sb.open_run(folder)


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("published") / "tiny"
    share.publish(run, out, model_card)
    return out


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with Hub() as made:
        yield made
        made.shutdown()


def place(server: Hub, repo: str = "owner/tiny") -> Repository:
    return Repository(repo, endpoint=server.address, token="t", kind="model")


def inputs(run: sb.Run) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    dw = rng.standard_normal((3, *run.task_setting.shape)).astype(np.float32)
    dw[:, 0] = 0
    return rng.standard_normal((3, *dw.shape[2:])).astype(np.float32), dw


# --- one line -----------------------------------------------------------------------------------------------------
def test_a_model_predicts_the_same_wherever_it_comes_from(run, folder, server, tmp_path):
    wanted = run.predict(*inputs(run))
    alone = share.write_model(run, tmp_path / "alone.safetensors")
    share.push(run, place(server), model_card)
    for source in (run.path, folder, folder / "best.safetensors", run.weights_file, alone, place(server)):
        model = sb.load_model(source)
        np.testing.assert_array_equal(model.predict(*inputs(run)), wanted)
        assert model.record == run.record and model.spec == run.spec
    before = len(server.sent)
    sb.load_model(place(server))
    assert len(server.sent) == before  # from the cache
    assert (tmp_path / "cache").is_dir()


def test_the_hub_has_the_files_of_the_folder_and_a_card(run, folder, server, tmp_path):
    address = share.push(run, place(server), model_card)
    files = server.repos["models/owner/tiny"]
    assert set(files) == {p.name for p in folder.iterdir()} == set(share._FILES)
    assert address == f"{server.address}/owner/tiny/commit/{server.commit('models/owner/tiny')}"
    got = share.get(place(server), tmp_path / "got")
    assert got.path == tmp_path / "got" / "tiny" and got.scores.summary() == run.scores.summary()
    assert share.get(place(server), tmp_path / "got").path == got.path  # the same again
    server.repos["models/owner/tiny"]["README.md"] = b"their own words"
    share.push(run, place(server), model_card)
    assert server.repos["models/owner/tiny"]["README.md"] == b"their own words"


def test_the_card_states_data_scores_command_and_limits(run, folder):
    yaml = pytest.importorskip("yaml")
    _, head, text = (folder / "README.md").read_text().split("---\n", 2)
    values = yaml.safe_load(head)
    stated = values["model-index"][0]["results"][0]["metrics"][0]["value"]
    assert stated == run.record.scores["rel_l2"].value and values["license"] == "apache-2.0"
    for words in (
        "280 training",
        "spdebench train fno",
        "spdebench generate phi41",
        "## Limits",
        "60 epochs",
    ):
        assert words in text
    score = run.record.scores["rel_l2"]
    assert f"| {number(score.value)} | {number(score.low)} to {number(score.high)} |" in text


def test_the_command_pushes_and_reports_errors(run, tmp_path, capsys):
    def said(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as stop:
            main(["model", *words])
        out = capsys.readouterr()
        return stop.value.code, out.out + out.err

    code, out = said("push", str(run.path), str(tmp_path / "one.safetensors"))
    assert code == 0 and "one.safetensors" in out
    assert sb.load_model(tmp_path / "one.safetensors").name == run.name
    for words, line in (
        (("push", str(run.path), str(tmp_path / "one.safetensors")), "already exists"),
        (("push", str(run.path), str(run.path)), "folder of the run itself"),
        (("push", str(tmp_path), str(tmp_path / "x")), "no such run"),
        (("push", str(run.path), str(tmp_path / "x"), "--license", "a b"), "a licence is written"),
        (("push", str(run.path), "hub:nobody"), "OWNER/NAME"),
        (("get", "owner/name"), "hub:OWNER/NAME"),
    ):
        code, out = said(*words)
        assert code == 2 and line in out and out.count("\n") == 1, out
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_written_is_no_option(run):
    with pytest.raises(sb.UserError, match=r"cannot write into /proc/model .*; choose another folder$"):
        share.publish(run, Path("/proc/model"), model_card)


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "sharing.md").read_text(), flags=re.S)
    exec(compile(block, "sharing.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) < 0.1
    assert {path.suffix for path in Path("published").iterdir()} == {".parquet", ".md", ".json"}


# --- the models of the repository ---------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def data(tmp_path_factory) -> sb.Dataset:
    """The dataset of all committed models, computed again from its seed."""
    spec = sb.open_run(MODELS[0]).spec.datasets[0]
    found = sb.open_dataset(
        sb.generate(
            dataset_from_dict(spec).equation, n=spec["n"], seed=spec["seed"], out=tmp_path_factory.mktemp("data")
        )
    )
    assert found.identity == spec
    return found


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_a_committed_model_has_its_stated_score(path, data):
    model = sb.load_model(path)
    test = own_test_part(model, data.path, "the test")
    u = model.predict(test.u0, test.dw)
    found = sb.evaluate(u, test.u, data.grid, times=data.times, metrics=["rel_l2"], resamples=0)["rel_l2"].value
    stated = model.record.scores["rel_l2"].value
    assert found == pytest.approx(stated, rel=1e-4, abs=3e-8)  # step errs by the rounding of float32
    assert f"| `rel_l2` | {number(stated)} |" in (path / "README.md").read_text()
    table = (ROOT / "models" / "README.md").read_text()
    assert f"| [`{path.name}`]({path.name}/README.md) | {model.record.parameters:,} | {number(stated)} |" in table


def test_the_committed_models_are_small_and_no_results():
    assert len(MODELS) > 5 and sum(file.stat().st_size for path in MODELS for file in path.iterdir()) < 2 << 20
    results = (ROOT / "results" / "phi41.jsonl").read_text()
    assert not any(sb.open_run(path).spec.digest in results for path in MODELS)
    for path in MODELS:  # a card describes the model in whole sentences
        about = re.search(r"^# .*\n\n(.*) Task .*\.$", (path / "README.md").read_text(), flags=re.M)
        assert about is not None and about[1].endswith("."), path


# --- what others may send -----------------------------------------------------------------------------------------
def forged(folder: Path, target: Path, **changed) -> Path:
    """The published folder with other content in its file of weights, and a checksum that fits it."""
    shutil.copytree(folder, target)
    content = tensors.load(folder / share.WEIGHTS)
    tensors.save(target / share.WEIGHTS, {**content, **changed})
    return target


def test_weights_that_are_not_those_of_the_model(run, folder, tmp_path):
    weights = run.best["weights"]
    name = next(iter(weights))
    wrong = {
        "other types": weights | {name: weights[name].double()},
        "other shapes": weights | {name: weights[name].repeat(2, *[1] * (weights[name].dim() - 1))},
        "other names": {f"x{key}": value for key, value in weights.items()},
        "a number that is not finite": weights | {name: torch.full_like(weights[name], torch.nan)},
        "no tensors": {name: 3},
    }
    for what, values in wrong.items():
        with pytest.raises(UserError):
            sb.load_model(forged(folder, tmp_path / what, weights=values))
        with pytest.raises(UserError):
            sb.load_model(tmp_path / what / share.WEIGHTS)


def test_a_file_of_torch_save_is_no_safetensors(folder, tmp_path):
    torch.save({"weights": {}}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="not of safetensors"):
        sb.load_model(tmp_path / "model.safetensors")
    plain = {"a": torch.zeros(2)}
    save_file(plain, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="checksum"):
        sb.load_model(tmp_path / "other.safetensors")


def test_spec_record_and_weights_of_different_runs(run, folder, tmp_path):
    spec = run.spec.to_dict()
    for what, changed in {
        "spec": {"spec": spec | {"config": spec["config"] | {"width": 9}}},
        "record": {"record": run.record.to_dict() | {"digest": "0" * 10}},
        "digest": {"digest": "0" * 10},
    }.items():
        with pytest.raises(UserError, match="of different runs"):
            sb.load_model(forged(folder, tmp_path / what, **changed) / share.WEIGHTS)
    with pytest.raises(UserError, match="expected an object"):
        sb.load_model(forged(folder, tmp_path / "none", record=[]) / share.WEIGHTS)


def test_a_consistent_forgery_is_checked_field_by_field(run, folder, tmp_path):
    """The digests fit, as anyone can make them; what the spec asks for does not."""
    spec = run.spec.to_dict()
    config = spec["config"]
    for what, (changes, line) in {
        "giant": ({"config": config | {"width": 4096}}, "many more weights than the file has"),
        "model": ({"model": "nothing"}, "which is not declared"),
        "key": ({"config": config | {"script": "x"}}, "script"),
        "type": ({"config": config | {"width": "wide"}}, "width"),
        "data": ({"datasets": [spec["datasets"][0] | {"equation": "nothing"}]}, "which is not declared"),
    }.items():
        values = spec | changes
        digest = from_dict(values, what).digest
        record = run.record.to_dict() | {"digest": digest}
        with pytest.raises(UserError, match=line):
            sb.load_model(forged(folder, tmp_path / what, spec=values, record=record, digest=digest) / share.WEIGHTS)


def test_a_hub_that_has_no_model_or_one_too_large(run, folder, server, tmp_path, monkeypatch):
    server.repos["models/owner/tiny"] = {"README.md": b"x", "evil.py": b"x"}
    with pytest.raises(UserError, match="holds no model of spdebench"):
        share.get(place(server), tmp_path / "got")
    share.push(run, place(server), model_card)
    monkeypatch.setattr(share, "MOST_WEIGHTS", 100)
    with pytest.raises(UserError, match="more than 100"):
        share.get(place(server), tmp_path / "got")
    monkeypatch.undo()
    server.repos["models/owner/tiny"]["evil.py"] = b"raise SystemExit"
    bad = forged(folder, tmp_path / "bad", weights={})
    server.repos["models/owner/tiny"][share.WEIGHTS] = (bad / share.WEIGHTS).read_bytes()
    with pytest.raises(UserError, match="does not fit"):
        share.get(place(server), tmp_path / "got")
    assert not (tmp_path / "got" / "tiny").exists()


def test_the_file_is_safetensors_that_others_can_read(folder):
    with safe_open(folder / share.WEIGHTS, framework="pt") as file:
        assert all(name.startswith("weights/") for name in file.keys())  # noqa: SIM118
        content = json.loads(file.metadata()["content"])
    assert content["record"]["model"] == "fno"
