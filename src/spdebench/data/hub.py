"""Files on the Hugging Face hub (extra ``hub``): `get` fetches a dataset by name, `fetch` any file, `upload` commits
files. `spdebench.data.publish` and `spdebench.training.share` define which files a dataset or a model has there. A
download is a temporary file next to its target until it is complete and its checksum is right; an interrupted download
is resumed. Names and sizes that the hub reports are checked like those of any file.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import urlparse

from spdebench.data.checks import check_folder
from spdebench.data.store import open_dataset
from spdebench.engines.locks import locked
from spdebench.errors import UserError, did_you_mean, first_line, needs_extra
from spdebench.files import MOST_JSON, check_free_disk, plain_name, put_in_place, read_bytes, sync_file
from spdebench.progress import Progress

DOI = "https://doi.org/10.57967/hf/8682"
"""The DOI of the paper's own data; its page names the repository."""
_NETWORK = ("httpx", "httpx2", "httpcore", "requests", "urllib3", "huggingface_hub")
"""Packages whose errors mean a network problem; the library has changed its HTTP client more than once."""


def _hub() -> Any:
    """The library huggingface_hub, without telemetry and with plain HTTP, whose downloads can be resumed."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        import huggingface_hub
    except ImportError:
        raise needs_extra("the hub", "hub") from None
    return huggingface_hub


@dataclass(frozen=True)
class Repository:
    """A repository ``repo`` (OWNER/NAME) at a ``revision``.

    ``endpoint`` and ``token`` are by default those of the library (HF_ENDPOINT, HF_TOKEN).
    """

    repo: str
    revision: str = "main"
    endpoint: str | None = None
    token: str | None = None
    kind: Literal["dataset", "model"] = "dataset"

    def __post_init__(self) -> None:
        if not self.repo:
            raise UserError(f"no repository is given; use --repo OWNER/NAME ({DOI} leads to that of the paper's data)")
        if not re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", self.repo) or ".." in self.repo or "--" in self.repo:
            raise UserError(f"a repository is OWNER/NAME, got '{self.repo}'")

    @property
    def api(self) -> Any:
        return _hub().HfApi(endpoint=self.endpoint, token=self.token)

    @property
    def page(self) -> str:
        """The address of the repository."""
        end = (self.endpoint or _hub().constants.ENDPOINT).rstrip("/")
        return f"{end}/{'datasets/' if self.kind == 'dataset' else ''}{self.repo}"


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository; ``checksum`` is SHA-256, or for small files that are not in LFS git's own SHA-1."""

    path: str
    size: int
    checksum: str
    lfs: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def matches(self, file: Path) -> bool:
        digest = hashlib.sha256() if self.lfs else hashlib.sha1(b"blob %d\0" % file.stat().st_size)
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        return digest.hexdigest() == self.checksum


# --- listing ------------------------------------------------------------------------------------------------------
def files(repository: Repository) -> tuple[str, list[RemoteFile]]:
    """The commit of the repository's revision, and the files in it."""
    api = repository.api
    with _plain_errors(repository):
        commit = api.repo_info(repository.repo, repo_type=repository.kind, revision=repository.revision).sha
        tree = list(api.list_repo_tree(repository.repo, repo_type=repository.kind, revision=commit, recursive=True))
    found = [entry for entry in tree if hasattr(entry, "blob_id")]
    return commit, [RemoteFile(f.path, int(f.size), f.lfs.sha256 if f.lfs else f.blob_id, bool(f.lfs)) for f in found]


def choose(name: str, known: list[RemoteFile], repository: Repository) -> RemoteFile:
    """The file with this path, this name, or this name without ``.parquet``."""
    data = [f for f in known if f.path.endswith(".parquet")]
    for called in (
        [f.path for f in data],
        [f.name for f in data],
        [f.name.removesuffix(".parquet") for f in data],
    ):
        fits = [f for f, each in zip(data, called, strict=True) if each == name]
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise UserError(f"'{name}' is several files of {repository.repo}: {', '.join(f.path for f in fits)}")
    if not data:
        raise UserError(f"{repository.repo} has no Parquet files")
    raise UserError(f"{repository.repo} has no file '{name}'{did_you_mean(name, [f.name for f in data])}")


# --- get ----------------------------------------------------------------------------------------------------------
def get(name: str, repository: Repository, out: str | os.PathLike[str] = "data") -> Path:
    """Download a file into the folder ``out`` and return its path; an existing file is compared and kept."""
    commit, known = files(repository)
    remote = choose(name, known, repository)
    return fetch(remote, commit, repository, Path(out) / plain_name(remote.name, f"the file in {repository.repo}"))


def fetch(remote: RemoteFile, commit: str, repository: Repository, target: Path) -> Path:
    """Download one file of a commit to the path ``target``; an existing file is compared and kept."""
    if target.exists():
        if target.stat().st_size == remote.size and remote.matches(target):
            return target
        raise UserError(
            f"{target} already exists and differs from that of {repository.repo}; move it, or use another --out"
        )
    check_folder(target.parent)
    parts = target.with_name(f".{target.name}.download")
    part = parts / plain_name(remote.checksum, "a checksum")
    _check_disk(remote, part)
    with locked(parts):
        if not target.exists():  # otherwise another process has downloaded it
            _fetch(repository, commit, remote, part)
            if not remote.matches(part):
                shutil.rmtree(parts, ignore_errors=True)
                line = f"{remote.path} does not match its checksum in {repository.repo}; type the same command again"
                raise UserError(line)
            with _plain_errors(repository, remote.path):
                sync_file(part)
                put_in_place(part, target)
        shutil.rmtree(parts, ignore_errors=True)
    return target


def is_native(path: Path) -> bool:
    """Whether a file has the native layout; the authors' files have to be imported."""
    try:
        open_dataset(path)
    except UserError:
        return False
    return True


def _check_disk(remote: RemoteFile, part: Path) -> None:
    """Raise an error if the disk has too little room for what is still to be downloaded."""
    have = part.stat().st_size if part.is_file() else 0
    check_free_disk(remote.size - have, part.parent.parent, remote.name, "make room or use another --out")


def _fetch(repository: Repository, commit: str, remote: RemoteFile, part: Path) -> None:
    """Download what ``part`` does not have yet."""
    hub = _hub()
    from huggingface_hub.file_download import http_get

    url = hub.hf_hub_url(
        repository.repo, remote.path, repo_type=repository.kind, revision=commit, endpoint=repository.endpoint
    )
    with _plain_errors(repository, remote.path), part.open("ab") as file:
        known = hub.get_hf_file_metadata(url, token=repository.token, endpoint=repository.endpoint)
        headers = hub.utils.build_hf_headers(token=repository.token)
        if urlparse(known.location).netloc != urlparse(url).netloc:  # a server elsewhere must not get the token
            headers.pop("authorization", None)
        have = file.tell()
        if have > remote.size:
            file.truncate(0)
            have = 0
        with Progress(remote.size, "bytes") as bar:
            bar.skip(have)
            http_get(
                known.location,
                cast(BinaryIO, _Counted(file, bar)),
                resume_size=have,
                headers=headers,
                expected_size=remote.size,
            )


class _Counted:
    """The file of a download; every write advances the progress bar, all other methods are those of the file."""

    def __init__(self, file: BinaryIO, bar: Progress) -> None:
        self._file, self._bar = file, bar

    def write(self, block: bytes) -> int:
        self._bar.advance(len(block))
        return self._file.write(block)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


# --- upload -------------------------------------------------------------------------------------------------------
def prepare(repository: Repository, private: bool = False) -> tuple[str, list[RemoteFile]]:
    """The commit and the files of a repository that will be written to; it is created if it does not exist."""
    with _plain_errors(repository, writing=True):
        repository.api.create_repo(repository.repo, repo_type=repository.kind, private=private, exist_ok=True)
        return files(repository)


def upload(repository: Repository, content: Mapping[str, Path], message: str) -> str:
    """Upload files in one commit and return its address."""
    add = _hub().CommitOperationAdd
    with _plain_errors(repository, writing=True):
        operations = [add(name, path) for name, path in content.items()]
        done = repository.api.create_commit(
            repository.repo, operations, commit_message=message, repo_type=repository.kind, revision=repository.revision
        )
    return str(done.commit_url)


def read_small(name: str, commit: str, known: list[RemoteFile], repository: Repository) -> bytes | None:
    """The content of a small file of the repository, such as its README; None if it is not there."""
    found = next((f for f in known if f.path == name), None)
    if found is None:
        return None
    if found.size > MOST_JSON:
        raise UserError(f"{name} of {repository.repo} has {found.size} bytes, more than {MOST_JSON}; remove it there")
    with tempfile.TemporaryDirectory() as folder:
        return read_bytes(fetch(found, commit, repository, Path(folder) / name))


# --- errors -----------------------------------------------------------------------------------------------------
@contextmanager
def _plain_errors(repository: Repository, path: str = "", writing: bool = False) -> Iterator[None]:
    """Turn errors of the library and of the network into one line."""
    _hub()
    from huggingface_hub import errors

    where = f"{repository.repo}{f' ({path})' if path else ''}"
    right = "with write access" if writing else "that may read it"
    kept = "; nothing was uploaded" if writing else "; the part that was downloaded is kept"
    try:
        yield
    except errors.RevisionNotFoundError:
        raise UserError(f"{where} has no revision '{repository.revision}'; give another --revision") from None
    except errors.EntryNotFoundError:
        raise UserError(f"{where} no longer exists; look at the repository's list of files") from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        if status in (401, 403):
            line = f"{where} asks for a token {right}; set HF_TOKEN, or check the name"
        elif status == 404:
            line = f"there is no {repository.kind} repository '{repository.repo}', or it is private; "
            line += "check the name, set HF_TOKEN"
        else:
            line = f"the hub answers {status or first_line(error)} for {where}; try again later"
        raise UserError(line) from None
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise UserError(f"the hub cannot be reached for {where} ({first_line(error)}){kept}") from None
        raise UserError(f"cannot write {path or 'files'} ({error.strerror}){kept}") from None
    except ValueError as error:
        raise UserError(f"the hub's answer for {where} cannot be understood ({first_line(error)})") from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _NETWORK:
            raise
        raise UserError(f"the hub cannot be reached for {where} ({first_line(error)}){kept}") from None
