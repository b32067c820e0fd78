"""The scores of laws by name: their titles and formulas in tables and pages, and their values for the true law."""

from __future__ import annotations

from dataclasses import dataclass

from spdebench.metrics.law.terms import interval_ranks

MEMBERS = 64
"""The number of members with which a law is tested. The nominal coverage of an interval depends on it."""


@dataclass(frozen=True)
class LawMetric:
    """A score of a law: its title, its formula in one line, and its value for the true law (0 where it is an error)."""

    title: str
    formula: str
    ideal: float = 0.0


def _nominal(share: float) -> float:
    """The nominal coverage of the central interval whose coverage is nearest to ``share``."""
    i, j = interval_ranks(MEMBERS, share)
    return (j - i) / (MEMBERS + 1)


LAW_METRICS = {
    "energy_score": LawMetric("energy score", "E|X - y| - E|X - X'|/2, L2 of space, mean over frames and truths y"),
    "energy_score_path": LawMetric("energy score of the path", "E|X - y| - E|X - X'|/2, L2 of space and time"),
    "crps": LawMetric("CRPS", "E|X - y| - E|X - X'|/2 of the value at a point, mean over points and frames"),
    "energy_distance": LawMetric("energy distance", "2 E|X - Y| - E|X - X'| - E|Y - Y'|, L2 of space"),
    "energy_distance_path": LawMetric(
        "energy distance of the path", "2 E|X - Y| - E|X - X'| - E|Y - Y'|, L2 of space and time"
    ),
    "mean_error": LawMetric("error of the mean", "|E X - E Y| / |E Y| given the inputs, mean over inputs"),
    "std_error": LawMetric(
        "error of the standard deviation", "(sum (std X - std Y)^2 / sum (std Y)^2)^{1/2} given the inputs"
    ),
    "sliced_w2": LawMetric("sliced Wasserstein-2", "(mean of W_2^2 over frames and random directions)^{1/2}"),
    "coverage_50": LawMetric(
        "coverage of the 50 % interval", "share of truths in the central interval of the members", _nominal(0.5)
    ),
    "coverage_90": LawMetric(
        "coverage of the 90 % interval", "share of truths in the central interval of the members", _nominal(0.9)
    ),
    "rank_chi2": LawMetric("rank histogram", "chi-square of the rank histogram per degree of freedom", 1.0),
}
