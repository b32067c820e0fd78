"""Publishes and loads trained models: in a folder, in one file, or on the Hugging Face hub.

A published folder (or repository) is the folder of a run without log and predictions, and with a card:

best.safetensors  the weights; the spec and the record are in the file's metadata as well, so that it can be used alone
spec.json         model, configuration, datasets, task and options
record.json       the record with all scores
scores.json       the scores of single samples
README.md         the card

Files of other people are only data: the spec names a registered model, whose configuration is checked field by field,
and the weights are tensors with the names, shapes and types of that model. No code in these files is run.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from spdebench import tensors
from spdebench.data import hub
from spdebench.data.checks import check_folder
from spdebench.errors import Damaged, UserError
from spdebench.files import MOST_JSON, make_folder, plain_name, write_text
from spdebench.metrics import Scores
from spdebench.records import Record
from spdebench.training.folder import write_json
from spdebench.training.identity import from_dict
from spdebench.training.run import Run, check_best, open_run

WEIGHTS, SCORES, CARD = "best.safetensors", "scores.json", "README.md"
_FILES = {"spec.json": True, WEIGHTS: True, "record.json": True, SCORES: False, CARD: False}
"""The files of a published model, and whether each is required."""
MOST_WEIGHTS = 4 << 30
"""The most bytes that a fetched file of weights may have; the largest model of the paper has 0.3 GB."""
MARK = "<!-- written by spdebench model push -->"
"""Marks a card that may be overwritten."""
_ON_HUB = "hub:"


# --- reading ------------------------------------------------------------------------------------------------------
def load_model(source: str | os.PathLike[str] | hub.Repository) -> Run:
    """A trained model that predicts: ``model.predict(u0, dw)``.

    ``source`` is a run's folder, a file that `write_model` wrote, or ``hub:OWNER/NAME`` (``hub:OWNER/NAME@REVISION``),
    which is kept in the user's cache. Everything is read and checked at once; no code from the source is run.
    """
    if isinstance(source, hub.Repository) or str(source).startswith(_ON_HUB):
        repository = source if isinstance(source, hub.Repository) else repository_of(str(source))
        return _fetched(repository, _cache() / repository.repo)
    run = open_run(source)
    run.model  # noqa: B018  (raises an error if weights and spec do not fit)
    return run


class ModelFile(Run):
    """A model in one file: the weights with the spec and the record of the run that made them."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        try:
            spec = from_dict(content["spec"], str(path))
            self._record = Record.from_dict(content["record"])
            check_best(content)
        except (ValueError, UserError) as error:
            raise Damaged(f"{path} is not a file of a trained model ({error}); fetch it again") from None
        if not spec.digest == self._record.digest == content.get("digest"):
            raise Damaged(f"{path} holds the spec, the record and the weights of different runs; fetch it again")
        super().__init__(path, spec)
        self._content = content

    @property
    def weights_file(self) -> Path:
        return self.path

    @property
    def finished(self) -> bool:
        return True

    @cached_property
    def best(self) -> dict[str, Any]:
        return self._content

    @property
    def record(self) -> Record:
        return self._record

    @property
    def scores(self) -> Scores:
        raise UserError(f"{self.path} has no scores of single samples; its record has the scores of the test part")


def open_file(path: Path) -> Run:
    """The model in a file of `write_model`, or the run to whose folder a file of weights belongs."""
    try:
        content = tensors.load(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise Damaged(f"{path} cannot be read ({error}); fetch it again") from None
    if "spec" in content and "record" in content:
        return ModelFile(path, content)
    if path.name == WEIGHTS and (path.parent / "spec.json").is_file():
        return open_run(path.parent)
    raise UserError(f"{path} holds weights without the spec of their run; give the run's folder, or use 'model push'")


# --- writing ------------------------------------------------------------------------------------------------------
def write_model(run: Run, path: Path) -> Path:
    """Write a finished run as one file."""
    content = {**run.best, "spec": run.spec.to_dict(), "record": run.record.to_dict()}
    run.model  # noqa: B018  (raises an error if weights and spec do not fit)
    tensors.save(path, content)
    return path


def publish(run: Run, folder: Path, card: Callable[[Run], str]) -> list[Path]:
    """Write the files of a published model into a folder; returns them. A card of somebody else stays as it is."""
    if folder.resolve() == run.path.resolve():
        raise UserError(f"{folder} is the folder of the run itself; choose another one")
    if (folder / "spec.json").exists() and open_run(folder).spec.digest != run.spec.digest:
        raise UserError(f"{folder} holds another model; choose another folder")
    run.record  # noqa: B018  (refuses a run that is not finished)
    check_folder(folder, option="")
    text = card(run)
    make_folder(folder)
    written = [write_model(run, folder / WEIGHTS), folder / "spec.json", folder / "record.json"]
    write_json(folder / "spec.json", run.spec.to_dict())
    write_json(folder / "record.json", run.record.to_dict())
    if not isinstance(run, ModelFile):
        write_text(folder / SCORES, run.scores.to_json())
        written.append(folder / SCORES)
    page = folder / CARD
    if not page.exists() or MARK in page.read_text(encoding="utf-8", errors="replace"):
        write_text(page, text)
        written.append(page)
    return written


def push(run: Run, repository: hub.Repository, card: Callable[[Run], str], private: bool = False) -> str:
    """Upload the files of a published model in one commit and return its address."""
    run.record  # noqa: B018  (refuses a run that is not finished)
    commit, known = hub.prepare(repository, private)
    present = hub.read_small(CARD, commit, known, repository)
    with tempfile.TemporaryDirectory() as folder:
        written = publish(run, Path(folder), card)
        keep = present is not None and MARK.encode() not in present
        content = {path.name: path for path in written if not (keep and path.name == CARD)}
        return hub.upload(repository, content, f"{run.name}: weights, record and card")


# --- the hub ------------------------------------------------------------------------------------------------------
def is_on_hub(text: str) -> bool:
    return text.startswith(_ON_HUB)


def repository_of(text: str) -> hub.Repository:
    """``hub:OWNER/NAME`` or ``hub:OWNER/NAME@REVISION``."""
    repo, at, revision = text.removeprefix(_ON_HUB).partition("@")
    named = is_on_hub(text) and re.fullmatch(r"[^/]+/[^/]+", repo)
    if not named or (at and not re.fullmatch(r"[\w./-]{1,100}", revision)):
        raise UserError(f"a model on the hub is hub:OWNER/NAME or hub:OWNER/NAME@REVISION, got '{text}'")
    return hub.Repository(repo, revision or "main", kind="model")


def get(repository: hub.Repository, out: Path) -> Run:
    """Fetch a published model into the folder ``out``/NAME and check it; an existing copy is compared and kept."""
    return _fetched(
        repository, out / plain_name(repository.repo.partition("/")[2], "the name of the model"), by_commit=False
    )


def _fetched(repository: hub.Repository, folder: Path, by_commit: bool = True) -> Run:
    """Fetch a published model into ``folder`` (or its sub-folder named by the commit), check it and open it."""
    commit, known = hub.files(repository)
    if by_commit:
        folder = folder / plain_name(commit, "the commit")
    wanted = [remote for remote in known if remote.path in _FILES]
    if missing := [name for name, needed in _FILES.items() if needed and name not in {f.path for f in wanted}]:
        raise UserError(f"{repository.repo} holds no model of spdebench: it has no {', '.join(missing)}")
    for remote in wanted:
        if remote.size > (limit := MOST_WEIGHTS if remote.path == WEIGHTS else MOST_JSON):
            raise UserError(
                f"{remote.path} of {repository.repo} has {remote.size} bytes, more than {limit}; it is refused"
            )
    new = []
    try:
        for remote in wanted:
            target = folder / remote.path
            new += [] if target.exists() else [target]
            hub.fetch(remote, commit, repository, target)
        run = open_run(folder)
        run.record, run.model  # noqa: B018  (raise an error if they do not fit)
    except UserError:
        for path in new:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty
            folder.rmdir()
        raise
    return run


def _cache() -> Path:
    """The folder in which models from the hub are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spdebench" / "models"
