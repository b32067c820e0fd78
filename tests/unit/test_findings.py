"""Findings: their page has the numbers that the commands compute, and their checks of files find what is in a file."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import call
from spdebench import equation, generate, open_dataset, simulate
from spdebench.data.published import export_published
from spdebench.equations import KdV
from spdebench.findings import FINDINGS, FindingResult, ordered, sources
from spdebench.findings.information import without_current
from spdebench.findings.noise import crank_nicolson_euler, noise_left
from spdebench.findings.page import page, section, sections
from spdebench.paper import published

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "findings.md"
AGAIN = "out of date: type 'make findings', or 'spdebench findings --all --out docs/findings.md'"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
SECONDS = {"regression", "aliasing", "kpz", "mean"}
"""Findings whose comparison takes seconds; the slow test has them."""


def compare(name: str) -> None:
    """The section of the page says what is computed now: the same words, numbers within 10 %."""
    finding = FINDINGS[name]
    with sources(ROOT / "results") as given:
        now = section(finding, finding.compute(given))
    then = sections(PAGE.read_text(encoding="utf-8"))[name]
    words = [NUMBER.sub("#", text).split() for text in (then, now)]
    assert words[0] == words[1], AGAIN
    values = [np.array([float(n) for n in NUMBER.findall(text)]) for text in (then, now)]
    assert np.allclose(*values, rtol=0.1, atol=1e-12), AGAIN


def names(*, quick: bool) -> list[str]:
    """Findings whose numbers are not times; the quick ones do not read records either."""
    known = [f for f in ordered() if "times measured here" not in f.uses]
    fast = {f.name for f in known if "run records" not in f.uses} - SECONDS
    return [f.name for f in known if (f.name in fast) == quick]


@pytest.mark.parametrize("name", names(quick=True))
def test_the_page_has_the_numbers_of_today(name):
    compare(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", names(quick=False))
def test_the_page_has_the_numbers_of_today_also_where_it_takes_longer(name):
    compare(name)


def test_the_page_has_every_finding_with_its_command():
    text = PAGE.read_text(encoding="utf-8")
    known = sections(text)
    assert list(known) == [f.name for f in ordered()] and len(known) >= 14
    for finding in ordered():
        assert f"`spdebench findings {finding.name}`" in known[finding.name]
        assert finding.title.rstrip(".") in known[finding.name] and "*What follows.*" in known[finding.name]
    assert page({}, text) == text  # nothing computed, nothing changed


def test_a_section_is_replaced_and_the_others_stay():
    text = PAGE.read_text(encoding="utf-8")
    found = FindingResult({"acf": 1.0, "corr": 2.0, "acf_x": 2.0, "corr_x": 1.0})
    new = sections(page({"exchanged-metrics": found}, text))
    old = sections(text)
    assert {name for name in new if new[name] != old[name]} == {"exchanged-metrics"}
    assert "1.0000 and the cross-correlation error is 2.0000" in " ".join(new["exchanged-metrics"].split())


# --- laws behind the numbers --------------------------------------------------------------------------------------
def test_crank_nicolson_leaves_the_stated_power_of_the_noise():
    """Small noise from u = 0: E|u(T)|^2 = sigma^2 T sum_k w_k / (1 + (omega_k dt/2)^2)."""
    steps, horizon, samples = 50, 0.5, 400
    eq = KdV(noise="cylindrical", truncation=32, points=64, steps=steps, frames=steps)
    dw = eq.wiener().increments(0, range(samples), steps, horizon).double()
    u = crank_nicolson_euler(torch.zeros(samples, 64, dtype=torch.float64), dw, horizon, 0.1, 1e-6)
    energy = u.square().mean(1) / (1e-12 * horizon)
    counts = torch.cat([torch.ones(1), torch.full((16,), 2.0)])
    expected = float((noise_left(64, horizon / steps, 0.1)[:17] * counts).sum())
    assert abs(float(energy.mean()) - expected) < 4 * float(energy.std()) / math.sqrt(samples)
    assert expected < 0.5 * 33


def test_the_least_error_without_the_current_increment_is_0_without_noise():
    eq = equation("phi41", sigma=0.0, points=32, truncation=32)
    u = simulate(eq, 0, range(2), out_dtype=torch.float64).u
    assert torch.allclose(without_current(eq, u), u, atol=1e-14)


# --- files --------------------------------------------------------------------------------------------------------
def on_file(name: str, path: Path) -> dict[str, float]:
    finding = FINDINGS[name]
    assert finding.on_file is not None
    with sources(ROOT / "results") as given:
        return dict(finding.on_file.compute(given, given.open(path)).numbers)


@pytest.mark.parametrize("truncation, power", [(32, 1.0), (64, 2.0)])
def test_aliasing_is_seen_in_generated_and_published_files(tmp_path, truncation, power):
    path = generate(equation("phi41", points=32, truncation=truncation), n=40, out=tmp_path, allow_aliasing=True)
    flat = export_published(open_dataset(path), tmp_path / "flat")
    for file in (path, flat):
        assert abs(on_file("aliasing", file)["power"] - power) < 4 * power / math.sqrt(2 * 7 * 40 * 50)


def test_kdv_of_ours_gains_what_the_noise_brings_in(tmp_path):
    found = on_file("kdv", generate(KdV(points=32, truncation=16, frames=50, steps=50), n=200, out=tmp_path))
    assert found["lost"] == 0 and abs(found["gain"] - 1) < 0.5  # 4 s.e.: the cross term 2 (u, dW) has mean 0


def test_the_drift_of_kpz_is_its_counter_term(tmp_path):
    """C shifts h by -C t: files with two constants differ by their difference."""
    fields = {"points": 32, "truncation": 16, "sigma": 1.0, "coupling": 0.5}
    eqs = [equation("kpz", renormalisation=kind, **fields) for kind in ("none", "paper")]
    drifts = [on_file("kpz", generate(eq, n=4, out=tmp_path))["drift"] for eq in eqs]
    assert abs(drifts[0] - drifts[1] - eqs[1].counterterm()) < 1e-3


def test_the_spectrum_of_nse_is_read_from_its_noise(tmp_path):
    path = generate(equation("nse", spectrum="reference", steps=20, frames=20, truncation=32), n=4, out=tmp_path)
    assert abs(on_file("nse", path)["alpha"] - 0.005 * 4 * math.pi**2) < 0.01


def test_step_and_mean_of_a_published_file(tmp_path):
    eq = equation("phi41", points=16, truncation=16, frames=10, steps=10)
    flat = export_published(open_dataset(generate(eq, n=60, out=tmp_path)), tmp_path / "flat")
    found = on_file("step", flat)
    assert found["step"] < 1e-5 < 1e-2 < found["mean"]


def test_boundaries_counts_every_pair_of_published_numbers():
    """Each pair in the published numbers that differs in the boundary alone, and ours as ratios of two cells."""
    chosen: dict[tuple[str, ...], dict[str, float]] = {}
    for n in published.numbers():
        if n.table.startswith(("tab:phi41_trc", "tab:phi41_sigma1", "tab:wave_")) and n.columns["task"] == "xi->u":
            key = tuple(value for name, value in n.columns.items() if name != "boundary")
            chosen.setdefault(key, {})[n.columns["boundary"]] = n.mean
    pairs = [both for both in chosen.values() if len(both) == 2]
    with sources(ROOT / "results") as given:
        found = FINDINGS["boundaries"].compute(given)
    assert found.numbers["pairs"] == len(pairs) == 80
    assert found.numbers["equal"] == sum(both["periodic"] == both["dirichlet"] for both in pairs)
    assert sum(len(str(row["periodic, printed"]).split()) for row in found.rows) == len(pairs)
    assert found.numbers["wno"] > 1.5 > 0.9 > found.numbers["fno"]


# --- the command --------------------------------------------------------------------------------------------------
def test_the_command_lists_prints_and_refuses(tmp_path, capsys):
    assert call("findings") == 0
    listed = capsys.readouterr().out
    assert all(f.name in listed and f.title in listed for f in ordered())
    assert call("findings", "nse", "printed-twice", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [f["name"] for f in found] == ["nse", "printed-twice"]
    assert found[0]["numbers"]["code_64"] == pytest.approx(15.9155, rel=1e-5)
    for words, told in (
        (("findings", "nsee"), "did you mean"),
        (("findings", "nse", "--all"), "not both"),
        (("findings", "--data", "x.parquet"), "needs the name of a finding"),
        (("findings", "regression", "--data", "x.parquet"), "computes nothing from a file"),
        (("findings", "step", "--data", tmp_path / "x.parquet"), "x.parquet"),
        (("findings", "step", "--results", tmp_path / "none"), "no run record"),
    ):
        assert call(*words) == 2
        assert told in capsys.readouterr().err, words


def test_a_file_of_the_wrong_kind_is_refused(tmp_path, capsys):
    path = generate(equation("phi41", points=16, truncation=16, frames=5, steps=5), n=2, out=tmp_path)
    others = [(name, f"has data of phi41; this finding reads files of {name}") for name in ("kpz", "kdv", "nse")]
    for name, told in (*others, ("batch-metrics", "needs at least 80")):
        assert call("findings", name, "--data", path) == 2
        assert told in capsys.readouterr().err
