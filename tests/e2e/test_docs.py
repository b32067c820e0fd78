"""What the documents say is run: every Python block, in order, in an empty folder; every file they name is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

AFTER = {
    "data.md": """
import spdebench as sb
eq = sb.equation("burgers", points=32, truncation=8, steps=100, frames=50)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
