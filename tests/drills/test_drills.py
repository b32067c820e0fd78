"""Every drill of `make drills`, for pytest."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from drills import DRILLS, Wanted, undisturbed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wanted(tmp_path_factory) -> Wanted:
    return undisturbed(tmp_path_factory.mktemp("wanted") / "scene")


@pytest.mark.parametrize("name", DRILLS)
def test_nothing_is_lost_and_nothing_doubled(name, wanted, tmp_path):
    assert DRILLS[name](tmp_path / "scene", wanted).seconds >= 0
