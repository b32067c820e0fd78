"""Croissant 1.1 metadata of published datasets (``croissant.json``), with the fields on responsible use that NeurIPS
asks for, and the header of their README for the Hugging Face hub, which is made from the same object.

Each file is a FileObject with its checksum and a RecordSet with its columns; a later file is added to what is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from spdebench.errors import UserError
from spdebench.spec import loads

FILE = "croissant.json"
VERSION = "http://mlcommons.org/croissant/1.1"
_LICENCES = {
    "cc-by-4.0": "CC-BY-4.0",
    "cc-by-sa-4.0": "CC-BY-SA-4.0",
    "cc0-1.0": "CC0-1.0",
    "apache-2.0": "Apache-2.0",
    "mit": "MIT",
}
"""Licences as the hub spells them -> as SPDX spells them; others are written as they are given."""
_TERMS = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty"),
    *("fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator"),
    *("source", "subField", "transform"),
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
    **{term: f"cr:{term}" for term in _TERMS},
}
_KINDS = {"sample": ("sc:Integer", "int64"), "part": ("sc:Text", "string"), "member": ("sc:Integer", "int64")}
_COLUMNS = {
    "sample": "number of the sample; its noise is a function of the seed and of this number",
    "part": "part of the default split: train, val or test",
    "member": "number of the member of the conditional law; member 0 is the sample itself",
    "u0": "initial datum",
    "dw": "increments of the Wiener process, dw[k] = W(t_k) - W(t_(k-1)), dw[0] = 0, without sigma",
    "dw_seen": "increments of those noise functions that a model is given",
    "u": "solution at the frames t_0..t_T",
}


@dataclass(frozen=True)
class PublishedFile:
    """The metadata of one Parquet file."""

    name: str
    sha256: str
    size: int
    rows: int
    labels: tuple[str, ...]
    columns: Mapping[str, tuple[int, ...]]
    description: str  # one sentence: the equation and its noise
    made: str  # how the file was made
    source: str = ""  # where imported data come from

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem


def read(text: bytes | None, where: str) -> dict[str, Any]:
    """The object in an earlier ``croissant.json`` of ours; empty if there is none."""
    if text is None:
        return {}
    try:
        found = loads(text.decode())
        for key in ("distribution", "recordSet", "prov:wasGeneratedBy"):
            if not all(isinstance(node["@id"], str) for node in found[key]):
                raise TypeError(f"{key} without @id")
        if not all(isinstance(source, str) for source in found["prov:wasDerivedFrom"]):
            raise TypeError("prov:wasDerivedFrom is no list of texts")
        list(_tables(found))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{where} is not one that 'data push' has written ({error}); move it away first") from None
    return dict(found)


def describe(
    known: Mapping[str, Any],
    files: Iterable[PublishedFile],
    *,
    name: str,
    licence: str,
    creator: str,
    url: str = "",
    base: str = "",
) -> dict[str, Any]:
    """The metadata of ``files`` and of all files in ``known``; ``base`` is put in front of their names."""
    new = list(files)
    sources = sorted({*(known.get("prov:wasDerivedFrom") or ()), *(f.source for f in new if f.source)} - {_NO_SOURCE})
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": name,
        "description": f"Data of stochastic PDEs for machine learning. {new[0].description}",
        **({"url": url} if url else {}),
        "license": f"https://spdx.org/licenses/{_LICENCES[licence]}" if licence in _LICENCES else licence,
        "creator": {"@type": "sc:Person", "name": creator},
        "datePublished": known.get("datePublished") or datetime.now(UTC).date().isoformat(),
        "version": "1.0.0",
        "keywords": ["stochastic PDE", "neural operator", "simulation", "spdebench"],
        "citeAs": "The SPDEBench developers. SPDEBench: the benchmark for learning stochastic PDEs.",
        "distribution": _merged(known, "distribution", [_file_object(f, base) for f in new]),
        "recordSet": _merged(known, "recordSet", [_record_set(f) for f in new]),
        **_RESPONSIBLE,
        "rai:hasSyntheticData": True,
        "prov:wasDerivedFrom": sources or [_NO_SOURCE],
        "prov:wasGeneratedBy": _merged(known, "prov:wasGeneratedBy", [_activity(f) for f in new]),
    }


_NO_SOURCE = "no other dataset: the values are computed from the equation and from random numbers"
_RESPONSIBLE: dict[str, Any] = {
    "rai:dataCollection": "Numerical solution of a stochastic PDE on a fixed grid, driven by random noise. The card of "
    "each file states equation, noise, scheme, seed and versions, or the source of an imported file.",
    "rai:dataCollectionType": ["Others: numerical simulation"],
    "rai:dataLimitations": [
        "Each file holds one equation with one noise level, truncation, grid and horizon, and says nothing of others.",
        "The values differ from the exact solution by the discretisation error that the card states. A model with a "
        "smaller error has fitted the numerical scheme.",
        "The data are no measurements and must not be used to decide anything about a physical system.",
    ],
    "rai:dataBiases": [
        "Initial data and noise follow the laws that the card states. Events that are rare under these laws are rare "
        "in the data, and parameters do not vary within a file.",
    ],
    "rai:personalSensitiveInformation": ["None: all values are numerical solutions of an equation."],
    "rai:dataUseCases": [
        "Training and comparing models that map noise and initial datum to the solution of a stochastic PDE, or to the "
        "law of the solution given a part of the noise. Samples of part test must not be used for training.",
    ],
    "rai:dataSocialImpact": "No direct impact on people is known: the data describe no person and no place.",
    "rai:dataReleaseMaintenancePlan": "A file is never changed: its name contains a hash of its spec. 'spdebench data "
    "verify' compares checksums and, unless the file was imported, solves it again from its seed. Corrections are "
    "published as files with other names.",
}
"""The statements that hold for every file; those that NeurIPS requires are among them."""


def _merged(known: Mapping[str, Any], key: str, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes by their identifier; a new one replaces the old one."""
    nodes = {node["@id"]: node for node in [*known.get(key, ()), *new]}
    return [nodes[name] for name in sorted(nodes)]


def _file_object(file: PublishedFile, base: str) -> dict[str, Any]:
    """A file with its size and checksum, in the words of Croissant."""
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "description": file.description,
        "contentUrl": f"{base}{file.name}",
        "contentSize": f"{file.size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": file.sha256,
    }


def _record_set(file: PublishedFile) -> dict[str, Any]:
    """The columns of a file, in the words of Croissant; arrays have their shapes."""

    def field(column: str, kind: str, shape: tuple[int, ...] = ()) -> dict[str, Any]:
        array = {"isArray": True, "arrayShape": ",".join(map(str, shape))} if shape else {}
        return {
            "@type": "cr:Field",
            "@id": f"{file.stem}/{column}",
            "name": column,
            "description": _COLUMNS[column],
            "dataType": kind,
            **array,
            "source": {"fileObject": {"@id": file.name}, "extract": {"column": column}},
        }

    return {
        "@type": "cr:RecordSet",
        "@id": file.stem,
        "name": file.stem,
        "description": f"{file.rows} rows. {file.description}",
        "field": [field(label, _KINDS[label][0]) for label in file.labels]
        + [field(column, "cr:Float32", shape) for column, shape in file.columns.items()],
    }


def _activity(file: PublishedFile) -> dict[str, Any]:
    """How a file was made, in the words of PROV."""
    return {
        "@type": "prov:Activity",
        "@id": f"making/{file.name}",
        "prov:label": "Import" if file.source else "Simulation",
        "sc:description": file.made,
    }


# --- the header of the README -------------------------------------------------------------------------------------
def _tables(metadata: Mapping[str, Any]) -> Iterable[tuple[str, str, int, list[dict[str, Any]]]]:
    """(name of the file, its stem, rows, features as the hub has them) of each record set."""
    for node in metadata["recordSet"]:
        features = []
        for field in node["field"]:
            shape = tuple(int(size) for size in field.get("arrayShape", "").split(",") if size)
            features.append({"name": str(field["name"]), **_feature(str(field["name"]), shape)})
        file = str(node["field"][0]["source"]["fileObject"]["@id"])
        yield file, str(node["@id"]), int(str(node["description"]).partition(" ")[0]), features


def _feature(column: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """The type of a column as the library `datasets` writes it."""
    if not shape:
        return {"dtype": _KINDS[column][1]}
    if len(shape) == 1:
        return {"list": "float32", "length": shape[0]}
    return {"dtype": {f"array{len(shape)}_d": {"shape": list(shape), "dtype": "float32"}}}


def header(metadata: Mapping[str, Any], *, default: str, title: str, licence: str) -> str:
    """The YAML header of the README, one JSON value per key (JSON is YAML); ``default`` is read if none is named."""
    tables = list(_tables(metadata))
    configs: list[dict[str, Any]] = []
    for name, stem, _, features in tables:
        split = "members" if any(feature["name"] == "member" for feature in features) else "samples"
        configs.append({"config_name": stem, "data_files": [{"split": split, "path": name}]})
    next(config for config in configs if config["config_name"] == default)["default"] = True
    values = {
        "pretty_name": title,
        "license": licence,
        "annotations_creators": ["machine-generated"],
        "tags": ["spde", "stochastic-pde", "neural-operator", "physics", "simulation", "spdebench"],
        "size_categories": [_size_category(sum(rows for _, _, rows, _ in tables))],
        "configs": configs,
        "dataset_info": [{"config_name": stem, "features": features} for _, stem, _, features in tables],
    }
    return "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in values.items()), "---"])


def _size_category(rows: int) -> str:
    """How the hub writes a number of rows: n<1K, 1K<n<10K, .."""
    names = ["1K", "10K", "100K", "1M", "10M"]
    limits = [10 ** (3 + k) for k in range(len(names))]
    below = [k for k, limit in enumerate(limits) if rows < limit]
    if not below:
        return "n>10M"
    return "n<1K" if below[0] == 0 else f"{names[below[0] - 1]}<n<{names[below[0]]}"


def check_licence(name: str) -> str:
    """The licence as the hub spells it, such as cc-by-4.0."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,40}", name):
        raise UserError(f"a licence is written as on the hub, such as {', '.join(_LICENCES)}; got '{name}'")
    return name
