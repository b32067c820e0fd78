"""Scripts as children of one process that has imported the package: each starts in milliseconds instead of seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PARENT = """
import json, os, runpy, sys, traceback
import matplotlib.pyplot, pandas, pyarrow.parquet, torch
import spdebench, spdebench.cli.main, spdebench.training, spdebench.metrics, spdebench.models

def child(script, folder, said):
    code = 1
    try:
        os.chdir(folder)
        descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.argv = [script]
        sys.path[0] = os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

codes = {}
for script, folder, said in json.load(sys.stdin):
    pid = os.fork()
    if pid == 0:
        child(script, folder, said)
    codes[script] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps(codes))
"""


def run_scripts(scripts: Mapping[Path, Path], said: Path) -> dict[Path, tuple[int, str]]:
    """The exit code of each script in its folder, and what it said, which is kept as a file in the folder ``said``."""
    files = {script: said / f"{number}.txt" for number, script in enumerate(scripts)}
    wanted = [(str(script), str(folder), str(files[script])) for script, folder in scripts.items()]
    done = subprocess.run([sys.executable, "-c", PARENT], input=json.dumps(wanted), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout)
    return {script: (codes[str(script)], file.read_text()) for script, file in files.items()}
