"""``spdebench findings``: what the benchmark shows about the published one, with numbers computed here."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdebench.cli.output import Device, Json, KnownRecords, in_a_folder, print_json, print_table
from spdebench.errors import UserError, unknown

if TYPE_CHECKING:
    from spdebench.findings import Finding, Found


def findings(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Findings to compute; listed if left out.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Compute all of them (about a minute).")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Put the question to this data file, generated here or in the published layout.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=in_a_folder, help="Write the numbers into this page; without names those that take seconds."
        ),
    ] = None,
    folder: KnownRecords = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """What this benchmark shows about the published one: facts about code and data, with numbers computed here."""
    from spdebench.data.generate import check_device
    from spdebench.findings import FINDINGS, ordered, sources

    check_device(device)
    if names and every:
        raise UserError("give names of findings or --all, not both")
    known = ordered()
    for name in names or ():
        if name not in FINDINGS:
            raise unknown("finding", name, [f.name for f in known])
    chosen = [FINDINGS[name] for name in names] if names else [f for f in known if every or (out and f.quick)]
    if data is not None:
        _refuse_file(chosen, out, names)
    if not chosen:
        _list(known, as_json)
        return
    with sources(folder, device) as given:
        if data is not None:
            dataset = given.open(data)
            found = {f.name: f.on_file.compute(given, dataset) for f in chosen if f.on_file}
        else:
            found = {f.name: f.compute(given) for f in chosen}
    if out is not None:
        _write(found, out)
    elif as_json:
        print_json([_as_json(f, found[f.name], data) for f in chosen])
    else:
        for f in chosen:
            _print(f, found[f.name], data)


def _refuse_file(chosen: list[Finding], out: Path | None, names: list[str] | None) -> None:
    from spdebench.findings import ordered

    able = [f.name for f in ordered() if f.on_file]
    if out is not None:
        raise UserError("--out writes the numbers of the page, --data looks at a file: give one of them")
    if not names:
        raise UserError(f"--data needs the name of a finding: {', '.join(able)}")
    for f in chosen:
        if f.on_file is None:
            raise UserError(f"finding '{f.name}' does not look at files; those that do: {', '.join(able)}")


def _list(known: list[Finding], as_json: bool) -> None:
    rows = [{"name": f.name, "finding": f.title, "--data": "yes" if f.on_file else ""} for f in known]
    if as_json:
        print_json([{"name": f.name, "finding": f.title, "file": f.on_file is not None} for f in known])
        return
    print_table(rows)
    typer.echo("\n'spdebench findings NAME' computes the numbers of one, 'spdebench findings --all' of all.")


def _sentence(f: Finding, found: Found, data: Path | None) -> str:
    text = f.on_file.sentence if data is not None and f.on_file else f.sentence
    return text.format(**found.numbers)


def _as_json(f: Finding, found: Found, data: Path | None) -> dict[str, Any]:
    facts = {"name": f.name, "finding": f.title, "sentence": _sentence(f, found, data), "numbers": dict(found.numbers)}
    rows = {"rows": [dict(row) for row in found.rows], "computed": f.formula(on_file=data is not None)}
    return facts | rows | ({} if data is not None else {"follows": f.follows.format(**found.numbers)})


def _print(f: Finding, found: Found, data: Path | None) -> None:
    typer.echo(f"{f.title}\n")
    typer.echo(textwrap.fill(_sentence(f, found, data), 100) + "\n")
    if found.rows:
        print_table(found.rows)
        typer.echo("")
    if data is None:
        typer.echo(textwrap.fill(f"What follows: {f.follows.format(**found.numbers)}", 100) + "\n")


def _write(found: dict[str, Found], out: Path) -> None:
    from spdebench.files import write_text
    from spdebench.findings.page import page

    old = out.read_text(encoding="utf-8") if out.is_file() else ""
    write_text(out, page(found, old))
    typer.echo(f"{out}")
