"""Every scheme with every equation: one line refuses the pair, or the scheme keeps the laws of its propagator."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from spdebench.equations import EQUATIONS, Equation
from spdebench.errors import UserError
from spdebench.solvers import SCHEMES, Scheme, SemiImplicit

PAIRS = [(equation, scheme) for equation in EQUATIONS for scheme in SCHEMES]
SMALL = {"points": 8, "truncation": 4, "frames": 4, "steps": 4}


def small(name: str, scheme: str, edition: str, **attributes: Any) -> Equation:
    """A small member of the equation with this scheme; ``attributes`` replace those of its class."""
    cls = EQUATIONS[name]
    changed = {"schemes": {"paper": scheme, "converged": scheme}, **attributes}
    return type(cls.__name__, (cls,), changed)(**SMALL, edition=edition, substeps=1, horizon=cls().horizon / 50)


def linear(name: str, scheme: str, edition: str, **attributes: Any) -> Equation:
    """The same without drift, counter-term and initial velocity."""
    dispersion = EQUATIONS[name]().quadratic_dispersion()
    nothing = {
        "drift": lambda self, grid, device="cpu": torch.zeros_like,
        "nonlinear": lambda self, grid, device="cpu": torch.zeros_like,
        "velocity": lambda self, grid, device="cpu": torch.zeros(grid.points, dtype=torch.float64),
        "counterterm_rates": lambda self: (),
        "quadratic_dispersion": lambda self: dispersion and (dispersion[0], 1e-15),
    }
    return small(name, scheme, edition, **(nothing | attributes))


def build(cls: type[Scheme], eq: Equation) -> Scheme:
    return cls(eq, eq.solving_grid, eq.horizon / eq.noise_steps)


def fields(eq: Equation, scale: float = 1.0) -> Tensor:
    """Two random fields with all modes of the solving grid below Nyquist."""
    grid = eq.solving_grid
    values = torch.randn(2, *grid.points, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    lower = grid.with_points([n - 1 for n in grid.points])
    return scale * grid.inverse(lower.resize(grid.resize(grid.transform(values), lower), grid))


def shown(scheme: Scheme, values: Tensor) -> Tensor:
    return values if scheme.noise_form == "physical" else scheme.grid.transform(values)


def frames(scheme: Scheme, u0: Tensor, dw: Tensor, count: int) -> Tensor:
    """Coefficients after 1..count intervals, the noise on the first alone: (count, 2, K..)."""
    state, out = scheme.start(u0.clone()), []
    for n in range(count):
        state = scheme.step(state, shown(scheme, dw if n == 0 else torch.zeros_like(dw)))
        out.append(scheme.grid.transform(scheme.field(state).clone()))
    return torch.stack(out)


def close(found: Tensor, wanted: Tensor, tolerance: float = 1e-10) -> None:
    assert float((found - wanted).abs().max()) <= tolerance * float(wanted.abs().max())


# --- the laws -----------------------------------------------------------------------------------------------------
def law_of_the_datum(cls: type[Scheme], eq: Equation) -> None:
    """Without noise every mode is multiplied by A in each interval."""
    scheme, u0 = build(cls, eq), fields(eq)
    assert cls.propagator is not None
    step, _ = cls.propagator.over(eq.symbol(scheme.grid), scheme.interval, 1)
    unit = torch.eye(step.a.shape[-1], dtype=step.a.dtype)[0].expand(step.left.shape)
    wanted = step.powers(unit, 4)[1:, None] * scheme.grid.transform(u0)
    close(frames(scheme, u0, 0 * u0, 3), wanted)


def law_of_additive_noise(cls: type[Scheme], eq: Equation) -> None:
    """An increment is answered by the impulse response; the squares of the responses add up to the variance."""
    scheme, dw = build(cls, eq), fields(eq)
    assert cls.propagator is not None
    symbol, h = eq.symbol(scheme.grid), scheme.interval
    _, step = cls.propagator.over(symbol, h, 1)
    responses = step.powers((step.left + step.right) / h, 3)
    found, wanted = frames(scheme, 0 * dw, dw, 3), eq.sigma * responses[:, None] * scheme.grid.transform(dw)
    if eq.order == 1:
        close(found, wanted)
    else:  # a splitting resolves the slow modes
        slow = h * symbol.abs().sqrt() < 0.3
        close(found[..., slow], wanted[..., slow], 1e-4)
    if eq.order == 1:
        wanted = responses.abs().square().flatten(1).sum(1).cumsum(0) * h
        one = torch.ones(symbol.numel(), dtype=torch.float64)
        close(cls.propagator.variance(symbol.flatten(), one, h, 1, 3)[1:], wanted)


def law_of_counterterms(cls: type[Scheme], eq: Equation) -> None:
    """d/dm of one step with the rate m is the response to the source u: at the start, or along the whole interval."""
    assert cls.propagator is not None
    grid, h = eq.solving_grid, eq.horizon / eq.noise_steps
    u0, e, ends = fields(eq), 1e-4 / h, []
    for rate in (0.0, e):
        rated = type("Rated", (type(eq),), {"counterterm_rates": lambda self, m=rate: [m] * self.noise_steps})
        scheme = build(cls, rated(**SMALL, edition=eq.edition, substeps=1, horizon=eq.horizon))
        ends.append(frames(scheme, u0, 0 * u0, 1)[0])
    symbol = eq.symbol(grid)
    step, _ = cls.propagator.over(symbol, h, 1)
    resolved = cls.propagator.resolves_interval
    gain = h * step.a[..., 0, 0] if resolved else step.left[..., 0]
    slow = (h * symbol).abs() < 0.2 if resolved else torch.ones_like(symbol.abs(), dtype=torch.bool)
    assert slow.any()
    close(((ends[1] - ends[0]) / e)[:, slow], (gain * grid.transform(u0))[:, slow], 1e-3 if resolved else 1e-6)


def law_of_multiplicative_noise(cls: type[Scheme], eq: Equation) -> None:
    """Doubling u doubles what the noise adds, and without u it adds nothing."""
    scheme, u0, dw = build(cls, eq), fields(eq), fields(eq, 1e-3).flip(0)
    added = [frames(scheme, s * u0, dw, 1) - frames(scheme, s * u0, 0 * dw, 1) for s in (0, 1, 2)]
    assert float(added[0].abs().max()) == 0 < float(added[1].abs().max())
    close(added[2], 2 * added[1])


def law_of_the_diffusion(cls: type[Scheme], additive: Equation, doubled: Equation) -> None:
    """Multiplicative noise with the constant G(u) = 2 is additive noise of twice the size."""
    u0, dw = fields(additive), fields(additive, 1e-3).flip(0)
    close(frames(build(cls, doubled), u0, dw, 1), frames(build(cls, additive), u0, 2 * dw, 1), 1e-12)


def itself(self: Equation, u: Tensor) -> Tensor:
    """G(u) = u."""
    return u


# --- all pairs ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize(("equation", "scheme"), PAIRS)
def test_a_pair_is_refused_in_one_line_or_keeps_the_laws(equation: str, scheme: str, edition: str) -> None:
    cls, eq = SCHEMES[scheme], small(equation, scheme, edition)
    try:
        build(cls, eq)
    except UserError as error:
        text = str(error)
        assert text.startswith(f"{equation}: the scheme '{scheme}' does not support ") and "\n" not in text
        able = text.rpartition("schemes that do: ")[2].split(", ")
        assert scheme not in able
        for other in able if able != ["none"] else []:
            build(SCHEMES[other], small(equation, other, edition))
        return
    plain = linear(equation, scheme, edition, multiplicative=False)
    law_of_the_datum(cls, plain)
    law_of_additive_noise(cls, plain)
    if cls.counterterms:
        law_of_counterterms(cls, plain)
    if cls.multiplicative:
        law_of_multiplicative_noise(cls, linear(equation, scheme, edition, multiplicative=True, diffusion=itself))
        twice = linear(equation, scheme, edition, multiplicative=True, diffusion=lambda self, u: torch.full_like(u, 2))
        law_of_the_diffusion(cls, plain, twice)


def test_the_schemes_that_an_equation_names_serve_it() -> None:
    for name in EQUATIONS:
        for edition, scheme in EQUATIONS[name].schemes.items():
            build(SCHEMES[scheme], EQUATIONS[name](**SMALL, edition=edition))


# --- the laws can fail --------------------------------------------------------------------------------------------
class Deaf(SemiImplicit):
    """Says that it serves counter-terms and leaves them out."""

    name = "deaf"

    def counterterm_rate(self, n: int) -> float:
        return 0.0


class Additive(SemiImplicit):
    """Says that it serves multiplicative noise and adds sigma dW."""

    name = "additive"

    def step(self, state: tuple[Tensor, int], dw: Tensor) -> tuple[Tensor, int]:
        u, n = state
        return self._implicit(self.explicit(u, dw, n)), n + 1


class Explicit(SemiImplicit):
    """Names a propagator that is not its own."""

    name = "explicit"
    propagator = SCHEMES["crank_nicolson"].propagator  # type: ignore[assignment]


def test_the_laws_catch_a_scheme_that_ignores_what_it_promises() -> None:
    plain = linear("phi41", "semi_implicit", "paper")
    law_of_counterterms(SemiImplicit, plain)
    with pytest.raises(AssertionError):
        law_of_counterterms(Deaf, plain)
    noisy = linear("phi41", "semi_implicit", "paper", multiplicative=True)
    law_of_multiplicative_noise(SemiImplicit, noisy)
    with pytest.raises(AssertionError):
        law_of_multiplicative_noise(Additive, noisy)
    for law in (law_of_the_datum, law_of_additive_noise):
        with pytest.raises(AssertionError):
            law(Explicit, plain)


# --- what was silently wrong --------------------------------------------------------------------------------------
def test_crank_nicolson_renormalises() -> None:
    """phi42 by crank_nicolson: a small constant field grows by 1 + h m_n in each interval more than the bare one."""
    cls = type("P", (EQUATIONS["phi42"],), {"schemes": {"paper": "crank_nicolson"}})
    kept, bare = (cls(**SMALL, sigma=1.0, renormalisation=kind) for kind in ("paper", "none"))
    u0 = torch.full((1, 8, 8), 1e-6, dtype=torch.float64)
    ends = [build(SCHEMES["crank_nicolson"], eq) for eq in (kept, bare)]
    states = [s.start(u0) for s in ends]
    for _ in range(4):
        states = [s.step(x, torch.zeros_like(x[0])) for s, x in zip(ends, states, strict=True)]
    rates = kept.counterterm_rates()
    wanted = math.prod(1 + kept.horizon / 4 * m for m in rates)
    assert float(ends[0].field(states[0]).mean() / ends[1].field(states[1]).mean()) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("scheme", ["crank_nicolson", "wick"])
def test_multiplicative_noise_is_not_taken_as_additive(scheme: str) -> None:
    with pytest.raises(
        UserError, match=r"phi41: the scheme '\w+' does not support multiplicative noise; .*semi_implicit"
    ):
        build(SCHEMES[scheme], small("phi41", scheme, "paper", multiplicative=True))


def test_multiplicative_noise_of_the_linear_implicit_scheme_is_ito() -> None:
    """du = sigma u dW, one mode constant in space: E u(T) = u_0, whatever the sub-steps."""
    from spdebench.solvers import simulate

    def start(self: Equation, grid: Any, seed: int, samples: Any, device: str = "cpu") -> Tensor:
        return torch.ones(len(samples), *grid.points, dtype=torch.float64)

    cls = type(linear("phi41", "semi_implicit", "paper", multiplicative=True, initial=start))
    for substeps in (1, 4):
        eq = cls(points=8, truncation=4, frames=8, steps=8, horizon=0.1, sigma=0.5, substeps=substeps)
        u = simulate(eq, 0, range(4000), out_dtype=torch.float64).u[:, -1].mean(-1)
        assert abs(float(u.mean()) - 1) < 4 * float(u.std()) / math.sqrt(4000)
        assert float(u.std()) / math.sqrt(4000) < 0.01
