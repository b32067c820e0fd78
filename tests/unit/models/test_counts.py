"""The paper's parameter counts, exactly."""

from __future__ import annotations

import pytest

from spdebench.models.counts import PUBLISHED, counts


@pytest.mark.parametrize("model", sorted({c.model for c in PUBLISHED}))
def test_published_forms_have_the_published_counts(model):
    rows = counts(model)
    assert len(rows) == sum(c.model == model for c in PUBLISHED)
    for row in rows:
        assert row["published"]["parameters"] == row["paper"]
        assert row["default"]["real"] >= row["default"]["parameters"]


REAL = {"fno": 9_839_649, "nspde": 6_560_257, "dlr-net": 264_250, "nors": 12_591_905, "ncde-fno": 48_769}


@pytest.mark.parametrize("model", REAL)
def test_real_degrees_of_freedom(model):
    """A complex number has two."""
    assert counts(model)[0]["published"]["real"] == REAL[model]
