"""Reading files of other people: small typed files in JSON or TOML, and folders that contain nothing else.

An error is one line with the name of the file and the field.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from spdebench.errors import UserError
from spdebench.files import read_text
from spdebench.records.codec import short_text
from spdebench.spec import loads

T = TypeVar("T")


def read_typed(path: Path, parse: Callable[[dict[str, Any]], T], what: str, help: str, max_bytes: int) -> T:
    """What ``parse`` makes of the object in a file of at most ``max_bytes`` bytes: TOML if its name says so, else JSON.

    ``what`` the file should be, and what would ``help``, are told if it is missing, damaged or refused by ``parse``.
    """
    try:
        text = read_text(path, max_bytes)
        values = tomllib.loads(text) if path.suffix == ".toml" else loads(text)
        if not isinstance(values, dict):
            raise UserError(f"expected an object, got {short_text(values)}")
        return parse(values)
    except FileNotFoundError:
        raise UserError(f"{path} is missing; {help}") from None
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file in UTF-8; {help}") from None
    except (ValueError, RecursionError, UserError) as error:
        raise UserError(f"{path} is not {what}: {error or 'it is nested too deeply'}; {help}") from None


def without_version(values: dict[str, Any], version: int) -> dict[str, Any]:
    """The other fields of an object that states this version."""
    found = values.get("version")
    if type(found) is not int or found != version:
        raise UserError(f"version must be {version}, got {short_text(found)}")
    return {key: value for key, value in values.items() if key != "version"}


def check_folder(folder: Path, files: Mapping[str, int], folders: Collection[str] = ()) -> None:
    """Refuse all that is in a submission's folder but these regular files, name -> most bytes, and these folders."""
    for path in sorted(folder.iterdir()):
        if path.name not in files and path.name not in folders:
            wanted = ", ".join([*files, *folders])
            raise UserError(f"{path} does not belong to a submission, which has {wanted}; remove it")
        if path.is_symlink() or not (path.is_dir() if path.name in folders else path.is_file()):
            raise UserError(f"{path} is not a {'folder' if path.name in folders else 'regular file'}")
        if path.name in files and (size := path.stat().st_size) > files[path.name]:
            raise UserError(f"{path} has {size} bytes; at most {files[path.name]} are allowed")
