"""The identity of a dataset: equation, seed, number of samples, chunk and stream; its JSON, hash and file name."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spdebench import spec
from spdebench.data.blocks import SPLIT_SEED, block_rows
from spdebench.equations import EQUATIONS, Equation
from spdebench.equations.identity import check_class, class_record
from spdebench.equations.inputs import TASK_IN_FILE_NAMES
from spdebench.equations.scheme import SCHEMES
from spdebench.errors import UserError
from spdebench.noise import STREAM

LAYOUT = 1
"""Version of the native layout; a reader refuses others."""
MOST_MEMBERS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """Everything on which the numbers of a file depend. ``chunk`` rows are solved together.

    A row is a sample: u0, dw, u and, with ``seen``, dw_seen, the increments of the noise modes that this truncation
    keeps. With ``members`` M > 1 this is the spec of a second file: its rows are u of the members 1..M-1 of the law
    given u0 and dw_seen, for the test part of the n samples; member 0 is the sample itself, which is in the first file.
    """

    equation: Equation
    n: int
    seed: int = 0
    chunk: int = 0
    stream: str = STREAM
    seen: int | None = None
    members: int = 1

    def __post_init__(self) -> None:
        for key in ("n", "seed", "chunk", "members", *(() if self.seen is None else ("seen",))):
            object.__setattr__(self, key, spec.decode(getattr(self, key), int, key))
        if self.n < 1:
            raise UserError(f"the number of samples n must be at least 1, got {self.n}")
        if not 0 <= self.seed < 2**63:
            raise UserError(f"seed must be between 0 and 2^63 - 1, got {self.seed}")
        self._check_members()
        if self.chunk < 0:
            raise UserError(f"chunk must be at least 1 (or 0 for automatic), got {self.chunk}")
        if self.chunk == 0:
            fitting = max(1, (64 << 20) // self.sample_bytes)
            object.__setattr__(self, "chunk", min(256, 1 << int(math.log2(fitting))))

    def _check_members(self) -> None:
        """Refuse values of ``seen`` and ``members`` that do not make sense."""
        if not 1 <= self.members <= MOST_MEMBERS:
            raise UserError(f"members must be between 1 and {MOST_MEMBERS}, got {self.members}")
        if self.seen is None:
            if self.members > 1:
                raise UserError("members of a law are draws of the unseen noise; say with seen=K what is seen")
            return
        check_seen(self.equation, self.seen)
        if self.members == 1:
            return
        if self.seen == self.equation.truncation:
            raise UserError(f"with seen=J={self.seen} all of the noise is seen and u is one path; leave out members")
        if self.seen == 0 and not self.equation.kappa:
            raise UserError(
                "with seen=0 and one fixed u0 (kappa=0) all inputs have the same law; use kappa=0.1, or seen above 0"
            )
        if not len(self.inputs):
            raise UserError(
                f"none of the {self.n} samples belongs to the test part, for which members are generated; use n=20"
            )

    @property
    def inputs(self) -> np.ndarray:
        """The numbers of the samples for which members are made: the test part of the default split."""
        return block_rows(SPLIT_SEED, self.n)["test"]

    @property
    def samples_file(self) -> DatasetSpec:
        """The spec of the dataset whose members are in this file; itself if this file has samples."""
        return self if self.members == 1 else replace(self, members=1)

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, X..) of one stored path."""
        return (self.equation.frames + 1, *self.equation.grid.points)

    @property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """The shape of each column of a row."""
        if self.members > 1:
            return {"u": self.shape}
        seen = {} if self.seen is None else {"dw_seen": self.shape}
        return {"u0": self.shape[1:], "dw": self.shape, "u": self.shape, **seen}

    @property
    def total(self) -> int:
        """The number of rows of the file."""
        return self.n if self.members == 1 else len(self.inputs) * (self.members - 1)

    @property
    def rows_text(self) -> str:
        """``60 samples``, or ``63 members, 7 of each of 9 samples``."""
        if self.members == 1:
            return f"{self.n} samples"
        return f"{self.total} members, {self.members - 1} of each of {len(self.inputs)} samples"

    def members_in(self, rows: range) -> tuple[list[int], tuple[int, ...]]:
        """The sample and the member of each row: members 1..M-1 of the first input, then those of the second, .."""
        inputs, others = self.inputs, self.members - 1
        return [int(inputs[row // others]) for row in rows], tuple(1 + row % others for row in rows)

    @property
    def sample_bytes(self) -> int:
        """The number of bytes of one row in float32."""
        return 4 * sum(math.prod(shape) for shape in self.columns.values())

    @property
    def row_group(self) -> int:
        """Rows per Parquet row group: about 2 MB, 64 at most."""
        return max(1, min(64, self.chunk, (2 << 20) // self.sample_bytes))

    @property
    def chunks(self) -> int:
        return -(-self.total // self.chunk)

    def rows(self, index: int) -> range:
        """The rows of one chunk."""
        return range(index * self.chunk, min(self.total, (index + 1) * self.chunk))

    def to_dict(self) -> dict[str, Any]:
        record = class_record(self.equation)
        return {
            "equation": self.equation.name,
            "fields": spec.to_dict(self.equation),
            "n": self.n,
            "seed": self.seed,
            "chunk": self.chunk,
            "stream": self.stream,
            "layout": LAYOUT,
            **({"class": record} if record else {}),
            **({} if self.seen is None else {"seen": self.seen, "members": self.members}),
        }

    @property
    def digest(self) -> str:
        return spec.digest(self.to_dict())

    @property
    def file_name(self) -> str:
        """Readable words, then the hash: phi41-xi-periodic-cyl-fourier-J128-s0.1-paper-n1200-seed0-<hash>.parquet."""
        e = self.equation
        short = {"cylindrical": "cyl", "q_wiener": "Q"}.get(e.noise, e.noise)
        noise = [f"{short}-{e.basis}", f"J{e.truncation}", f"s{e.sigma:g}"]
        parts = [e.name, TASK_IN_FILE_NAMES[e.task], e.boundary, *noise, e.edition]
        if self.members > 1:
            return f"{Path(self.samples_file.file_name).stem}-members{self.members}-{self.digest}.parquet"
        seen = [] if self.seen is None else [f"seen{self.seen}"]
        return "-".join([*parts, *seen, f"n{self.n}", f"seed{self.seed}", self.digest]) + ".parquet"


def from_dict(values: Any) -> DatasetSpec:
    """The spec that `to_dict` turned into ``values``; anything else is a one-line error."""
    if not isinstance(values, dict) or values.get("layout") != LAYOUT:
        found = values.get("layout") if isinstance(values, dict) else None
        raise UserError(f"the file has layout version {found!r}; this version reads {LAYOUT}")
    try:
        equation = spec.build(EQUATIONS[values["equation"]], values["fields"], values["equation"], stored=True)
        check_class(equation, values.get("class", {}))
        optional = [key for key in ("seen", "members") if key in values]
        numbers = {key: spec.decode(values[key], int, key) for key in ("n", "seed", "chunk", *optional)}
        return DatasetSpec(equation=equation, stream=spec.decode(values["stream"], str, "stream"), **numbers)
    except (KeyError, TypeError) as error:
        raise UserError(f"the file's spec is incomplete: {error}") from None
    except OverflowError:
        raise UserError("the file's spec has a number that is too large") from None


def from_json(text: str) -> DatasetSpec:
    """The dataset specification in the JSON text of a file's metadata."""
    try:
        values = spec.loads(text)
    except ValueError as error:
        raise UserError(f"the file's spec is not JSON: {error}") from None
    return from_dict(values)


def check_seen(equation: Equation, seen: int, where: str = "") -> None:
    """Refuse a truncation above J or that the basis does not have, and J itself if the noise has modes beyond it.

    The message about its range begins with ``where``.
    """
    if not 0 <= seen <= equation.truncation:
        raise UserError(f"{where}seen must be between 0 and J={equation.truncation}, got {seen}")
    basis = equation.series()
    kept = basis.kept_by(seen)
    if seen == equation.truncation and bool(((basis.index > 0) & ~kept).any()):
        raise UserError(
            f"seen=J={seen} is not all of the noise: {equation.name} has modes beyond J (resolve_mollifier); leave out "
            f"seen, so that all of it is seen, or use a smaller one"
        )


def dataset_of(values: Any) -> DatasetSpec:
    """The same as `from_dict`; many runs share a dataset, which is decoded once for the classes that are registered."""
    name = values.get("equation") if isinstance(values, dict) else None
    if not isinstance(name, str) or name not in EQUATIONS:
        return from_dict(values)
    return _decoded(spec.canonical_json(values), EQUATIONS[name], *SCHEMES.values())


@functools.lru_cache(maxsize=4096)
def _decoded(text: str, *registered: type) -> DatasetSpec:
    return from_json(text)
