"""Files of tensors as torch writes them (`.pt`), read as data: nothing in them runs, nothing is larger than the file.

`torch.load` with weights_only runs no code, but takes a file's word for the size of a storage and lets it call a few
constructors. So the archive is looked through first: stored, not compressed; all checksums right; in its pickle no name
but those that a dictionary of tensors needs. It is then mapped, so that a storage ends where the file does.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from pathlib import Path
from typing import Any

import torch

from spdebench.files import replacing

_DTYPES = "Double Float Half BFloat16 Long Int Short Char Byte Bool ComplexFloat ComplexDouble"
_NAMES = {"torch._utils _rebuild_tensor_v2", "collections OrderedDict"} | {f"torch {t}Storage" for t in _DTYPES.split()}
_PICKLE = 64 << 20  # bytes of a pickle that only names tensors and numbers
_SMALL = 16 << 20  # bytes that a tensor may have in any file: one that repeats its values is larger than they are


def save(path: Path, content: dict[str, Any]) -> None:
    """Write tensors and plain values, whole or not at all."""
    buffer = io.BytesIO()  # torch's own writer hides what the system says of a full disk
    torch.save(content, buffer)
    with replacing(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())


def load(path: Path) -> dict[Any, Any]:
    """What `save` wrote, on the host; ValueError for anything else, OSError where the system cannot read it."""
    try:
        _look_through(path)
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        _check_sizes(content, max(path.stat().st_size, _SMALL))
    except OSError:
        raise
    except Exception as error:  # a damaged archive raises whatever its damage leads to
        raise ValueError(f"{type(error).__name__}: {error}".partition("\n")[0]) from None
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__}, not tensors by name")
    return content


def _look_through(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len({entry.filename for entry in entries}) < len(entries):
            raise ValueError("an entry stands twice")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed")
        if sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError("its entries overlap")
        if damaged := archive.testzip():
            raise ValueError(f"checksum of {damaged}")
        pickles = [entry for entry in entries if entry.filename.endswith(".pkl")]
        if len(pickles) != 1 or pickles[0].file_size > _PICKLE:
            raise ValueError("it is no archive of tensors")
        text = archive.read(pickles[0])
    for opcode, argument, _ in pickletools.genops(text):
        if "GLOBAL" in opcode.name and argument not in _NAMES:
            raise ValueError(f"it names {argument}")


def _check_sizes(content: Any, limit: int) -> None:
    """Refuse tensors whose strides make them larger than the file; lists may hold themselves."""
    seen: set[int] = set()
    left = [content]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor) and value.numel() * value.element_size() > limit:
            raise ValueError(f"a tensor of shape {tuple(value.shape)} is larger than the file")
        if isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set):
            left += value
