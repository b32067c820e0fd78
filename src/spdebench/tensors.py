"""Files of tensors and plain values in the safetensors format: reading one runs no code and takes no more memory than
the file is large.

Tensors are named by the keys that lead to them, such as ``weights/layer.bias``. The plain values are JSON in the
file's metadata, where {"$tensor": name} stands for a tensor; a checksum covers both. Complex tensors are stored as real
ones with a last axis of two. Files that earlier versions wrote with `torch.save` are still read.
"""

from __future__ import annotations

import hashlib
import json
import pickletools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as encode
from torch import Tensor

from spdebench.files import check_regular, replacing
from spdebench.spec import loads

_ZIP = b"PK\x03\x04"  # the first bytes of a file of `torch.save`
_DTYPES = "Double Float Half BFloat16 Long Int Short Char Byte Bool ComplexFloat ComplexDouble"
_NAMES = {"torch._utils _rebuild_tensor_v2", "collections OrderedDict"} | {f"torch {t}Storage" for t in _DTYPES.split()}
_PICKLE = 64 << 20  # the most bytes of the pickle in an old file, which only names tensors and numbers
_SMALL = 16 << 20  # bytes that a tensor may have in any old file, even if strides make it larger than the file


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Write tensors, numbers, text, and lists and dictionaries of them; the file appears whole or not at all."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_without_tensors(content, "", tensors))
    seen: set[int] = set()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        if place in seen:  # safetensors takes no two tensors of one memory
            tensors[name] = tensor.clone()
        seen.add(place)
    metadata = {"content": text, "checksum": _checksum(text, tensors)}
    with replacing(path) as temporary:
        temporary.write_bytes(encode(tensors, metadata))  # safetensors' own writer hides the reason of a full disk


def load(path: Path) -> dict[str, Any]:
    """The content that `save` wrote, on the host. ValueError: the file is damaged or not ours; OSError: no access."""
    check_regular(path)
    with path.open("rb") as file:
        start = file.read(len(_ZIP))
    if start == _ZIP and path.suffix == ".safetensors":
        raise ValueError("it is a file of torch.save, not of safetensors")
    try:
        content = _load_zip(path) if start == _ZIP else _load(path)
    except OSError:
        raise
    except Exception as error:  # a damaged file raises whatever its damage leads to
        raise ValueError(f"{type(error).__name__}: {error}".partition("\n")[0]) from None
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__}, not tensors by name")
    return content


def _without_tensors(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The value with its tensors moved into ``tensors`` and references in their place."""
    if isinstance(value, Tensor):
        plain = torch.view_as_real(value) if value.is_complex() else value
        tensors[path] = plain.detach().cpu().contiguous()
        return {"$tensor": path, "complex": value.is_complex()}
    if isinstance(value, Mapping):
        return {str(key): _without_tensors(inner, f"{path}/{key}".lstrip("/"), tensors) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_tensors(inner, f"{path}/{k}", tensors) for k, inner in enumerate(value)]
    return value


def _filled(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The value with its references replaced by the tensors: the inverse of `_without_tensors`."""
    if isinstance(value, list):
        return [_filled(inner, tensors) for inner in value]
    if isinstance(value, dict) and "$tensor" in value:
        found = tensors[value["$tensor"]]
        if value["complex"]:  # copied: the file aligns to the real type, and torch's complex kernels need twice that
            return torch.view_as_complex(found.clone())
        return found
    return {key: _filled(inner, tensors) for key, inner in value.items()} if isinstance(value, dict) else value


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 of the text and of the names, types, shapes and bytes of all tensors."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _load(path: Path) -> Any:
    """The content of a safetensors file of ours."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (the file is no dictionary)
    text = metadata.get("content", "")
    if metadata.get("checksum") != _checksum(text, tensors):
        raise ValueError("its checksum does not match")
    return _filled(loads(text, allow_nan=True), tensors)


# --- files of earlier versions --------------------------------------------------------------------------------------
def _load_zip(path: Path) -> Any:
    """The content of a file of `torch.save`.

    ``weights_only`` runs no code, but it trusts the sizes that a file states and calls a few constructors. Therefore
    the archive is checked first and then mapped into memory, so that a tensor cannot be larger than the file.
    """
    _check_archive(path)
    content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    _check_sizes(content, max(path.stat().st_size, _SMALL))
    return content


def _check_archive(path: Path) -> None:
    """Refuse compressed entries, wrong checksums, and a pickle that names more than a dictionary of tensors needs."""
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
    """Refuse tensors whose strides make them larger than the file; lists may contain themselves."""
    seen: set[int] = set()
    left = [content]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor) and value.numel() * value.element_size() > limit:
            raise ValueError(f"a tensor of shape {tuple(value.shape)} is larger than the file")
        if isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set):
            left += value
