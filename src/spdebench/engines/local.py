"""Units of work in this process or in several of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TypeVar

import torch

from spdebench.engines.memory import keep_freed_memory
from spdebench.errors import UserError

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def run(work: Callable[[Unit], Result], units: Sequence[Unit], workers: int = 1) -> Iterator[Result]:
    """Results of ``work(unit)`` as they come; each worker computes with one thread, so that none fights another."""
    if workers < 1:
        raise UserError(f"workers must be at least 1, got {workers}")
    return map(work, units) if workers == 1 or len(units) <= 1 else _in_processes(work, units, workers)


def _in_processes(work: Callable[[Unit], Result], units: Sequence[Unit], workers: int) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(units)), mp_context=context, initializer=_start_worker)
    try:
        waiting = list(reversed(units))
        running: set[Future[Result]] = set()
        while waiting or running:
            while waiting and len(running) < workers + 1:  # a short queue: an interrupt loses little
                running.add(pool.submit(work, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
