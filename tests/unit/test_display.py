"""How datasets, tasks, parts, runs and scores show themselves, as text and in notebooks."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import spdebench as sb
from command_line import call
from spdebench.display import Displayed, aligned


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def cells(shown: Displayed) -> list[str]:
    parser = Cells()
    parser.feed(shown._repr_html_())
    assert set(parser.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    return parser.texts


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    path = sb.generate(sb.equation("phi41", points=16, frames=10, steps=10, truncation=8), n=20, out=folder)
    return sb.train("deeponet", path, out=folder, config={"width": 4}, epochs=1, progress=False), sb.Task(path)


def test_every_object_shows_what_it_is(run):
    trained, task = run
    dataset = task.datasets[0]
    expected = [
        (dataset, dataset.path.name, "Dynamic Phi^4_1", "20x11x16 (N T X..)", "J=8"),
        (task, "Task", dataset.path.name, "train", "14", "val", "test", "11x16"),
        (task.val, "val", "11x16", dataset.path.name),
        (trained, "deeponet", "width=4", "finished", f"{trained.scores['rel_l2'].value:.4g}"),
        (trained.scores, "Scores of 3 samples", "rel_l2", f"{trained.scores['rel_l2'].value:.4g}", "samplewise"),
    ]
    for shown, *words in expected:
        text, html = repr(shown), " ".join(cells(shown))
        assert len(text.splitlines()) < 25 and len(text) < 2500
        for word in words:
            assert word in text and word in html, (word, text)


def test_a_run_shows_its_configuration_as_a_user_types_it(run, tmp_path, capsys):
    config = {"width": 2, "layers": 1, "modes": (2, 2)}
    fno = sb.train("fno", run[1], out=tmp_path, config=config, epochs=1, progress=False)
    assert call("show", fno.path) == 0
    assert call("show", fno.path, "width=3") == 2
    assert "modes=2,2" in repr(fno) and "modes=2,2" in capsys.readouterr().out.splitlines()[2]


def test_nothing_is_read_to_show_it(run):
    task = sb.Task(run[1].datasets[0])
    repr(task), repr(task.train)
    assert task.train.reads == 0


def test_a_run_that_is_not_finished_says_so(run, tmp_path):
    trained = sb.train("deeponet", run[1], out=tmp_path, config={"width": 4}, epochs=1, test=False, progress=False)
    assert "trained, not tested" in repr(trained)
    trained.weights_file.unlink()
    assert "not finished, 1 of 1 epochs" in repr(trained)


def test_html_is_escaped():
    class Hostile(Displayed):
        def overview(self):
            return "<b>", [{"<i>": "<script>x</script>", "n": None}]

    html = Hostile()._repr_html_()
    assert "<script" not in html and "<b>" not in html and "<i>" not in html and "&lt;script&gt;" in html
    assert repr(Hostile()).splitlines()[1] == f"  {aligned([{'<i>': '<script>x</script>', 'n': None}])[0]}"
