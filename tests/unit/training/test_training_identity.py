"""What a run is named by."""

from __future__ import annotations

import json

import pytest
import torch

import spdebench as sb
from spdebench.data import DatasetSpec
from spdebench.data.published import export_published, import_published
from spdebench.tasks import Task
from spdebench.training import RunSpec, plan
from spdebench.training.identity import from_dict, identify
from spdebench.training.overrides import alternatives, as_arguments, sort_overrides


def test_planned_without_data_and_made_with_data_are_one(task, path):
    data = DatasetSpec(equation=sb.open_dataset(path).equation, n=40, seed=0)
    planned = plan("tiny", data, {"split": "60:20:20"}, {"width": 4}, {"epochs": 3})
    made = identify("tiny", Task(path, split="60:20:20"), {"width": 4}, {"epochs": 3})
    assert planned == made and planned.digest == made.digest and hash(planned) == hash(made)
    assert planned.name == f"tiny-phi41-{planned.digest}"
    assert planned.setting == task.setting
    again = from_dict(json.loads(json.dumps(planned.to_dict())), "here")
    assert again == planned and again.digest == planned.digest


def test_everything_that_changes_a_number_changes_the_name(task, path):
    def name(config=None, options=None, **fields):
        return identify("tiny", Task(path, **fields), config or {}, options or {}).name

    names = [
        name(),
        name({"width": 4}),
        name(None, {"seed": 1}),
        name(None, {"learning_rate": 1e-2}),
        name(seed=1),
        name(n=20),
    ]
    assert len(set(names)) == len(names)
    assert name() == identify("tiny", task, {"width": 8}, {"epochs": "1000"}).name


def test_sub_sampling_and_mixtures(tmp_path):
    phi = sb.equation("phi42", points=8, truncation=2, frames=250, steps=250, horizon=0.001)
    paths = [sb.generate(phi.replace(truncation=j), n=20, out=tmp_path) for j in (2, 4)]
    specs = [DatasetSpec(equation=phi.replace(truncation=j), n=20) for j in (2, 4)]
    made, planned = identify("tiny", Task(paths), {}, {}), plan("tiny", specs)
    assert made == planned and made.task["every"] == 5 and planned.setting.frames == 51 and len(made.datasets) == 2


def test_imported_data(path, tmp_path):
    flat = export_published(sb.open_dataset(path), tmp_path)
    native = import_published(flat, tmp_path)
    told = Task(native, equation=sb.open_dataset(path).equation, stride=2)
    silent = Task(native, stride=2)
    named, unnamed = (identify("tiny", t, {}, {}) for t in (told, silent))
    assert named.digest != unnamed.digest  # what a model is told may change its numbers
    assert named.setting == told.setting and unnamed.setting == silent.setting
    assert named.name.startswith("tiny-phi41-") and unnamed.name.startswith("tiny-imported-")


def test_weights_follow_from_the_spec_and_global_state_is_left_alone(task):
    planned = identify("tiny", task, {}, {"seed": 5})
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = planned.build().state_dict()
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    second = planned.build().state_dict()
    other = identify("tiny", task, {}, {"seed": 6}).build().state_dict()
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert not torch.equal(first["first.weight"], other["first.weight"])


def test_given_weights_are_part_of_the_identity(task):
    torch.manual_seed(0)
    one, two = sb.build("tiny", task), sb.build("tiny", task)
    named = [identify(m, task, {}, {}).digest for m in (one, two, "tiny")]
    assert len(set(named)) == 3
    two.load_state_dict(one.state_dict())
    assert identify(two, task, {}, {}).digest == named[0]
    assert identify(sb.build("average", task), task, {}, {}) == identify("average", task, {}, {})


def test_refusals(task, path):
    spec = identify("tiny", task, {}, {}).to_dict()
    with pytest.raises(sb.UserError, match="version 7; this version reads 1"):
        from_dict({**spec, "version": 7}, "runs/x")
    with pytest.raises(sb.UserError, match="not the spec of a run"):
        from_dict({"version": 1, "datasets": []}, "runs/x")
    with pytest.raises(sb.UserError, match="built already"):
        identify(sb.build("tiny", task), task, {"width": 4}, {})
    with pytest.raises(sb.UserError, match="built for other data"):
        identify(sb.build("tiny", task), Task(path, every=2), {}, {})
    with pytest.raises(TypeError):
        RunSpec()  # type: ignore[call-arg]


def test_words_go_where_their_names_belong():
    request = sort_overrides(
        "tiny", {"learning_rate": "0.1", "width": "4", "split": "1:1:1", "split_seed": "2", "seed": "9"}
    )
    assert request.options == {"learning_rate": "0.1", "seed": "9"} and request.config == {"width": "4"}
    assert request.task == {"split": "1:1:1", "seed": "2"}
    with pytest.raises(sb.UserError, match="unknown key 'widht'; did you mean 'width'"):
        sort_overrides("tiny", {"widht": "4"})
    for wrong in ("x", "-1"):  # not 'seed', which is an option of the training
        with pytest.raises(sb.UserError, match="task: split_seed must"):
            sort_overrides("tiny", {"split_seed": wrong})
    assert alternatives("tiny", {"learning_rate": "1,2", "modes": "4,4/8,8"}) == {
        "learning_rate": ["1", "2"],
        "modes": ["4,4", "8,8"],
    }
    assert as_arguments({"learning_rate": "1", "modes": (4, 4)}) == "learning_rate=1 modes=4,4"
