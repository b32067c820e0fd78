"""The wheel, built from the sdist and installed in another folder: data files are in it and the verbs work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from spdebench.version import __version__

ROOT = Path(__file__).parents[2]
DATA_FILES = ("py.typed", "*.csv", "*.toml", "*.html", "*.css", "*.js", "*.png")
VERBS = """
import sys
from pathlib import Path
import spdebench
from spdebench.cli.main import main

assert Path(spdebench.__file__).is_relative_to(sys.argv[1]), spdebench.__file__
for words in (
    "generate phi41 points=16 truncation=8 frames=10 steps=10 -n 40 --out data",
    "train deeponet DATA epochs=1 --out runs",
    "table phi41-periodic-sigma1 --format csv",
    "plot radar",
    "report --results data",
    "bench data",
):
    words = words.replace("DATA", next(map(str, Path("data").glob("*.parquet")), ""))
    try:
        main(words.split())
    except SystemExit as end:
        print(f"exit {end.code}: {words.split()[0]}", flush=True)
"""


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: an old ``build`` folder of the checkout must not leak into it."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "results", copy / "results")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run("-c", "from setuptools import build_meta; build_meta.build_sdist('dist')", cwd=copy)
    return next((copy / "dist").glob("spdebench-*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist alone, in another folder."""
    folder = tmp_path_factory.mktemp("wheel")
    run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", ".", sdist, cwd=folder)
    return next(folder.glob("spdebench-*.whl"))


def test_the_sdist_says_what_it_is(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "setup.py"} <= names
    assert sdist.name == f"spdebench-{__version__}.tar.gz"


def test_every_data_file_is_in_it(wheel: Path) -> None:
    source = ROOT / "src"
    expected = {str(p.relative_to(source)) for pattern in DATA_FILES for p in (source / "spdebench").rglob(pattern)}
    assert {"spdebench/tasks/defaults.toml", "spdebench/paper/published.csv"} <= expected
    expected |= {f"spdebench/results/{path.name}" for path in (ROOT / "results").glob("*.jsonl")}
    with zipfile.ZipFile(wheel) as archive:
        assert expected <= set(archive.namelist())


def test_its_verbs_work_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel, cwd=tmp_path)
    out = run("-c", VERBS, site, cwd=tmp_path, PYTHONPATH=str(site))
    for verb, code in (("generate", 0), ("train", 0), ("table", 0), ("plot", 0), ("report", 0), ("bench", 2)):
        assert f"exit {code}: {verb}\n" in out, out
    assert "DLR-Net" in out and (tmp_path / "radar.png").stat().st_size > 10_000  # from the records of the package
    assert "error: the installed package does not contain the benchmarks; clone the repository" in out
    assert (tmp_path / "site" / "index.html").is_file()
