"""Python code as the child of a process that has imported the libraries: it starts in milliseconds, not in seconds.

The package itself is not imported there: each child imports it anew, with its own environment.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PARENT = """
import json, os, sys, traceback, types
import numpy, pandas, pyarrow.parquet, scipy.integrate, scipy.optimize, scipy.special, scipy.stats, torch

def child(wanted):
    code = 1
    try:
        for number, name in enumerate((os.devnull, *wanted["said"])):
            os.dup2(os.open(name, os.O_WRONLY if number else os.O_RDONLY), number)
        sys.stdin = open(0, closefd=False)
        os.chdir(wanted["folder"])
        os.environ.update(wanted["environment"])
        sys.argv = ["-c", *wanted["arguments"]]
        sys.path[:0] = wanted["path"]
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(wanted["code"], "<code>", "exec"), module.__dict__)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

while line := sys.stdin.readline():
    pid = os.fork()
    if pid == 0:
        child(json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
SCRIPT = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@functools.cache
def _parent() -> subprocess.Popen[str]:
    """One process for all tests of this process; it ends with it, because its standard input does."""
    few = {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", PARENT], stdin=pipe, stdout=pipe, text=True, env=os.environ | few)


def run_code(
    code: str,
    *arguments: object,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    path: Sequence[Path] = (),
) -> subprocess.CompletedProcess[str]:
    """``python -c CODE ARGUMENTS`` in a folder, with more environment variables and folders of modules."""
    parent = _parent()
    assert parent.stdin is not None and parent.stdout is not None
    with tempfile.TemporaryDirectory() as place:
        said = [Path(place, name) for name in ("out", "err")]
        for file in said:
            file.touch()
        wanted = {
            "code": code, "arguments": list(map(str, arguments)), "folder": str(folder or Path.cwd()),
            "environment": dict(environment or {}), "path": list(map(str, path)), "said": list(map(str, said)),
        }  # fmt: skip
        parent.stdin.write(f"{json.dumps(wanted)}\n")
        parent.stdin.flush()
        answer = parent.stdout.readline()
        assert answer, "the process that has imported the libraries has ended"
        return subprocess.CompletedProcess([code], int(answer), *(file.read_text() for file in said))


def run_script(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """``python SCRIPT`` in a folder."""
    return run_code(SCRIPT, script, folder=folder, path=[script.parent])


def run_command(*words: object, path: Sequence[Path] = (), folder: Path | None = None) -> subprocess.CompletedProcess:
    """``python -m spdebench WORDS``."""
    return run_code("from spdebench.__main__ import main; main()", *words, folder=folder, path=path)
