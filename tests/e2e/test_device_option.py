"""``--device`` is checked before a command prints or writes anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import typer

from command_line import call
from spdebench.cli.main import app
from speed.verbs import app as bench

ARGUMENTS = {
    "bench data": [],
    "bench train": [],
    "challenge make": ["core", "--seed-file", "secret", "--out", "new"],
    "challenge predict": ["folder", "--run", "run", "--card", "card.toml", "--out", "new"],
    "challenge score": ["folder", "--seed-file", "secret"],
    "data card": ["file.parquet"],
    "data verify": ["file.parquet", "other.parquet"],
    "evaluate": ["run"],
    "findings": ["--all"],
    "generate": ["phi41"],
    "predict": ["run", "file.parquet"],
    "reproduce": ["phi41-periodic"],
    "suite": ["core", "--generate"],
    "sweep": ["fno", "file.parquet", "width=8,16"],
    "table": ["phi41-periodic", "--run"],
    "train": ["fno", "file.parquet"],
}
"""Commands with this option; no file is there, but the device is looked at first."""


def commands_with_a_device(group: typer.Typer, prefix: str = "") -> Iterator[str]:
    for name, command in typer.main.get_command(group).commands.items():
        for inner, leaf in getattr(command, "commands", {"": command}).items():
            if any("--device" in option.opts for option in leaf.params):
                yield " ".join(filter(None, (prefix, name, inner)))


def test_every_command_with_the_option_is_here():
    assert sorted([*commands_with_a_device(app), *commands_with_a_device(bench, "bench")]) == sorted(ARGUMENTS)


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_device_that_is_missing_is_the_only_message(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert call(*command.split(), *ARGUMENTS[command], "--device", "cuda") == 2
    said = capsys.readouterr()
    assert said.err == "error: there is no usable CUDA device on this machine; use --device cpu\n"
    assert not said.out and not list(tmp_path.iterdir())
