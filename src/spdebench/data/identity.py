"""The identity of a dataset: equation, seed, number of samples, chunk and stream; its JSON, hash and file name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from spdebench import spec
from spdebench.equations import EQUATIONS, Equation
from spdebench.equations.identity import check_class, class_record
from spdebench.equations.inputs import TASK_IN_FILE_NAMES
from spdebench.errors import UserError
from spdebench.noise import STREAM

LAYOUT = 1
"""Version of the native layout; a reader refuses others."""


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """Everything on which the numbers of a file depend. ``chunk`` samples are solved together."""

    equation: Equation
    n: int
    seed: int = 0
    chunk: int = 0
    stream: str = STREAM

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UserError(f"the number of samples n must be at least 1, got {self.n}")
        if not 0 <= self.seed < 2**63:
            raise UserError(f"seed must be between 0 and 2^63 - 1, got {self.seed}")
        if self.chunk < 0:
            raise UserError(f"chunk must be at least 1 (or 0 for automatic), got {self.chunk}")
        if self.chunk == 0:
            fitting = max(1, (64 << 20) // self.sample_bytes)
            object.__setattr__(self, "chunk", min(256, 1 << int(math.log2(fitting))))

    @property
    def shape(self) -> tuple[int, ...]:
        """T X.. of one stored path."""
        return (self.equation.frames + 1, *self.equation.grid.points)

    @property
    def sample_bytes(self) -> int:
        """float32 bytes of u0, dw and u of one sample."""
        path = math.prod(self.shape)
        return 4 * (2 * path + path // self.shape[0])

    @property
    def row_group(self) -> int:
        """Rows per Parquet row group: about 2 MB, 64 at most."""
        return max(1, min(64, self.chunk, (2 << 20) // self.sample_bytes))

    @property
    def chunks(self) -> int:
        return -(-self.n // self.chunk)

    def rows(self, index: int) -> range:
        """The samples of one chunk."""
        return range(index * self.chunk, min(self.n, (index + 1) * self.chunk))

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
        }

    @property
    def digest(self) -> str:
        return spec.digest(self.to_dict())

    @property
    def file_name(self) -> str:
        """Readable first, then the hash: phi41-xi-periodic-fourier-J128-s0.1-paper-n1200-seed0-<hash>.parquet."""
        e = self.equation
        kind = {"cylindrical": "cyl", "q_wiener": "Q"}.get(e.noise, e.noise)
        noise = [f"{kind}-{e.basis}", f"J{e.truncation}", f"s{e.sigma:g}"]
        parts = [e.name, TASK_IN_FILE_NAMES[e.task], e.boundary, *noise, e.edition]
        return "-".join([*parts, f"n{self.n}", f"seed{self.seed}", self.digest]) + ".parquet"


def from_dict(values: Any) -> DatasetSpec:
    """The spec whose `to_dict` this is; anything else is one clear line."""
    if not isinstance(values, dict) or values.get("layout") != LAYOUT:
        found = values.get("layout") if isinstance(values, dict) else None
        raise UserError(f"the file has layout version {found!r}; this version reads {LAYOUT}")
    try:
        equation = spec.build(EQUATIONS[values["equation"]], values["fields"], values["equation"], stored=True)
        check_class(equation, values.get("class", {}))
        numbers = {key: spec.decode(values[key], int, key) for key in ("n", "seed", "chunk")}
        return DatasetSpec(equation=equation, stream=spec.decode(values["stream"], str, "stream"), **numbers)
    except (KeyError, TypeError) as error:
        raise UserError(f"the file's spec is incomplete: {error}") from None
    except OverflowError:
        raise UserError("the file's spec has a number that is too large") from None


def from_json(text: str) -> DatasetSpec:
    try:
        values = spec.loads(text)
    except ValueError as error:
        raise UserError(f"the file's spec is not JSON: {error}") from None
    return from_dict(values)
