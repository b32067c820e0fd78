"""A spec decodes strictly and hashes stably."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass, field

import pytest

from in_children import run_code
from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.data.identity import from_dict, from_json
from spdebench.equations import EQUATIONS, equation
from spdebench.errors import UserError


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sgima=1"], "did you mean 'sigma'"),
        (["sigma=abc"], "must be a number"),
        (["sigma=nan"], "must be finite"),
        (["truncation=1.5"], "must be a whole number"),
        (["truncation=0"], "at least 1"),
        (["truncation=-4"], "at least 1"),
        (["truncation=33"], "J is even; try 34"),
        (["points=0"], "at least 1"),
        (["edition=papr"], "did you mean 'paper'"),
        (["boundary=dirichlet", "basis=fourier"], "use basis=sine"),
        (["basis=sine"], "use basis=fourier"),
        (["sigma"], "expected key=value"),
        (["sigma=1", "sigma=2"], "given twice"),
        (["steps=51", "frames=50"], "not a multiple"),
        (["horizon=0"], "must be positive"),
        (["sigma=-1"], "must not be negative"),
        (["solve_points=256"], "drop solve_points"),
        (["edition=converged", "solve_points=128"], "do not resolve J"),
        (["substeps=-1"], "at least 1"),
        (["J=8", "truncation=8"], "'J' and 'truncation' are the same field"),
        (["J=x"], "truncation must be a whole number"),
    ],
)
def test_bad_fields_are_one_clear_line(words, message):
    with pytest.raises(UserError, match=message) as caught:
        spec.build(EQUATIONS["phi41"], spec.parse_overrides(words), "phi41")
    assert "\n" not in str(caught.value)


def test_unknown_equation():
    with pytest.raises(UserError, match="unknown equation 'ph41'; did you mean 'phi41'"):
        equation("ph41")


def test_kinds_of_noise_and_boundary_that_an_equation_lacks():
    with pytest.raises(UserError, match="boundary=dirichlet is not available"):
        equation("kdv", boundary="dirichlet")
    with pytest.raises(UserError, match="unknown value for kpz: noise"):
        equation("kpz", noise="q_wiener")


def test_numbers_from_words_and_from_python_are_the_same_spec():
    by_words = spec.build(
        EQUATIONS["phi41"], spec.parse_overrides(["sigma=1", "truncation=64", "horizon=5e-2"]), "phi41"
    )
    assert by_words == equation("phi41", sigma=1.0, truncation=64)
    assert spec.digest(by_words) == spec.digest(equation("phi41", sigma=1, truncation=64))


def test_j_is_another_name_of_the_truncation():
    eq = equation("phi41", truncation=8)
    assert equation("phi41", J=8) == eq == equation("phi41").replace(J=8)
    assert spec.build(EQUATIONS["phi41"], spec.parse_overrides(["J=8"]), "phi41") == eq
    assert "J" not in spec.to_dict(eq)
    with pytest.raises(UserError, match="unknown key of phi41 'J'"):  # files have one name of each field
        spec.build(EQUATIONS["phi41"], {"J": 8}, "phi41", stored=True)


def test_replace_fills_in_anew_what_was_automatic():
    eq = equation("phi41")
    assert eq.replace(boundary="dirichlet").basis == "sine"
    assert eq.replace(edition="converged").solve_points == 256
    assert eq.replace(edition="converged").replace(edition="paper") == eq
    assert eq.replace(edition="converged", substeps=3).replace(sigma=2).substeps == 3


def test_identity_round_trip_and_pinned_hash():
    """The hash names files: it must not move unless a number does."""
    identity = DatasetSpec(equation=equation("phi41", sigma=1), n=1200, seed=7)
    assert from_json(spec.canonical_json(identity.to_dict())) == identity
    assert identity.file_name.startswith("phi41-xi-periodic-cyl-fourier-J128-s1-paper-n1200-seed7-")
    assert identity.digest == spec.digest(identity.to_dict())
    assert DatasetSpec(equation=equation("phi41", sigma=1), n=1201, seed=7).digest != identity.digest


@pytest.mark.parametrize(
    "change",
    [
        {"layout": 99},
        {"n": "many"},
        {"n": 0},
        {"seed": -1},
        {"equation": "phi99"},
        {"fields": {"sgima": 1}},
        {"fields": 3},
    ],
)
def test_a_foreign_identity_is_refused(change):
    values = DatasetSpec(equation=equation("phi41"), n=3).to_dict() | change
    with pytest.raises(UserError):
        from_dict(values)


@dataclass(frozen=True)
class Old:
    stop: int = 3
    sizes: tuple[int, ...] = (4, 5)


@dataclass(frozen=True)
class New:
    """The same spec with a renamed and an added field."""

    patience: int = field(default=3, metadata={"key": "stop"})
    sizes: tuple[int, ...] = (4, 5)
    sharp: bool = field(default=True, metadata={"legacy": False})


def test_a_renamed_and_an_added_field_change_no_hash():
    assert spec.to_dict(Old()) == dataclasses.asdict(Old())
    assert spec.canonical_json(New(sharp=False)) == spec.canonical_json(Old()) == '{"sizes":[4,5],"stop":3}'
    assert spec.digest(New()) != spec.digest(Old())
    assert spec.canonical_json([{"inner": New(sharp=False)}]) == '[{"inner":{"sizes":[4,5],"stop":3}}]'


def test_files_have_the_old_key_and_what_they_lack_is_the_legacy_value():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spec.build(New, {"stop": 7}, "spec", stored=True) == New(patience=7, sharp=False)
        for value in (New(patience=9), New(sharp=False)):
            assert spec.build(New, spec.to_dict(value), "spec", stored=True) == value
    with pytest.raises(UserError, match="unknown key of spec 'patience'"):
        spec.build(New, {"patience": 7}, "spec", stored=True)


def test_users_may_give_the_old_name_and_are_told_the_new_one():
    with pytest.warns(DeprecationWarning, match="'stop' is now called 'patience'") as told:
        assert spec.build(New, {"stop": "7"}, "spec") == New(patience=7)
    assert told[0].filename == __file__
    with pytest.raises(UserError, match="'stop' is the old name of 'patience'; give 'patience' only"):
        spec.build(New, {"patience": 1, "stop": 2}, "spec")
    with pytest.raises(UserError, match="did you mean 'patience'"):
        spec.build(New, {"patiense": 1}, "spec")


def test_a_script_of_a_user_sees_the_warning_by_default():
    code = "import spdebench as sb; from spdebench.tasks import TaskSpec; from spdebench.training import options_for\n"
    code += "options_for('fno', TaskSpec().setting(sb.equation('phi41')), stop=3)"
    done = run_code(code)
    assert done.returncode == 0 and "RenamedWarning: 'stop' is now called 'early_stop_patience'" in done.stderr


def test_non_finite_numbers_have_no_identity():
    with pytest.raises(ValueError, match="JSON compliant"):
        spec.canonical_json({"x": float("nan")})


def test_the_meaning_of_a_field_is_metadata_and_changes_no_hash():
    @dataclass(frozen=True, kw_only=True)
    class Plain:
        reach: int = 3

    @dataclass(frozen=True, kw_only=True)
    class Explained:
        reach: int = field(default=3, metadata={"meaning": "number of neighbours"})

    assert spec.declared_meaning(Explained, "reach") == "number of neighbours"
    assert spec.declared_meaning(Plain, "reach") == spec.declared_meaning(Plain, "width") == ""
    assert spec.digest(spec.to_dict(Plain())) == spec.digest(spec.to_dict(Explained()))
