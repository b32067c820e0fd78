"""A Ray cluster of two nodes on one machine, of real processes, gives what the local engine gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ray_cluster import Cluster
from spdebench.records import store as records

pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.slow

SLURM = Path(__file__).parents[2] / "examples" / "slurm.sh"
THREE = Path(__file__).parents[1] / "three_models.py"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2) as found:
        yield found


def spdebench(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spdebench", *map(str, words)],
        cwd=cwd, env=env or {**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_generation_is_identical_to_the_byte(cluster, tmp_path):
    words = ("generate", "phi41", "-n", "100", "--chunk", "16", "--json", "truncation=32")
    one = Path(json.loads(spdebench(*words, "--out", tmp_path / "local", cwd=tmp_path))["file"])
    other = (
        tmp_path
        / json.loads(
            # a relative folder: workers of a cluster have another current one
            spdebench(*words, "--out", "ray", "--engine", "ray", cwd=tmp_path, env=cluster.environment)
        )["file"]
    )
    assert one.read_bytes() == other.read_bytes()
    assert os.listdir(tmp_path / "ray") == [other.name]


def test_a_table_of_three_models_and_two_seeds(cluster, tmp_path):
    found = {}
    for engine, env in (("local", None), ("ray", cluster.environment)):
        folder = tmp_path / engine
        folder.mkdir()
        words = ("--with", THREE, "table", "three", "--run", "--seeds", "2", "--engine", engine)
        out = spdebench(*words, cwd=folder, env=env)
        assert "6 added" in out
        found[engine] = records.read(folder / "results")
        status = json.loads(spdebench("--with", THREE, "status", "--json", cwd=folder))
        assert status["tables"] == [
            {"table": "three", "runs": 6, "done": 6, "running": 0, "failed": 0, "left": 0, "seconds": 0.0}
        ]
    assert len(found["local"]) == 6 and found["local"].keys() == found["ray"].keys()
    for digest, record in found["local"].items():
        other = found["ray"][digest]
        for key in ("val", "best_epoch", "epochs", "scores", "samples"):
            assert getattr(record, key) == getattr(other, key), (record.name, key)
        assert record.exclusive_timing and other.inference_ms > 0  # timed once more when nothing else ran


def test_a_cluster_that_is_not_there_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "spdebench", "generate", "phi41", "-n", "4", "--engine", "ray", "--out", "data"],
        cwd=tmp_path, env={**os.environ, "RAY_ADDRESS": "127.0.0.1:1"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: cannot join the Ray cluster at 127.0.0.1:1") and "unset RAY_ADDRESS" in line


def test_the_slurm_script(tmp_path):
    """Its body on one machine: ``srun`` runs its command here, ``scontrol`` names two nodes."""
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "scontrol").write_text("#!/bin/bash\nprintf 'one\\ntwo\\n'\n")
    (shims / "srun").write_text('#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n')
    for shim in shims.iterdir():
        shim.chmod(0o755)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    path = f"{shims}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    job = {"SLURM_JOB_NODELIST": "one,two", "SLURM_JOB_ID": str(os.getpid()), "SLURM_CPUS_PER_TASK": "1"}
    words = ("generate", "phi41", "-n", "20", "--chunk", "4", "truncation=16")
    done = subprocess.run(
        ["bash", str(SLURM), *words, "--out", "ray"],
        cwd=tmp_path, env={**clean, **job, "PATH": path}, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (done.stderr + done.stdout).count("Ray runtime started") == 2
    spdebench(*words, "--out", "local", cwd=tmp_path)
    (one,), (other,) = (list((tmp_path / name).iterdir()) for name in ("ray", "local"))
    assert one.read_bytes() == other.read_bytes()


SLOW_UNITS = """
import sys
import engine_units
from spdebench import engines
from spdebench.errors import UserError
try:
    list(engines.run(engine_units.writes_slowly, [(sys.argv[1], k) for k in range(3)], engine="ray"))
except UserError as error:
    print(error)
"""


def test_a_killed_head_is_one_line(tmp_path):
    """Of ours, and after 15 s; Ray itself would end the process after a minute, with other words."""
    with Cluster(nodes=1, cpus=2) as cluster:
        units = Path(__file__).parents[1] / "unit" / "engines"
        driver = subprocess.Popen(
            [sys.executable, "-c", SLOW_UNITS, str(tmp_path)],
            env={**cluster.environment, "PYTHONPATH": f"{units}:{cluster.environment.get('PYTHONPATH', '')}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        while driver.poll() is None and not list(tmp_path.glob(".*.tmp")):
            time.sleep(0.2)
        cluster.kill_node(0)
        said, _ = driver.communicate(timeout=300)
    assert said == (
        "the connection to the Ray cluster is lost (its head does not answer); finished work is kept, type the command "
        "again\n"
    )


SHARES = """
import json
import sys
import engine_units
from spdebench import engines
units = [(sys.argv[1], k) for k in range(5)]
found = engines.run(engine_units.occupies, units, engine="ray", needs=engines.Need(gpus=0.5))
print(json.dumps(list(found)))
"""


def test_units_share_a_gpu_and_no_more(tmp_path):
    """Half a GPU each, on a node that says it has one, and processors for all: never more than two at a time."""
    with Cluster(nodes=1, cpus=5, gpus=1) as cluster:
        units = Path(__file__).parents[1] / "unit" / "engines"
        env = {**cluster.environment, "PYTHONPATH": str(units)}
        done = subprocess.run([sys.executable, "-c", SHARES, str(tmp_path)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 5 and {gpu for _, _, gpu in found} == {"0"}
    simultaneous = [sum(other[0] <= start < other[1] for other in found) for start, _, _ in found]
    assert max(simultaneous) == 2
