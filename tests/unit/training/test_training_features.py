"""Features of a part: once, in chunks, kept on disk where they are costly."""

from __future__ import annotations

import pytest
import torch

import spdebench as sb
from spdebench import registry
from spdebench.engines import memory
from spdebench.errors import UserError
from spdebench.models import features
from spdebench.models.base import evaluation_batch
from spdebench.models.features import features_key, fits, prepare_part
from spdebench.tasks import Task


def test_chunks_are_the_whole(task, monkeypatch):
    model = sb.build("tiny", task)
    whole = model.prepare(task.train.batch())
    monkeypatch.setattr(features, "CHUNK_BYTES", 5 * 4 * 11 * 16)
    sizes, true = [], model.prepare
    monkeypatch.setattr(model, "prepare", lambda batch: sizes.append(len(batch)) or true(batch))
    data = prepare_part(model, task.train)
    assert sizes == [5, 5, 5, 5, 5, 3] and len(data) == 28
    assert all(torch.equal(data.features[k], v) for k, v in whole.items()) and torch.equal(data.target, task.train.u)
    assert not any(v.is_inference() for v in data.features.values())  # they enter graphs with gradients


def test_features_that_memory_cannot_hold_are_refused_before_they_are_computed(task, monkeypatch):
    """After the first chunk: 28 samples of all features are compared with the memory that is free."""
    model = sb.build("tiny", task)
    need = 28 * sum(v[:1].nbytes for v in model.prepare(task.train.batch(slice(0, 1))).values())
    target = task.train.u  # read before: the data need memory, too
    monkeypatch.setattr(memory, "free_memory", lambda: need - 1)
    with pytest.raises(UserError, match=r"features in 28 rows .*: .* GB of memory are needed.*use n= for fewer"):
        prepare_part(model, task.train)
    monkeypatch.setattr(memory, "free_memory", lambda: need)
    assert len(prepare_part(model, task.train)) == len(target) == 28


def test_costly_features_are_kept(task, tmp_path, monkeypatch):
    model = sb.build("tiny", task)
    first = prepare_part(model, task.train, cache=tmp_path)
    monkeypatch.setattr(model, "prepare", lambda batch: pytest.fail("computed again"))
    again = prepare_part(model, task.train, cache=tmp_path)
    assert all(torch.equal(first.features[k], again.features[k]) for k in first.features)
    monkeypatch.undo()
    (file,) = tmp_path.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.warns(UserWarning, match="computed again"):
        mended = prepare_part(model, task.train, cache=tmp_path)
    assert all(torch.equal(first.features[k], mended.features[k]) for k in first.features)
    monkeypatch.setattr(type(model), "costly_features", False)
    prepare_part(model, task.val, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cache_that_cannot_be_written_costs_nothing(task, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="features are not cached"):
        assert len(prepare_part(sb.build("tiny", task), task.val, cache=tmp_path / "file" / "cache")) == 6


def test_the_key_is_of_all_that_features_depend_on(task, path, monkeypatch):
    model = sb.build("tiny", task)
    key = features_key(model, task.train)
    assert key == features_key(sb.build("tiny", task, width=3), Task(path).train)
    assert key != features_key(model, task.val)
    assert key != features_key(model, Task(path, seed=1).train)
    monkeypatch.setattr(model, "feature_spec", lambda: {"depth": 2})
    assert key != features_key(model, task.train)


@pytest.mark.parametrize("kind", ["model", "equation"])
def test_features_of_a_changed_file_are_computed_again(task, tmp_path, monkeypatch, kind):
    """The features kept by an earlier version of the user's own file, in which `prepare` may have been another one."""
    model = sb.build("tiny", task)
    own = type(model) if kind == "model" else type(task.equations[0])
    keys = [features_key(model, task.train)]
    for version in ("1111111111", "2222222222"):
        monkeypatch.setitem(registry._FILES, own.__module__, (tmp_path / "mine.py", version))
        keys.append(features_key(model, task.train))
    assert len(set(keys)) == 3


def test_a_feature_without_samples_in_front_is_refused(task, monkeypatch):
    model = sb.build("tiny", task)
    monkeypatch.setattr(model, "prepare", lambda batch: {"grid": torch.zeros(3)})
    with pytest.raises(sb.UserError, match="feature 'grid' has 3 rows for 28 samples"):
        prepare_part(model, task.train)


def test_sizes(task):
    assert evaluation_batch((51, 128)) == 100  # the paper's batch
    assert 1 <= evaluation_batch((33, 32, 32, 32)) < 20
    assert fits(sb.build("tiny", task), {task.train: 0, task.val: 0}, 0.5)  # the host's memory is its user's to keep
