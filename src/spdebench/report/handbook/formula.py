r"""Formulas of docstrings as LaTeX: ``u_t = u_xx + sigma xi`` becomes ``u_{t} = u_{xx} + \sigma \xi``.

Docstrings write formulas as plain text, so that a terminal can show them. Names of Greek letters, functions and
operators are known here; another word of several letters is a parameter if it is named so, and text otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

LETTERS = {"alpha", "beta", "gamma", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau"}
LETTERS |= {"phi", "psi", "omega", "Phi"}
FUNCTIONS = {"sin", "cos", "tanh", "exp", "log", "sum", "max", "min", "in"}
KNOWN = {
    **{name: f"\\{name}" for name in (*LETTERS, *FUNCTIONS)},
    "eps": r"\varepsilon",
    "Laplacian": r"\Delta",
    "grad": r"\nabla",
    "u0": "u_0",
    "d": r"\mathrm{d}",
    **{f"d{letter}": rf"\mathrm{{d}}{letter}" for letter in "tXWzuh"},
    "dw": r"\mathrm{d}W",
}
OPERATORS = {"curl", "div", "relu", "gelu", "sigmoid", "tanh", "mean", "std", "act", "inverse", "coarse", "fine"}
OPERATORS |= {"sqrt", "LogSig", "Attention", "MLP", "LN"}
SIGNS = {
    "<-": r"\leftarrow ",
    "->": r"\to ",
    "<=": r"\le ",
    ">=": r"\ge ",
    "..": r"\dots ",
    "*": r"\ast ",
    "~": r"\sim ",
    **{sign: f"\\{sign}" for sign in "%&#$"},
}
TOKEN = re.compile(
    r"``(?P<code>[^`]+)``|`(?P<code1>[^`]+)`|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<word>[A-Za-z]+0?)"
    r"|(?P<sign><-|->|<=|>=|:=|\.\.|.)",
    re.DOTALL,
)


def latex(formula: str, parameters: Collection[str] = ()) -> str:
    """One formula. ``parameters`` are words that name numbers, such as the fields of an equation."""
    out: list[str] = []
    words: list[str] = []
    script = False
    for kind, text in (*_tokens(formula), ("end", "")):
        if kind == "code" or (kind == "word" and not script and _is_text(text, parameters)):
            words.append(text)
            continue
        if words and text.isspace():
            continue
        if words:
            out.append(rf"\text{{ {' '.join(words)} }}")
            words = []
        if kind == "word":
            out.append(_script(text) if script else _symbol(text, parameters))
        else:
            out.append(_number(text) if kind == "number" else SIGNS.get(text, text))
        script = kind == "sign" and text in ("_", "^")
    tex = re.sub(r"\s+", " ", "".join(out)).strip()
    return re.sub(r"([\w)])\.\s?(?=\\nabla)", r"\1 \\cdot ", re.sub(r" (?=[_^',)])", "", tex))


def display(formula: str, parameters: Collection[str] = ()) -> str:
    """Formulas that are separated by a comma and two or more spaces, or by three spaces, one below the other."""
    parts = [part.strip() for part in re.split(r"(?<=,)\s{2,}|\s{3,}", formula.strip().rstrip("."))]
    lines = [latex(part, parameters) for part in parts if part]
    if len(lines) == 1:
        return lines[0]
    return "\\begin{aligned}\n" + " \\\\\n".join(f"& {line}" for line in lines) + "\n\\end{aligned}"


def _tokens(formula: str) -> Iterator[tuple[str, str]]:
    """The kind and the text of each token of a formula."""
    for match in TOKEN.finditer(formula):
        kind = match.lastgroup or "sign"
        yield ("code" if kind == "code1" else kind), match.group(kind)


def _is_text(word: str, parameters: Collection[str]) -> bool:
    return len(word) > 1 and word not in KNOWN and word not in OPERATORS and word not in parameters


def _symbol(word: str, parameters: Collection[str]) -> str:
    """A word of a formula in LaTeX; names of ``parameters`` are set as one italic word."""
    if word in KNOWN:
        return f"{KNOWN[word]} "
    if word in OPERATORS:
        return rf"\operatorname{{{word}}}"
    return rf"\mathit{{{word}}}\," if word in parameters else word


def _script(word: str) -> str:
    """An index or exponent of several letters: xx of u_xx, max of a_max."""
    if word in KNOWN:
        return f"{{{KNOWN[word]}}}"
    return f"{{{word}}}" if set(word) <= set("xyzt") or len(word) == 1 else rf"{{\mathrm{{{word}}}}}"


def _number(text: str) -> str:
    """``1.5e-4`` as a multiple of a power of ten."""
    value, _, power = text.partition("e")
    return rf"{value} \cdot 10^{{{power}}}" if power else value
