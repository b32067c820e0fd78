"""Pages of equations and models: formulas, docstrings and what a page says, each from small inputs."""

from __future__ import annotations

import re

import pytest

import spdebench as sb
from spdebench.report.formatting import title
from spdebench.report.handbook import Law, own_equations, own_models, page_names
from spdebench.report.handbook.equation_pages import equation_index, equation_page, shown
from spdebench.report.handbook.formula import display, latex
from spdebench.report.handbook.model_pages import model_index, model_page
from spdebench.report.handbook.prose import blocks, markdown
from spdebench.report.handbook.references import OF_EQUATIONS, OF_MODELS


@pytest.mark.parametrize(
    ("plain", "tex"),
    [
        ("u_t = u_xx + mass u - u^3 + sigma xi", r"u_{t} = u_{xx} + \mathit{mass}\, u - u^3 + \sigma \xi"),
        ("u.grad omega", r"u \cdot \nabla \omega"),
        ("z^{j+1} = S_t z_0 + S * xi^eps", r"z^{j+1} = S_{t} z_0 + S \ast \xi^{\varepsilon}"),
        ("t <= 256 dt, dt = 1.384e-4", r"t \le 256 \mathrm{d}t, \mathrm{d}t = 1.384 \cdot 10^{-4}"),
        ("tau_i the trees of height 2", r"\tau_{i} \text{ the trees of height }2"),
        ("D L_n .. L_1 [ dw(t_0..t_T, x) ]", r"D L_{n} \dots L_1 [ \mathrm{d}W (t_0\dots t_{T}, x) ]"),
    ],
)
def test_plain_formulas_become_latex(plain: str, tex: str) -> None:
    assert latex(plain, ("mass",)) == tex


def test_every_formula_of_the_registries_has_balanced_braces_and_no_plain_names() -> None:
    for formula in [
        *(sb.EQUATIONS[n].formula for n in own_equations()),
        *(sb.MODELS[n].formula() for n in own_models()),
    ]:
        tex = display(formula)
        assert formula and tex.count("{") == tex.count("}"), formula
        outside = re.sub(r"\\(?:text|operatorname|mathrm|begin|end|mathit)\{[^{}]*\}|\\[A-Za-z]+", "", tex)
        assert not re.search(r"(?<![_{xyzt])[A-Za-z]{4,}", outside), tex


def test_a_docstring_is_split_into_paragraphs_blocks_and_items() -> None:
    text = "First line\ngoes on.\n\n    u = v\n    v = w\n\nThen:\n* one\n  more\n* two\nBack:\n  none   0.\n"
    assert list(blocks(text)) == [
        ("text", "First line goes on."),
        ("block", "    u = v\n    v = w"),
        ("text", "Then:"),
        ("item", "one more"),
        ("item", "two"),
        ("text", "Back:"),
        ("block", "  none   0."),
    ]
    shown_text = markdown(text, formulas=True)
    assert "& u = v" in shown_text and "- one more\n- two" in shown_text and "```text\n  none   0.\n```" in shown_text
    assert markdown("a*b and ``c*d`` in u_0") == r"a\*b and `c*d` in u\_0"
    assert markdown("*Why this.* S * H and a*b, *before* it") == r"*Why this.* S \* H and a\*b, *before* it"
    assert title("Dynamic Phi^4_2") == "Dynamic Φ⁴₂" and list(blocks("")) == []


def test_the_page_of_an_equation_says_what_the_registry_says() -> None:
    page = equation_page("kpz", [], [Law("order one", "|u_h| <= C h")], {"light": "a.png", "dark": "b.png"})
    assert page.startswith("# Kardar-Parisi-Zhang\n\n$$\n") and "![Solutions of kpz](b.png){.only-dark}" in page
    assert r"- **Order one**: \|u\_h\| \<= C h" in page and "Hairer" in page
    assert "| `renormalisation` | `exact` | the counter-term | `none`, `paper`, `exact` | this equation |" in page
    assert "core suite: `kpz`" in page and "edition=converged" in page
    assert shown("kpz").edition == "converged" and shown("wave") == sb.equation("wave")


def test_the_page_of_a_model_says_what_the_registry_says() -> None:
    page = model_page("gt", [])
    assert page.startswith("# GT\n") and "39,329" in page and "Choose a transformer" in page and "No run" in page
    assert r"z \leftarrow z + \operatorname{Attention}" in page
    assert page.index("The authors' 2-D code") > page.index("## Where it differs from the authors' code, and why")
    assert "| with `loss=energy` |" in page and "| draws members by itself |" in model_page("climatology", [])
    assert "| `hidden` | `128` | width of the MLP in each layer |" in page and "## Options" not in model_page(
        "mean", []
    )
    assert "torchcde" in model_page("ncde", [])  # said by a module that the docstring names
    for name, formula in {"mean": r"\operatorname{mean}", "step": r"\sum_{j} c_{j}(k)"}.items():
        assert formula in model_page(name, []) and "Settings" not in model_page(name, [])


def test_lists_name_every_page_and_every_name_with_literature_exists() -> None:
    listed = {f"equations/{n}.md" for n in re.findall(r"\]\((\w+)\.md\)", equation_index())}
    listed |= {f"models/{n}.md" for n in re.findall(r"\]\(([\w-]+)\.md\)", model_index())}
    assert listed | {"equations/index.md", "models/index.md"} == set(page_names())
    assert set(OF_EQUATIONS) == set(own_equations()) and set(OF_MODELS) <= set(own_models())
