"""Equations and schemes of others: two methods are enough, and what is missing is said in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest
import torch
from torch import Tensor

import spdebench as sb
from spdebench.equations.meanings import choices, meaning
from spdebench.equations.propagators import Theta
from spdebench.models.regularity import make_kernel
from spdebench.report.card import describe_noise
from spdebench.solvers import Scheme, make_scheme
from spdebench.tasks import TaskSpec


@dataclass(frozen=True, kw_only=True)
class Heat(sb.Equation, name="two-methods"):
    """u_t = u_xx + sigma xi."""

    horizon: float = 0.05

    def symbol(self, grid: sb.Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def initial(self, grid: sb.Grid, seed: int, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        return torch.ones(len(samples), *grid.points, dtype=torch.float64, device=device)


SMALL = {"points": 16, "truncation": 8, "frames": 10, "steps": 10}


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_two_methods_are_enough(edition: str, tmp_path: Path) -> None:
    eq = sb.equation("two-methods", edition=edition, **SMALL)
    assert (eq.title, eq.formula) == ("two-methods", "u_t = u_xx + sigma xi.")
    file = sb.generate(eq, n=40, out=tmp_path)
    data = sb.open_dataset(file)
    assert sb.verify(data).identical == sb.verify(data).solved
    u = sb.solve(eq, data.u0[:2], data.dw[:2])
    if edition == "paper":
        assert float((u - torch.from_numpy(data.u[:2])).abs().max()) < 1e-5
    task = sb.Task(file)
    exact = sb.train("linear", task, config={"kernel": "generator"}, out=tmp_path / "runs", progress=False)
    assert exact.scores["rel_l2"].value < 1e-2  # a linear equation
    tiny = sb.train("fno", task, out=tmp_path / "runs", progress=False, epochs=1, config={"width": 4, "layers": 1})
    assert tiny.scores["rel_l2"].value > 0


def test_only_a_field_of_several_words_has_choices() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Sided(Heat):
        side: Literal["left", "right"] = "left"
        top: int | None = None
        centres: tuple[float, ...] = (0.5,)
        whole: bool = True

    found = {field: choices(Sided, field) for field in ("side", "top", "centres", "whole", "sigma")}
    assert found == {"side": ("left", "right"), "top": (), "centres": (), "whole": (), "sigma": ()}


@pytest.mark.parametrize("model", ["trees", "nors", "dlr-net"])
def test_models_that_need_a_rule_say_so(model: str) -> None:
    setting = TaskSpec().setting(Heat(**SMALL))
    with pytest.raises(sb.UserError, match=f"model '{model}' .* two-methods declares none; add a `rule`"):
        sb.build(model, setting)


# --- noise and schemes of others ----------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Pink(Heat, name="pink-noise"):
    """u_t = u_xx + sigma xi with a noise of its own."""

    noise: Literal["pink"] = "pink"  # type: ignore[assignment]
    noises: ClassVar = ("pink",)

    def eigenvalue_roots(self) -> Tensor:
        return 1 / (1 + self.series().index.double())


def test_a_noise_of_others_has_a_name_in_files_and_cards(tmp_path: Path) -> None:
    eq = sb.equation("pink-noise", **SMALL)
    assert describe_noise(eq).startswith("pink, 9 fourier functions")
    assert "-pink-fourier-" in sb.generate(eq, n=2, out=tmp_path).name


class ThreeQuarters(Scheme, name="three-quarters"):
    """(1 - 3/4 tau L) c' = (1 + 1/4 tau L) c + tau (F(c) + m_n c) + sigma dW."""

    noise_form = "spectral"
    order = 1
    propagator = Theta(0.75)
    counterterms = True

    def prepare(self) -> None:
        symbol = self.equation.symbol(self.grid, self.device)
        self.nonlinear = self.equation.nonlinear(self.grid, self.device)
        self.kept, self.below = (f(symbol, self.tau) for f in (Theta(0.75).numerator, Theta(0.75).denominator))

    def start(self, u0: Tensor) -> tuple[Tensor, int]:
        return self.grid.transform(u0), 0

    def step(self, state: tuple[Tensor, int], dw: Tensor) -> tuple[Tensor, int]:
        c, n = state
        explicit = self.tau * (self.nonlinear(c) + self.counterterm_rate(n) * c)
        return (self.kept * c + explicit + self.equation.sigma * dw) / self.below, n + 1

    def field(self, state: tuple[Tensor, int]) -> Tensor:
        return self.grid.inverse(state[0])


def solved_by_it(name: str, **fields: object) -> sb.Equation:
    cls = sb.EQUATIONS[name]
    return type(cls.__name__, (cls,), {"schemes": {"paper": "three-quarters"}})(**fields)


LATTICE = {"points": 8, "truncation": 4, "frames": 8, "steps": 8}


def test_a_scheme_of_others_renormalises_by_its_propagator() -> None:
    """E X_n^2 of the counter-term is that of the scheme: every normal strikes once alone, and the squares add up."""
    eq = solved_by_it("phi42", **LATTICE, renormalisation="exact")
    rates = torch.tensor(eq.counterterm_rates(), dtype=torch.float64)
    bare = type(
        "X",
        (type(eq),),
        {
            "counterterm_rates": lambda self: (),
            "nonlinear": lambda self, grid, device="cpu": torch.zeros_like,
        },
    )(**LATTICE)
    wiener, h = bare.wiener(), bare.horizon / 8
    scheme = make_scheme(bare, h)
    unit = torch.eye(wiener.basis.pairs, dtype=torch.complex128) * h**0.5
    strokes = wiener.spectral(torch.cat((unit, 1j * unit)))
    state, total = scheme.start(torch.zeros(len(strokes), 8, 8, dtype=torch.float64)), [0.0]
    for n in range(7):
        state = scheme.step(state, strokes if n == 0 else 0 * strokes)
        total.append(total[-1] + float(scheme.field(state).square().sum(0).mean()))
    torch.testing.assert_close(rates, 3 * torch.tensor(total, dtype=torch.float64), rtol=1e-10, atol=0)


def test_a_scheme_of_others_gives_the_generators_kernel() -> None:
    """I_c and I[xi] of kernel=generator are what the scheme makes of a small datum and a small noise."""
    eq, e = solved_by_it("phi41", **LATTICE), 1e-6
    kernel = make_kernel(TaskSpec().setting(eq))
    generator = torch.Generator().manual_seed(0)
    u0, dw = (torch.randn(1, n, 8, generator=generator, dtype=torch.float64) for n in (1, 9))
    dw[:, 0] = 0
    u = sb.solve(eq, e * u0[:, 0], e * dw) / e
    found = kernel.datum(u0[:, 0].float()) + eq.sigma * kernel.noise((dw / (eq.horizon / 8)).float())
    torch.testing.assert_close(found.double(), u, rtol=0, atol=2e-5)


def test_without_propagator_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreeQuarters, "propagator", None)
    with pytest.raises(sb.UserError, match=r"kernel=generator needs the propagator .* use kernel=exact"):
        make_kernel(TaskSpec().setting(solved_by_it("phi41", **LATTICE)))
    make_kernel(TaskSpec().setting(solved_by_it("phi41", **LATTICE)), "exact")
    for kind in ("paper", "exact"):
        with pytest.raises(sb.UserError, match=r"renormalisation needs the propagator .* renormalisation=none"):
            sb.simulate(solved_by_it("phi42", **LATTICE, renormalisation=kind), 0, range(1))
    sb.simulate(solved_by_it("phi42", **LATTICE, renormalisation="none"), 0, range(1))


def test_a_refused_pair_writes_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heat, "multiplicative", True)
    monkeypatch.setattr(Heat, "schemes", {"paper": "crank_nicolson"})
    eq = sb.equation("two-methods", **SMALL)
    line = "two-methods: the scheme 'crank_nicolson' does not support multiplicative noise"
    with pytest.raises(sb.UserError, match=line):
        sb.generate(eq, n=4, out=tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


# --- mistakes -----------------------------------------------------------------------------------------------------
def mistaken(**methods: object) -> sb.Equation:
    """The equation with two methods, some of them replaced by mistaken ones."""
    return type("Mine", (Heat,), methods)(**SMALL)


MISTAKES = {
    r"Mine.symbol: it must return a tensor \(9,\); got a float": {"symbol": lambda self, grid, device="cpu": -1.0},
    r"Mine.drift must return a function of u, .*; got a Tensor of shape \(16,\)": {
        "drift": lambda self, grid, device="cpu": grid.coordinates(0, device)
    },
    r"Mine.drift: the function that it returns must return a tensor \(2, 16\); got a ndarray": {
        "drift": lambda self, grid, device="cpu": lambda u: u.numpy()
    },
    r"Mine.initial must return float64, .*; got torch.float32": {
        "initial": lambda self, grid, seed, samples, device="cpu": torch.ones(len(samples), *grid.points)
    },
    r"Mine.initial: it must return a tensor \(2, 16\); got a Tensor of shape \(16,\)": {
        "initial": lambda self, grid, seed, samples, device="cpu": grid.coordinates(0, device)
    },
    r"Mine.diffusion: it must return a tensor \(2, 16\); got a function": {
        "multiplicative": True,
        "diffusion": lambda self, grid, device="cpu": lambda u: u,
    },
    r"Mine.diffusion: it must return a tensor \(2, 16\); got a Tensor of shape \(\)": {
        "multiplicative": True,
        "diffusion": lambda self, u: u.sum(),
    },
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistaken_method_is_told_in_one_line(line: str) -> None:
    with pytest.raises(sb.UserError, match=f"equation 'two-methods': {line}"):
        sb.simulate(mistaken(**MISTAKES[line]), 0, range(4))


def test_a_field_without_a_type_is_refused() -> None:
    """A dataclass would ignore the value and solve with the sigma of the class above."""
    with pytest.raises(
        sb.UserError, match=r"class Quiet sets the field sigma without a type.*write sigma: float = 0.2"
    ):

        class Quiet(Heat, name="quiet"):
            sigma = 0.2

    assert "quiet" not in sb.EQUATIONS


class Unnamed(Heat):
    sigma = 0.2


class Mixin:
    sigma: float = 0.2


WITHOUT_EFFECT = {
    "class Unnamed sets the field sigma without a type": lambda: type("Mine", (Unnamed,), {}),
    "class Mixin sets the field sigma and is not a dataclass": lambda: type("Mine", (Mixin, Heat), {}),
    "class Mine sets the field sigma and is not a dataclass": lambda: type(
        "Mine", (Heat,), {"sigma": 0.2, "__annotations__": {"sigma": float}}
    ),
    "class Mine defines noise, which is the name of a field": lambda: type("Mine", (Heat,), {"noise": lambda self: 1}),
}


@pytest.mark.parametrize("line", WITHOUT_EFFECT)
def test_a_field_that_a_class_without_the_decorator_sets_is_refused(line: str) -> None:
    """Otherwise the sigma of the class above would be used without a message, or a traceback would tell it."""
    with pytest.raises(sb.UserError, match=line):
        WITHOUT_EFFECT[line]()(**SMALL)


def test_a_field_cannot_be_a_property_without_a_setter() -> None:
    with pytest.raises(sb.UserError, match="class Fixed defines sigma, which is the name of a field"):

        class Fixed(Heat, name="fixed"):
            @property
            def sigma(self) -> float:
                return 0.2


def test_fields_that_have_an_effect_are_not_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Quiet(Heat):
        sigma: float = 0.2

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Slotted(Quiet):
        rate: float = 3.0

    for cls in (
        Quiet,
        type("Below", (Quiet,), {}),
        Slotted,
        type("Phi", (sb.EQUATIONS["phi41"],), {"remarks": "mine"}),
    ):
        assert cls(**SMALL).sigma == (sb.equation("phi41").sigma if cls.__name__ == "Phi" else 0.2)


def test_only_fields_of_the_package_are_explained_by_its_meanings() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Decaying(Heat):
        rate: float = 3.0
        sigma: float = 0.2

    assert meaning(sb.EQUATIONS["allen_cahn"], "rate") == "factor of the reaction term u - u^3"
    assert (meaning(Decaying, "rate"), meaning(Decaying, "sigma")) == ("", "strength of the noise")


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_noise_of_a_strength_that_depends_on_x_only_is_that_of_full_shape(edition: str) -> None:
    """G(x) may be given without the axis of samples; both senses of the noise are the same, so nothing is cautioned."""

    class Local(Heat):
        multiplicative = True

        def diffusion(self, u: Tensor) -> Tensor:
            return 1 + torch.linspace(0, 1, u.shape[-1], dtype=u.dtype)

    class Whole(Local):
        def diffusion(self, u: Tensor) -> Tensor:
            return super().diffusion(u).expand_as(u).clone()

    local, whole = (sb.simulate(cls(edition=edition, **SMALL), 0, range(3)).u for cls in (Local, Whole))
    assert torch.equal(local, whole) and not Local(**SMALL).caution()


def test_multiplicative_noise_without_a_sense_is_cautioned() -> None:
    """The editions of such an equation do not converge to each other as the noise interval becomes shorter."""

    class Parabolic(Heat):
        multiplicative = True

    assert "edition paper solves sigma G(u) dW in Ito's sense" in Parabolic(**SMALL).caution()
    assert not Heat(**SMALL).caution()
    for name in ("wave", "heat", "allen_cahn"):
        assert "edition paper solves" not in sb.equation(name).caution()

    def distance(n: int) -> float:
        fields = {"points": 16, "truncation": 4, "frames": n, "steps": n, "sigma": 2.0}
        paper, fine = (sb.simulate(Parabolic(edition=e, **fields), 0, range(8)).u for e in ("paper", "converged"))
        return float((paper - fine)[:, -1].norm() / fine[:, -1].norm())

    assert distance(256) > 0.2
