"""A dataset as a folder, or a repository of the Hugging Face hub, that ``datasets.load_dataset`` reads as it is.

NAME.parquet    the rows of the native file as nested lists, so that arrays have their shapes; columns in front say
                which sample a row is and to which part of the default split it belongs; `open_dataset` reads it too
NAME.md         the card of the dataset
README.md       the header that the hub reads, the card of the last dataset, a list of all
croissant.json  Croissant 1.1 metadata of all datasets
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spdebench.data import croissant, hub
from spdebench.data.blocks import SPLIT_SEED, block_rows
from spdebench.data.checks import check_folder
from spdebench.data.parquet import new_parquet
from spdebench.data.store import LABELS, Dataset, nested_type, open_dataset
from spdebench.data.verify import check_sums
from spdebench.errors import UserError
from spdebench.files import plain_name, read_bytes, user_text, write_text

MARK = "<!-- written by spdebench data push -->"
"""Marks a README that may be overwritten."""
Card = Callable[[Dataset], str]


def short_card(dataset: Dataset) -> str:
    """Title, equation and number of samples; `spdebench.report.card.card` measures errors as well."""
    if dataset.imported:
        return f"# Imported data\n\n{len(dataset)} samples.\n"
    return f"# {dataset.equation.title}\n\n`{dataset.equation.formula}`\n\n{len(dataset)} samples.\n"


def publish(
    file: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    card: Card = short_card,
    licence: str = "",
    creator: str = "Anonymous",
) -> list[Path]:
    """Write a dataset, the members of its law next to it and their description into a folder; returns its files.

    The folder may hold datasets that were published before. A README or croissant.json that this function has not
    written stays as it is.
    """
    dataset = _checked(file, licence)
    folder = Path(folder)
    if folder.resolve() == dataset.path.parent.resolve():
        raise UserError(f"{folder} holds the native file itself; choose another folder with --out")
    check_folder(folder)
    names = ("README.md", croissant.FILE)
    known = {name: read_bytes(folder / name) if (folder / name).is_file() else None for name in names}
    for each in _with_members(dataset):
        target = folder / each.path.name
        if target.exists() and (not hub.is_native(target) or open_dataset(target).identity != each.identity):
            raise UserError(f"{target} already exists and holds other data; remove it or choose another --out")
    return _write(dataset, folder, known, card, licence, creator, None)


def push(
    file: str | os.PathLike[str],
    repository: hub.Repository,
    *,
    card: Card = short_card,
    licence: str = "",
    creator: str = "",
    private: bool = False,
) -> str:
    """Upload what `publish` writes in one commit; returns its address. The card is made after the hub has answered."""
    dataset = _checked(file, licence)
    commit, remote = hub.prepare(repository, private)
    known = {name: hub.read_small(name, commit, remote, repository) for name in ("README.md", croissant.FILE)}
    owner = creator or repository.repo.partition("/")[0]
    with tempfile.TemporaryDirectory(dir=dataset.path.parent, prefix=".push-") as folder:
        written = _write(dataset, Path(folder), known, card, licence, owner, repository)
        return hub.upload(repository, {path.name: path for path in written}, f"{dataset.path.name} and its card")


def _checked(file: str | os.PathLike[str], licence: str) -> Dataset:
    """The dataset in a file, after checks of the licence, of the name and of all checksums."""
    if licence:
        croissant.check_licence(licence)
    dataset = open_dataset(file)
    if not re.fullmatch(r"[\w.-]+", plain_name(dataset.path.name, "the file")):
        raise UserError(f"the name of a published file has letters, digits, '_', '.' and '-'; rename {dataset.path}")
    if not dataset.imported and dataset.spec.members > 1:
        name = dataset.spec.samples_file.file_name
        raise UserError(f"{dataset.path} holds members of a law; push {name}, and they go with it")
    for each in _with_members(dataset):
        check_sums(each)
    return dataset


def _with_members(dataset: Dataset) -> list[Dataset]:
    """The dataset and the files of members of its law next to it."""
    return [dataset, *([] if dataset.imported else dataset.members_files)]


def _write(
    dataset: Dataset,
    folder: Path,
    known: dict[str, bytes | None],
    card: Card,
    licence: str,
    creator: str,
    repository: hub.Repository | None,
) -> list[Path]:
    """Write the files of a published dataset; ``known`` are the README and croissant.json of earlier ones."""
    card_file = dataset.path.with_suffix(".md")
    text = user_text(card_file) if card_file.is_file() else card(dataset)
    licence = licence or ("unknown" if dataset.imported else "cc-by-4.0")
    where = repository.repo if repository else str(folder)
    metadata = croissant.read(known[croissant.FILE], f"{croissant.FILE} of {where}")
    title = "imported data" if dataset.imported else dataset.equation.title
    written = []
    files = []
    for each in _with_members(dataset):
        path = folder / each.path.name
        write_nested(each, path)
        files.append(_facts(each, path))
        written.append(path)
    metadata = croissant.describe(
        metadata,
        files,
        name=repository.repo.partition("/")[2] if repository else folder.resolve().name,
        licence=licence,
        creator=creator,
        url=repository.page if repository else "",
        base=f"{repository.page}/resolve/{repository.revision}/" if repository else "",
    )
    texts = {dataset.path.with_suffix(".md").name: text}
    texts[croissant.FILE] = json.dumps(metadata, indent=1, ensure_ascii=False) + "\n"
    if known["README.md"] is None or MARK.encode() in known["README.md"]:
        head = croissant.header(metadata, default=dataset.path.stem, title=title, licence=licence)
        texts["README.md"] = _readme(head, text, metadata, repository.repo if repository else folder.resolve().name)
    for name, content in texts.items():
        write_text(folder / name, content)
        written.append(folder / name)
    return written


def _readme(head: str, card: str, metadata: dict[str, Any], where: str) -> str:
    """The README of a repository: header, card, how to read the data, and the list of its datasets."""
    listed = [f"- `{node['name']}`" for node in metadata["recordSet"]]
    use = [
        "## How to read it",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        f'rows = load_dataset("{where}", split="samples", streaming=True).with_format("numpy")',
        'row = next(iter(rows))  # row["u0"], row["dw"], row["u"] are arrays; row["part"] is train, val or test',
        "```",
        "",
        "Another dataset of the list below is read by its name, the second argument of `load_dataset`. Datasets of "
        "members have the split `members`: a row is member `member` of the law given the input of sample `sample`. "
        "`spdebench data get` fetches a file, and `spdebench data verify` solves samples of it again.",
    ]
    return "\n".join([head, MARK, "", card.rstrip(), "", *use, "", "## Datasets", "", *listed, ""])


def _facts(dataset: Dataset, path: Path) -> croissant.PublishedFile:
    """The facts about a published file that its Croissant metadata state."""
    with path.open("rb") as content:
        checksum = hashlib.file_digest(content, "sha256").hexdigest()
    if dataset.imported:
        origin = dataset.identity["published"]["file"]
        about, made, source = f"Imported from {origin}.", f"Converted from {origin} by 'spdebench data import'.", origin
    else:
        eq, spec = dataset.equation, dataset.spec
        law = f"Members 1..{spec.members - 1} of the law given the seen noise, test part: " if spec.members > 1 else ""
        about = f"{law}{eq.title}, {eq.formula}; J={eq.truncation}, sigma={eq.sigma:g}, edition {eq.edition}."
        versions = ", ".join(f"{key} {value}" for key, value in dataset.made.items() if not isinstance(value, list))
        made, source = f"'spdebench generate', scheme {eq.scheme}, seed {spec.seed}; {versions}.", ""
    labels = tuple(_labels(dataset))
    rows, size = len(dataset), path.stat().st_size
    return croissant.PublishedFile(path.name, checksum, size, rows, labels, dict(dataset.shapes), about, made, source)


# --- the file -----------------------------------------------------------------------------------------------------
def write_nested(dataset: Dataset, path: Path) -> None:
    """Write the dataset in the layout of the hub: the same rows, row groups and metadata, columns as nested lists."""
    labels = _labels(dataset)
    shapes = dataset.shapes
    schema = pa.schema([(k, LABELS[k]) for k in labels] + [(c, nested_type(s)) for c, s in shapes.items()])
    fields = [f"{c}{'.list.element' * len(s)}" for c, s in shapes.items()]
    with new_parquet(path, schema, dictionary=list(labels), fields=fields) as writer:
        for first, arrays in _groups(dataset):
            rows = slice(first, first + len(arrays[0]))
            columns = [pa.array(values[rows], LABELS[name]) for name, values in labels.items()]
            writer.write_table(pa.Table.from_arrays([*columns, *map(_nested, arrays)], schema=schema))
        writer.add_key_value_metadata(dataset.metadata)


def _labels(dataset: Dataset) -> dict[str, np.ndarray]:
    """The columns in front of the data: numbers of samples and their parts, or numbers of samples and members."""
    if not dataset.imported and dataset.spec.members > 1:
        samples, members = dataset.spec.members_in(range(len(dataset)))
        return {"sample": np.asarray(samples), "member": np.asarray(members)}
    parts = np.empty(len(dataset), dtype=object)
    for part, rows in block_rows(SPLIT_SEED, len(dataset)).items():
        parts[rows] = part
    return {"sample": np.arange(len(dataset)), "part": parts}


def _groups(dataset: Dataset) -> Iterator[tuple[int, list[np.ndarray]]]:
    """(first row, arrays) of each row group."""
    for groups in zip(*(dataset.row_groups(column) for column in dataset.shapes), strict=True):
        yield groups[0][0], [values for _, values in groups]


def _nested(array: np.ndarray) -> pa.Array:
    """An array (rows, ..) as nested lists of fixed sizes."""
    out = pa.array(array.reshape(-1))
    for size in array.shape[:0:-1]:
        out = pa.FixedSizeListArray.from_arrays(out, size)
    return out
