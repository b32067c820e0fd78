"""States of the random stream that only the owner of a secret can compute, for test inputs with hidden solutions.

    s(sample, node) = first 64 bits of HMAC-SHA256(key, problem, purpose, sample, member, node)
    key             = HMAC-SHA256(secret, part)

The ordinary states of `stream` are invertible functions of the seed: from the increments of one sample one can compute
the seed, and with it the noise of all samples. Here the numbers of one node do not reveal those of another node, sample
or problem. Along the modes of one node the stream can still be inverted; hence the noise modes that are published and
those that are not have states from different keys (part "seen" and part "unseen").
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor


def message(*words: object) -> bytes:
    """Words and numbers, each terminated by a zero byte, so that different lists give different messages."""
    return b"".join(str(word).encode() + bytes(1) for word in words)


def derived(secret: bytes, *words: object) -> bytes:
    """HMAC-SHA256 of a message under a secret."""
    return hmac.digest(secret, message(*words), "sha256")


@dataclass(frozen=True)
class KeyedSeed:
    """Replaces a seed: initial data and noise of a problem are functions of (keys, problem, sample).

    ``seen`` is the key of the initial data and of the noise of ordinary samples, ``unseen`` that of the unseen noise
    modes of the members 1, 2, .. of a law. The members stay secret when the seen noise of their sample is published;
    the unseen modes of member 0, the ordinary sample, do not.
    """

    problem: str
    seen: bytes = field(repr=False)
    unseen: bytes = field(repr=False)

    @staticmethod
    def of(secret: bytes, problem: str) -> KeyedSeed:
        """The seed of a problem with both keys derived from one secret."""
        return KeyedSeed(problem, *(derived(secret, "spdebench stream 1", part) for part in ("seen", "unseen")))

    def states(self, purpose: str, samples: Sequence[int] | Tensor, device: torch.device | str) -> KeyedStates:
        """The states of ordinary samples."""
        prefixes = tuple(message(self.problem, purpose, int(sample), 0) for sample in samples)
        return KeyedStates(self.seen, prefixes, torch.device(device))

    def member_states(
        self, samples: Sequence[int] | Tensor, members: int | Sequence[int], device: torch.device | str
    ) -> KeyedStates:
        """The states of members 1, 2, .. of the samples; ``members`` is one number for all samples or one for each."""
        each = [members] * len(samples) if isinstance(members, int) else list(members)
        pairs = zip(samples, each, strict=True)
        prefixes = tuple(message(self.problem, "member", int(sample), member) for sample, member in pairs)
        return KeyedStates(self.unseen, prefixes, torch.device(device))


@dataclass(frozen=True)
class KeyedStates:
    """One state for every prefix (problem, purpose, sample, member) and node."""

    key: bytes = field(repr=False)
    prefixes: tuple[bytes, ...]
    device: torch.device

    def __len__(self) -> int:
        return len(self.prefixes)

    def at(self, nodes: Tensor) -> Tensor:
        """64-bit integers of shape (samples, nodes)."""
        words = [message(node) for node in nodes.tolist()]
        rows = {prefix: self._row(prefix, words) for prefix in dict.fromkeys(self.prefixes)}
        states = np.stack([rows[prefix] for prefix in self.prefixes])
        return torch.from_numpy(states).to(self.device)

    def _row(self, prefix: bytes, words: list[bytes]) -> np.ndarray:
        """The states of one prefix at all nodes: (nodes,)."""
        joined = b"".join(hmac.digest(self.key, prefix + word, "sha256")[:8] for word in words)
        return np.frombuffer(joined, dtype="<i8").astype(np.int64)
