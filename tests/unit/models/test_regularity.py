"""Trees and their fields: generated from the rule, and equal to the terms of the expansion of the very scheme."""

from __future__ import annotations

import math

import pytest
import torch

import spdebench as sb
from spdebench.equations import Equation
from spdebench.models.regularity import Scales, TreeFeatures, grow, make_kernel
from spdebench.solvers import SemiImplicit
from spdebench.tasks import Setting, TaskSpec

SMALL = {
    "phi41": {"points": 16, "frames": 10, "steps": 10, "truncation": 8, "horizon": 0.02},
    "phi42": {"points": 8, "frames": 10, "steps": 10, "truncation": 4, "horizon": 0.005, "renormalisation": "none"},
    "phi43": {"points": 7, "frames": 8, "steps": 8, "truncation": 6, "horizon": 8e-3, "renormalisation": "none"},
    "kdv": {"points": 16, "frames": 10, "steps": 10, "truncation": 6, "horizon": 0.05},
    "kpz": {"points": 16, "frames": 10, "steps": 10, "truncation": 8, "horizon": 0.02, "renormalisation": "none"},
    "wave": {"points": 16, "frames": 10, "steps": 10, "truncation": 8, "horizon": 0.2, "forcing": 0.0},
    "nse": {"points": 16, "frames": 10, "steps": 10, "truncation": 8, "solve_points": 16, "forcing": 0.0},
}


def small(name: str, **changes: object) -> Equation:
    return sb.equation(name, **{**SMALL[name], **changes})


def setting(equation: Equation) -> Setting:
    return TaskSpec().setting(equation)


def inputs(equation: Equation, top: int = 2, n: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """u0 and dw of order 1 with modes up to ``top`` only, which every grid and every product resolves."""
    grid, generator = equation.grid, torch.Generator().manual_seed(0)
    fields = torch.randn(n, equation.frames + 1, *grid.points, generator=generator, dtype=torch.float64)
    c = grid.transform(fields)
    for axis in range(grid.dim):
        kept = grid.mode_numbers(axis).abs() <= top
        c = c * kept.reshape([-1 if a == axis else 1 for a in range(grid.dim)])
    fields = grid.inverse(c)
    dw = fields * 0.3
    dw[:, 0] = 0
    return fields[:, 0] + (0.5 if grid.periodic and equation.name != "nse" else 0.0), dw


def trees(equation: Equation, u0: torch.Tensor, dw: torch.Tensor, height: int = 2) -> dict[str, torch.Tensor]:
    features = TreeFeatures(setting(equation), grow(equation.rule, height, math.inf))
    return dict(zip(features.names, features(u0.float(), dw.float()).double().unbind(-1), strict=True))


def close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> None:
    assert float((a - b).abs().max()) <= tolerance * float(b.abs().max()), float((a - b).abs().max() / b.abs().max())


# --- trees --------------------------------------------------------------------------------------------------------
def test_phi41_has_the_eleven_nodes_of_dlr_net():
    found = {str(t): t.degree for t in grow(sb.equation("phi41").rule)}
    assert found == {
        "xi": -1.5, "I_c": 2, "I[xi]": 0.5, "I[I[xi]]": 2.5, "I[I_c]": 4, "I[I[xi]^2]": 3, "I[I[xi] I_c]": 4.5,
        "I[I_c^2]": 6, "I[I[xi]^3]": 3.5, "I[I[xi]^2 I_c]": 5, "I[I[xi] I_c^2]": 6.5,
    }  # fmt: skip
    assert {str(t) for t in grow(sb.equation("phi41", mass=3.0).rule)} == set(found)
    wider = {str(t) for t in grow(sb.equation("phi41").rule, degree=8.0)}
    assert wider - set(found) == {"I[I_c^3]"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kpz", "I_c, I[1], I[xi], I[d I[xi]], I[d I_c], I[(d I[xi])^2], I[d I[xi] d I_c], I[(d I_c)^2]"),
        ("kdv", "I_c, I[xi], I[d(I_c)], I[d(I[xi])], I[d(I_c^2)], I[d(I_c I[xi])], I[d(I[xi]^2)]"),
        (
            "nse",
            "I_c, I[f], I[xi], I[v(I[xi]).grad I[xi]], I[v(I[f]).grad I[xi]], I[v(I[xi]).grad I[f]], "
            "I[v(I[xi]).grad I_c], I[v(I_c).grad I[xi]], I[v(I[f]).grad I[f]], I[v(I[f]).grad I_c], "
            "I[v(I_c).grad I[f]], I[v(I_c).grad I_c]",
        ),
    ],
)
def test_trees_of_an_equation(name, expected):
    xi, *rest = grow(sb.equation(name).rule)
    assert (str(xi), ", ".join(map(str, rest))) == ("xi", expected)


def test_multiplied_noise_grows_upon_the_datum():
    """u xi: no I[xi], but I[I_c xi] in its place, and at the next height noise upon noise."""
    rule = sb.equation("wave").rule
    assert [str(t) for t in grow(rule, 1)] == ["xi", "I_c", "I[1]", "I[I[1] xi]", "I[I_c xi]"]
    names = {str(t) for t in grow(rule)}
    assert {"I[I[I_c xi] xi]", "I[I_c^2]", "I[I[I_c xi] I_c]"} <= names and "I[xi]" not in names
    assert all(t.height <= 2 for t in grow(rule)) and {str(t) for t in grow(small("wave").rule)} == {
        "xi", "I_c", "I[I_c xi]", "I[I[I_c xi] xi]",
    }  # fmt: skip


# --- the linear part is the scheme's ------------------------------------------------------------------------------
LINEAR = [
    *((name, {}) for name in SMALL),
    ("phi41", {"boundary": "dirichlet", "basis": "sine"}),
    ("phi41", {"steps": 30}),
    ("phi42", {"steps": 50}),
    ("wave", {"boundary": "dirichlet", "basis": "sine"}),
    ("wave", {"steps": 50}),
    ("nse", {"boundary": "dirichlet", "basis": "sine"}),
    ("nse", {"steps": 50, "solve_points": 32}),
    *((name, {"edition": "converged"}) for name in ("phi41", "phi42", "kdv", "kpz")),
    ("phi41", {"edition": "converged", "boundary": "dirichlet", "basis": "sine"}),
    ("nse", {"edition": "converged", "solve_points": 0}),
    ("wave", {"edition": "converged"}),
]


@pytest.mark.parametrize(("name", "changes"), LINEAR)
def test_trees_of_height_1_are_the_schemes_first_order(name, changes):
    """u = e (I_c + sigma I[xi]) + O(e^2), with the scheme's own steps between frames, noise spread over them."""
    equation, e = small(name, **changes), 1e-6
    if name == "wave":
        equation = equation.replace(sigma=e)  # u = I_c + sigma I[I_c xi]: the datum alone is of order 1
    u0, dw = inputs(equation)
    found = trees(equation, u0, dw, 1)
    if name == "wave":
        u = sb.solve(equation, u0, dw)
        close(found["I_c"], u, 3e-6)
        first = (u - sb.solve(equation.replace(sigma=0.0), u0, dw)) / e
        inside = equation.steps == equation.frames and equation.edition == "paper"
        close(found["I[I_c xi]"], first, 1e-4 if inside else 3e-2)  # between frames I_c counts as linear
    else:
        u = sb.solve(equation, e * u0, e * dw) / e
        close(found["I_c"] + equation.sigma * found["I[xi]"], u, 2e-5)


# --- products -----------------------------------------------------------------------------------------------------
def even(equation: Equation, u0: torch.Tensor, dw: torch.Tensor, e: float = 1e-4) -> torch.Tensor:
    """The second order of u in (u0, dw)."""
    u = [sb.solve(equation, s * e * u0, s * e * dw) for s in (1, -1)]
    return (u[0] + u[1]) / (2 * e**2)


@pytest.mark.parametrize(
    ("name", "factor", "product"),
    [
        ("kpz", 0.5, "I[{}]"),
        ("kdv", 3.0, "I[d({})]"),
        ("nse", -1.0, "I[v({}).grad {}]"),
    ],
)
def test_quadratic_trees_are_the_schemes_second_order(name, factor, product):
    equation = small(name, sigma=0.7)
    u0, dw = inputs(equation)
    f, s = trees(equation, u0, dw), equation.sigma
    if name == "nse":
        pairs = [("I_c", "I_c", 1), ("I_c", "I[xi]", s), ("I[xi]", "I_c", s), ("I[xi]", "I[xi]", s * s)]
        second = sum(w * f[product.format(a, b)] for a, b, w in pairs)
    else:
        d = "d " if name == "kpz" else ""
        square = ("({}{})^2" if d else "{}{}^2").format
        mixed = f"{d}I[xi] {d}I_c" if name == "kpz" else "I_c I[xi]"
        second = f[product.format(square(d, "I_c"))] + 2 * s * f[product.format(mixed)]
        second = second + s * s * f[product.format(square(d, "I[xi]"))]
    close(factor * second, even(equation, u0, dw), 2e-4)


def test_transport_on_a_dirichlet_grid_is_that_of_the_odd_extension():
    equation = small("nse", boundary="dirichlet", basis="sine", sigma=0.7)
    u0, dw = inputs(equation, top=4)
    found = trees(equation, u0, 0 * dw)
    close(-found["I[v(I_c).grad I_c]"], even(equation, u0, 0 * dw), 2e-4)


@pytest.mark.parametrize("name", ["phi41", "phi42", "phi43"])
def test_cubic_trees_are_the_schemes_third_order(name):
    equation, e = small(name, sigma=0.7), 1e-3
    u0, dw = inputs(equation, top=1)
    f, s = trees(equation, u0, dw), equation.sigma
    third = f["I[I_c^3]"] + 3 * s * f["I[I[xi] I_c^2]"] + 3 * s**2 * f["I[I[xi]^2 I_c]"] + s**3 * f["I[I[xi]^3]"]
    u = [sb.solve(equation, k * e * u0, k * e * dw) for k in (1, 2)]
    close(-third, (u[1] - 2 * u[0]) / (6 * e**3), 2e-4)


def test_noise_upon_noise_is_the_second_order_in_sigma():
    equation, e = small("wave", sigma=0.0), 1e-3
    u0, dw = inputs(equation)
    found = trees(equation.replace(sigma=1.0), u0, dw)
    u = [sb.solve(equation.replace(sigma=k * e), u0, dw) for k in (0, 1, 2)]
    close(found["I[I[I_c xi] xi]"], (u[2] - 2 * u[1] + u[0]) / (2 * e**2), 1e-2)


def test_forces_are_trees_without_noise():
    """Height 1 of nse with f and of wave with its constant: the solution from 0 at first order in the force."""
    nse = small("nse", forcing=1e-6, sigma=0.0)
    zero = torch.zeros(1, *nse.grid.points, dtype=torch.float64)
    found = trees(nse, zero, torch.zeros(1, 11, *nse.grid.points))
    close(found["I[f]"], sb.solve(nse, zero, torch.zeros(1, 11, *nse.grid.points)), 1e-5)
    kpz = small("kpz", renormalisation="paper")
    times = kpz.times[:, None].expand(-1, 16)
    close(trees(kpz, zero[..., 0], torch.zeros(1, 11, 16))["I[1]"][0], times, 1e-5)


# --- alignment and causality --------------------------------------------------------------------------------------
def test_noise_enters_at_the_frame_that_ends_its_interval_and_drift_one_frame_later():
    equation = small("phi41")
    dw = torch.zeros(1, 11, 16)
    dw[:, 4] = 1.0
    found = trees(equation, torch.zeros(1, 16), dw)
    assert not found["I[xi]"][:, :4].any() and bool((found["I[xi]"][:, 4:] > 0.99).all())
    assert not found["I[I[xi]^2]"][:, :5].any() and bool((found["I[I[xi]^2]"][:, 5:] > 0).all())


@pytest.mark.parametrize("name", [n for n in SMALL if n != "phi43"])
def test_trees_do_not_know_the_future(name):
    equation = small(name)
    u0, dw = inputs(equation)
    later = dw.clone()
    later[:, 6:] += 1.0
    before, after = trees(equation, u0, dw), trees(equation, u0, later)
    for key, values in before.items():
        assert float((after[key] - values)[:, :6].abs().max()) < 1e-6


# --- the exact kernel ---------------------------------------------------------------------------------------------
def test_exact_kernel_is_the_continuous_semigroup():
    """Mode k of the heat equation: I_c = e^{-lt}, I[c] = c (1 - e^{-lt})/l for constant noise and drift."""
    equation = small("phi41")
    kernel, grid = make_kernel(setting(equation), "exact"), equation.grid
    wave = torch.cos(2 * math.pi * 3 * grid.coordinates(0)).float()
    rate, t = (6 * math.pi) ** 2, equation.times[:, None].float()
    close(kernel.datum(wave[None])[0], torch.exp(-rate * t) * wave, 1e-5)
    filled = (1 - torch.exp(-rate * t)) / rate * wave
    constant = wave.expand(1, 11, 16).clone()
    close(kernel.noise(constant)[0], filled, 1e-5)
    close(kernel.drift(constant)[0], filled, 1e-5)


def test_exact_kernel_of_the_wave_equation_rotates():
    equation = small("wave", boundary="dirichlet", basis="sine")
    kernel = make_kernel(setting(equation), "exact")
    x, t = equation.grid.coordinates(0).float(), equation.times[:, None].float()
    wave, omega = torch.sin(2 * math.pi * x), 2 * math.pi
    still = kernel.datum(0 * wave[None])
    close((kernel.datum(wave[None]) - still)[0], torch.cos(omega * t) * wave, 1e-5)
    source = (t * wave)[None]  # u_tt = u_xx + t w: (t - sin(omega t)/omega)/omega^2
    close(kernel.drift(source)[0], (t - torch.sin(omega * t) / omega) / omega**2 * wave, 1e-4)
    torch.manual_seed(0)
    assert float(kernel.drift(torch.randn(1, 11, 16))[..., 0].abs().max()) < 1e-6


def test_generator_on_a_thinner_grid_keeps_the_differences_of_the_finer_one():
    equation = small("phi41", points=32)
    full, thin = (make_kernel(TaskSpec(stride=s).setting(equation)) for s in (1, 2))
    wave = torch.cos(2 * math.pi * 3 * equation.grid.coordinates(0)).float()[None]
    close(thin.datum(wave[:, ::2]), full.datum(wave)[..., ::2], 1e-6)


def test_a_scheme_without_propagator_asks_for_the_exact_kernel(monkeypatch):
    monkeypatch.setattr(SemiImplicit, "propagator", None)
    equation = small("phi41")
    with pytest.raises(sb.UserError, match=r"phi41: kernel=generator needs .* use kernel=exact"):
        make_kernel(setting(equation))
    make_kernel(setting(equation), "exact")


# --- the second pass ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [n for n in SMALL if n != "phi43"])
def test_second_pass_with_the_same_datum_is_the_first(name):
    equation = small(name)
    u0, dw = (x.float() for x in inputs(equation))
    features = TreeFeatures(setting(equation), grow(equation.rule))
    first = features(u0, dw)
    datum = first[..., features.names.index("I_c")]
    again = features.trees_with_datum(first, datum, dw)
    close(again, first[..., list(features.with_datum)], 1e-5)


def test_second_pass_is_differentiable():
    """Against differences, in the direction of one random field."""
    equation = small("phi41")
    u0, dw = (x.float() for x in inputs(equation))
    features = TreeFeatures(setting(equation), grow(equation.rule))
    first = features(u0, dw)
    generator = torch.Generator().manual_seed(1)
    v, direction = torch.randn(2, *dw.shape, generator=generator)
    weight = torch.randn(*dw.shape, len(features.with_datum), generator=generator)
    v.requires_grad_()
    (gradient,) = torch.autograd.grad((features.trees_with_datum(first, v) * weight).sum(), v)
    e = 1e-2
    ahead, back = (
        (features.trees_with_datum(first, v.detach() + s * e * direction) * weight).double().sum() for s in (1, -1)
    )
    assert float((gradient * direction).sum()) == pytest.approx(float(ahead - back) / (2 * e), rel=1e-3)


def test_scales_are_root_mean_squares():
    values = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 300.0, 0.0])
    scales = Scales(3)
    assert torch.equal(scales(values), values)
    scales.fit(values, chunk=2)
    assert scales(values).square().mean((0, 1)).tolist() == pytest.approx([1.0, 1.0, 0.0], abs=1e-6)
