"""A challenge is a folder: ``manifest.json`` and, for each problem, a Parquet file with inputs and without u."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spdebench.challenge.arrays import ArraysFile, check_file, sha256_of, write_arrays
from spdebench.challenge.manifest import MANIFEST_FILE, ChallengeProblem, Manifest, manifest_text, read_manifest
from spdebench.challenge.secret import check_secret, commitment
from spdebench.challenge.truth import drawn_inputs
from spdebench.data.checks import check_device
from spdebench.equations.identity import to_dict
from spdebench.errors import UserError
from spdebench.files import new_folder, write_text
from spdebench.suites import SUITES


@dataclass(frozen=True)
class Inputs:
    """The inputs of a problem: u0 (n X..) and dw (n T X..), or only the seen part of dw if the task is a law."""

    problem: ChallengeProblem
    u0: np.ndarray
    dw: np.ndarray


@dataclass(frozen=True)
class Challenge:
    """A challenge in a folder: `manifest`, and `inputs` of each of its problems."""

    folder: Path
    manifest: Manifest

    @property
    def labels(self) -> tuple[str, ...]:
        """The problems."""
        return tuple(problem.label for problem in self.manifest.problems)

    def inputs(self, label: str) -> Inputs:
        """Read the inputs of a problem; raises an error if the file does not have the checksum of the manifest."""
        problem = self.manifest[label]
        path = self.folder / problem.file
        if not path.is_file():
            raise UserError(f"{path} is missing; fetch the challenge again")
        if sha256_of(path) != problem.sha256:
            raise UserError(f"{path} does not have the checksum of the manifest; fetch the challenge again")
        file = ArraysFile(path)
        check_file(file, _identity(self.manifest, problem), problem.columns(), problem.n)
        return Inputs(problem, file.read("u0"), file.read(problem.noise_column))


def open_challenge(folder: str | os.PathLike[str]) -> Challenge:
    """Open a challenge; only its manifest is read at first."""
    place = Path(folder)
    if not place.is_dir():
        raise UserError(f"no such challenge: {place} (a challenge is a folder with {MANIFEST_FILE})")
    return Challenge(place, read_manifest(place))


def _identity(manifest: Manifest, problem: ChallengeProblem) -> dict[str, str]:
    return {"challenge": manifest.commitment, "suite": manifest.suite, "problem": problem.label}


def make_challenge(
    suite: str,
    secret: bytes,
    out: str | os.PathLike[str],
    *,
    only: str = "",
    n: int = 200,
    seen: Sequence[int] = (),
    members: int = 32,
    device: str = "cpu",
    overwrite: bool = False,
) -> Challenge:
    """Write the inputs of a suite's problems, drawn from a secret, into a new folder.

    Each problem is given with all of its noise, and once more for each K in ``seen`` with the functions that truncation
    K keeps; then predicted laws will be compared with ``members`` solutions for each input.
    """
    check_device(device)
    check_secret(secret, "the secret")
    chosen = SUITES[suite].choose(only)
    problems = []
    for each in chosen:
        equation = to_dict(each.build())
        problems.append(ChallengeProblem(name=each.name, equation=equation, n=n))
        for k in dict.fromkeys(seen):
            problems.append(ChallengeProblem(name=each.name, equation=equation, n=n, seen=k, members=members))
    manifest = Manifest(suite=suite, commitment=commitment(secret), problems=tuple(problems))
    with new_folder(Path(out), overwrite, (MANIFEST_FILE, "*.parquet")) as folder:
        written = []
        for problem in problems:
            u0, dw = drawn_inputs(problem, manifest.keyed_seed(secret, problem), device)
            path = folder / problem.file
            write_arrays(path, _identity(manifest, problem), {"u0": u0, problem.noise_column: dw})
            written.append(replace(problem, sha256=sha256_of(path)))
        complete = replace(manifest, problems=tuple(written)).sealed(secret)
        write_text(folder / MANIFEST_FILE, manifest_text(complete))
    return Challenge(Path(out), complete)
