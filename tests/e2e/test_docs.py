"""The documents: Python blocks run (in order, in an empty folder), links lead to files, words are usual ones.

Links, headings and the contents of the site are checked here in the sources, without Sphinx; the slow test
tests/e2e/test_docs_site.py builds the site.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest

import spdebench as sb
from in_children import run_script
from spdebench.cli.main import main
from spdebench.metrics import METRICS
from spdebench.report.handbook import page_names
from spdebench.suites import SUITES
from spdebench.tasks.task import TaskSpec
from spdebench.training.options import TrainOptions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN_BY_BUILD = ("api", "equations", "models")
"""Folders of docs/ with pages that `make docs` writes."""
WRITTEN = frozenset((*page_names(), "api/index.md"))
SITE = [p for p in sorted(DOCS.rglob("*.md")) if p.relative_to(DOCS).parts[0] not in WRITTEN_BY_BUILD]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks" / "README.md", *SITE]

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
    done = run_script(script, tmp_path)
    assert done.returncode == 0, done.stderr


PRIVATE_WORDS = re.compile(
    r"\bhonest|tells? the truth|\bfold(s|ed|ing)?\b|\bbeside\b|\breckon|\bone clear line\b|\ball is well\b"
    r"|\bwhat came\b|\bsigns? of life\b|\bis there already\b|\berrs by\b|\bis not told\b"
    r"|\b(ms|row|line|file|value|matrix|number|points?|modes|steps?|two|one) an? "
    r"(sample|epoch|axis|mode|metric|frame|seed|path|thread)\b",
    re.IGNORECASE,
)
"""Words and phrases of this project that a newcomer does not know; each has a usual one (aliasing, per sample, ...)."""
KEPT_WORDS = {"beside": ("records/migrate.py", "data/published.py")}
"""Words that old files contain, and the modules that read or write them."""


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


def test_sources_use_the_words_of_the_field():
    for file in sorted((ROOT / "src" / "spdebench").rglob("*.py")):
        text = file.read_text()
        for word, files in KEPT_WORDS.items():
            text = text.replace(word, "") if str(file).endswith(files) else text
        assert private_words(text) == [], file


def anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as GitHub and the site form them."""
    found: list[str] = []
    for title in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), flags=re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        found.append(re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-"))
    return {slug + (f"-{n}" if (n := found[:i].count(slug)) else "") for i, slug in enumerate(found)}


def broken_links(page: Path, written: frozenset[str] = frozenset()) -> list[str]:
    """Links of a page that lead to no file or to no heading; ``written`` are the pages that the build will write."""
    broken = []
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(<?([^)>\s]+)", prose):
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        by_build = file.is_relative_to(DOCS) and str(file.relative_to(DOCS)) in written
        if re.match(r"https?:", link) or by_build:
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    assert broken_links(page, WRITTEN) == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# A title: `code`, more\n## Twice\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#a-title-code-more) [b](other.md#twice-1) [c](other.md#no) [d](none.md) [e](#here)\n# Here\n"
    )
    assert broken_links(page) == ["other.md#no", "none.md"]


def test_every_page_is_in_the_contents_of_the_site():
    """Each page below docs/ is an entry of one {toctree}; a new page must be entered in docs/index.md."""
    entries = []
    for page in SITE:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), flags=re.S | re.M):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            entries += [page.parent / (line.partition("<")[2].rstrip(">") or line) for line in lines]
    entries = [entry.with_name(entry.name + ".md") for entry in entries]
    known = {*SITE, *(DOCS / name for name in WRITTEN)}
    assert [str(p) for p in entries if p not in known] == [], "an entry of a {toctree} without a page"
    missing = {str(p.relative_to(DOCS)) for p in SITE} - {str(p.relative_to(DOCS)) for p in entries} - {"index.md"}
    assert missing == set(), "enter these pages in a {toctree} of docs/index.md"
    assert len(entries) == len(set(entries)), "a page is entered twice"


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


def test_the_page_of_data_names_the_equations_whose_files_lack_steps_of_the_solver():
    ours = [sb.equation(name) for name in sb.EQUATIONS if sb.EQUATIONS[name].__module__.startswith("spdebench.")]
    lacking = {eq.name: eq.steps // eq.frames for eq in ours if (eq.steps, eq.solve_points) != (eq.frames, eq.points)}
    text = " ".join((DOCS / "data.md").read_text().partition("## What is stored")[2].partition("\n## ")[0].split())
    names, steps = re.search(r"all equations except (.*), which store every (.*) step\.", text).groups()
    found = zip(re.findall(r"`(\w+)`", names), map(int, re.findall(r"\d+", steps)), strict=True)
    assert dict(found) == lacking


def with_other_eigenvalues(small: sb.Equation, large: sb.Equation) -> bool:
    """Whether the noise of ``small`` is no projection of that of ``large``: the functions in both differ in size."""
    modes = large.series().modes.tolist()
    common = [modes.index(mode) for mode in small.series().modes.tolist()]
    present = small.series().index > 0
    return not small.eigenvalue_roots()[present].equal(large.eigenvalue_roots()[common][present])


def test_the_page_of_data_names_the_equations_whose_noise_is_no_projection_of_that_with_a_larger_J():
    ours = [name for name in sb.EQUATIONS if sb.EQUATIONS[name].__module__.startswith("spdebench.")]
    text = (DOCS / "data.md").read_text().partition("is a projection of the noise with a larger J.")[2]
    named = set(re.findall(r"`(\w+)`", text.partition("\n- ")[0]))
    assert named == {n for n in ours if with_other_eigenvalues(*(sb.equation(n, truncation=J) for J in (8, 16)))}


def test_the_page_of_the_core_suite_names_the_problem_whose_noise_differs_on_the_common_modes():
    row = re.search(r"^\| `J x2` .*the same on the common modes(.*)$", (DOCS / "core.md").read_text(), re.MULTILINE)
    data = {p.name: p.datasets() for p in SUITES["core"].problems}
    problems = {name: (parts["test"], parts["J x2"]) for name, parts in data.items() if "J x2" in parts}
    changed = {name for name, both in problems.items() if with_other_eigenvalues(*(d.equation for d in both))}
    assert set(re.findall(r"`(\w+)`", row[1])) == changed


def test_the_page_of_training_lists_every_option_with_its_default():
    text = (DOCS / "training.md").read_text().partition("\n## Options\n")[2].partition("\n## ")[0]
    listed = {}
    for names, values in re.findall(r"^\| (`.*?`) \| (.*?) \|", text, flags=re.M):
        keys = re.findall(r"`(\w+)`", names)
        listed |= dict(zip(keys, values.split(", ") if len(keys) > 1 else [values], strict=True))
    defaults = {f.name: f.default for f in dataclasses.fields(TrainOptions)}
    assert {key: str(value) for key, value in defaults.items() if isinstance(value, str)} == {
        key: listed[key].strip("`") for key, value in defaults.items() if isinstance(value, str)
    }
    numbers = {key: value for key, value in defaults.items() if isinstance(value, int | float) and key != "compile"}
    assert {key: float(listed[key]) for key in numbers} == numbers
    task = {"split_seed" if f.name == "seed" else f.name for f in dataclasses.fields(TaskSpec)}
    assert set(listed) == set(defaults) | task


@pytest.mark.parametrize("page", SITE, ids=lambda p: p.name)
def test_the_text_of_a_definition_begins_on_its_own_line(page):
    """Markdown needs a new line before the colon; otherwise the colon is part of one long paragraph."""
    assert re.findall(r"^(?:\[.*\)|`[^`]+`) : .*", page.read_text(), flags=re.M) == []
