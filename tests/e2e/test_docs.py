"""The documents: Python blocks run (in order, in an empty folder), links lead to files, words are usual ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import spdebench as sb
from spdebench.cli.main import main
from spdebench.metrics import METRICS

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

AFTER = {
    "add-an-equation.md": """
import spdebench as sb
eq = sb.equation("fisher", points=32, truncation=8, steps=100, frames=50)
path = sb.generate(eq, n=4, out="data")
assert sb.verify(sb.open_dataset(path)).good
better = sb.simulate(eq.replace(edition="converged"), 0, range(4)).u
rough = sb.simulate(eq, 0, range(4)).u
assert 0 < float((better - rough).norm() / better.norm()) < 0.2
""",
    "metrics.md": """
import numpy as np, spdebench as sb
truth = np.random.default_rng(0).normal(size=(5, 4, 8))
other = truth.copy(); other[:, 2, 3] += 0.25
assert abs(sb.evaluate(other, truth, sb.Grid.unit(8), metrics=["largest"])["largest"].value - 0.25) < 1e-6
""",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)
    if not blocks:
        assert page.name not in AFTER
        return
    script = tmp_path / "block.py"
    script.write_text("\n".join(blocks) + AFTER.get(page.name, ""))
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PRIVATE_WORDS = re.compile(
    r"\bhonest|tells? the truth|\bfold(s|ed|ing)?\b|\bbeside\b|\breckon|\bone clear line\b"
    r"|\b(ms|row|line|file|value|matrix|number|points?|modes) an? (sample|epoch|run|axis|mode|metric|frame|seed)\b",
    re.IGNORECASE,
)
"""Words and phrases of this project that a newcomer does not know; each has a usual one (aliasing, per sample, ...)."""


def private_words(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if PRIVATE_WORDS.search(line)]


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "results.md"], ids=lambda p: p.name)
def test_pages_use_the_words_of_the_field(page):
    text = re.sub(r"<!-- headline -->.*<!-- /headline -->", "", page.read_text(), flags=re.S)  # generated
    assert private_words(text) == []
    assert private_words("honest baselines, 0.1 ms a sample; the noise folds") != []


@pytest.mark.parametrize("registry", [sb.MODELS, METRICS], ids=["models", "metrics"])
def test_models_and_metrics_use_the_words_of_the_field(registry):
    for name in registry:
        cls = registry[name]
        text = f"{sys.modules[cls.__module__].__doc__}\n{cls.__doc__}"
        assert not cls.__module__.startswith("spdebench.") or private_words(text) == [], name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_help_uses_the_words_of_the_field(capsys):
    def shown(*words: str) -> str:
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        return capsys.readouterr().out

    def verbs(text: str) -> list[str]:
        return re.findall(r"^  (\w+)  ", text.partition("Commands:")[2], re.MULTILINE)

    assert len(verbs(shown())) > 10 and len(verbs(shown("data"))) > 4
    for words in ((), *((v,) for v in verbs(shown())), *(("data", v) for v in verbs(shown("data")))):
        assert private_words(shown(*words)) == [], words
