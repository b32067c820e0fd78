"""The manifest of a challenge: its problems, the checksums of their input files and the SHA-256 of its secret.

It is sealed with the secret, so that the owner of the secret can check that the manifest of a submission is the one
that was published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spdebench.challenge.reading import read_typed, without_version
from spdebench.challenge.secret import commitment, is_sealed, seal
from spdebench.data.identity import MOST_MEMBERS
from spdebench.equations import Equation
from spdebench.equations.identity import from_dict
from spdebench.errors import UserError, unknown
from spdebench.files import MOST_JSON, plain_name
from spdebench.noise import KeyedSeed
from spdebench.records.codec import build, encode

MANIFEST_FILE = "manifest.json"
VERSION = 1
LEAST_INPUTS, MOST_INPUTS = 3, 100_000
"""The fewest and the most inputs of a problem."""


def problem_label(name: str, seen: int | None) -> str:
    """The name of a problem, followed by the truncation of the seen noise if not all noise is seen."""
    return name if seen is None else f"{name}-seen{seen}"


@dataclass(frozen=True, kw_only=True)
class ChallengeProblem:
    """``n`` inputs of a problem.

    Without ``seen``, u0 and dw are given. With ``seen`` = K, u0 and dw_seen are given, and the predicted law is
    compared with ``members`` solutions of each input.
    """

    name: str
    equation: Mapping[str, Any]
    n: int
    sha256: str = ""
    seen: int | None = None
    members: int | None = None

    def __post_init__(self) -> None:
        plain_name(self.name, "the name of a problem")
        if not LEAST_INPUTS <= self.n <= MOST_INPUTS:
            raise UserError(f"n must be between {LEAST_INPUTS} and {MOST_INPUTS}, got {self.n}")
        if (self.seen is None) != (self.members is None):
            raise UserError("members must be given with seen")
        if self.members is not None and not 2 <= self.members <= MOST_MEMBERS:
            raise UserError(f"members must be between 2 and {MOST_MEMBERS}, got {self.members}")
        if self.seen is not None:
            eq = self.build()
            if not 0 <= self.seen < eq.truncation:
                raise UserError(f"{self.name}: seen must be between 0 and J-1 = {eq.truncation - 1}, got {self.seen}")
            eq.series().kept_by(self.seen)  # raises where the basis has no such truncation

    @property
    def label(self) -> str:
        """The problem's name, with the truncation of the seen noise if not all noise is seen."""
        return problem_label(self.name, self.seen)

    @property
    def file(self) -> str:
        """The name of the file with its inputs."""
        return f"{self.label}.parquet"

    @property
    def noise_column(self) -> str:
        return "dw" if self.seen is None else "dw_seen"

    def build(self) -> Equation:
        """The equation of the problem."""
        try:
            return from_dict(dict(self.equation))
        except (KeyError, TypeError, OverflowError) as error:
            raise UserError(f"the equation of {self.name} is incomplete: {error}") from None

    @property
    def path_shape(self) -> tuple[int, ...]:
        """(T, X..) of one path."""
        eq = self.build()
        return (eq.frames + 1, *eq.grid.points)

    def columns(self) -> dict[str, tuple[int, ...]]:
        """The columns of the inputs' file."""
        return {"u0": self.path_shape[1:], self.noise_column: self.path_shape}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A challenge: ``commitment`` is the SHA-256 of its secret, ``seal`` an HMAC of all other fields."""

    suite: str
    commitment: str
    problems: tuple[ChallengeProblem, ...]
    seal: str = ""

    def __post_init__(self) -> None:
        labels = [problem.label for problem in self.problems]
        if not labels or len(set(labels)) < len(labels):
            raise UserError("problems must be different, and at least one")

    def __getitem__(self, label: str) -> ChallengeProblem:
        for problem in self.problems:
            if problem.label == label:
                return problem
        raise unknown("problem of the challenge", label, [problem.label for problem in self.problems])

    def keyed_seed(self, secret: bytes, problem: ChallengeProblem) -> KeyedSeed:
        """The keyed seed of the inputs and the true solutions of a problem."""
        return KeyedSeed.of(secret, f"{self.suite}/{problem.label}")

    def sealed(self, secret: bytes) -> Manifest:
        return replace(self, seal=seal(secret, "manifest", self._content()))

    def check(self, secret: bytes, where: str) -> None:
        """Raise an error unless the manifest was made with this secret and not changed since."""
        if commitment(secret) != self.commitment:
            raise UserError(
                f"this is not the secret of {where}: its SHA-256 begins with {commitment(secret)[:12]}, that of the "
                f"challenge with {self.commitment[:12]}"
            )
        if not is_sealed(secret, "manifest", self._content(), self.seal):
            raise UserError(f"{where} was changed since the challenge was made; use the manifest that was published")

    def _content(self) -> Any:
        return encode(replace(self, seal=""))


def manifest_text(manifest: Manifest) -> str:
    return json.dumps({"version": VERSION, **encode(manifest)}, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest in a folder; raises a one-line error that names the field if it is not valid."""
    help = "take the one that was published with the challenge"
    return read_typed(
        folder / MANIFEST_FILE,
        lambda values: build(Manifest, without_version(values, VERSION), ""),
        "the manifest of a challenge",
        help,
        MOST_JSON,
    )
