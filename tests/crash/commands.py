"""The commands that write files: what each starts from, and what is typed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import spdebench as sb
from fake_records import dataset, record
from spdebench.cli.main import main
from spdebench.records import store
from spdebench.suites import Suite, SuiteProblem, register_suite
from submitted import CARD

FIELDS = ["points=16", "truncation=8", "steps=4", "frames=4"]
FIELDS_OF_TINY = {"points": 16, "truncation": 8, "steps": 4, "frames": 4}
TINY = sb.equation("phi41", **FIELDS_OF_TINY)
NETWORK = ["width=4", "layers=1", "modes=4,2", "epochs=2", "batch_size=20"]


scoring = importlib.import_module("spdebench.training.scoring")
scoring.inference_time = lambda model, part: (1.0, len(part))  # half a second each time, which writes nothing


@dataclass(frozen=True)
class Command:
    """``prepare`` makes the files it starts from in the current folder, ``run`` is the command itself."""

    name: str
    prepare: Callable[[], object]
    run: Callable[[], object]


def typed(*words: str) -> Callable[[], None]:
    """The command line; each word may be a pattern of a file."""

    def run() -> None:
        found = [str(next(iter(sorted(Path().glob(w))), w)) if "*" in w else w for w in words]
        main(found)

    return run


def data() -> None:
    sb.generate(TINY, n=40, out="data")


def described() -> None:
    """A dataset with its card."""
    data()
    next(Path("data").glob("*.parquet")).with_suffix(".md").write_text("# A card\n")


def trained() -> None:
    data()
    sb.generate(TINY, n=40, seed=1, out="data")
    sb.train("mean", next(Path("data").glob("*seed0*.parquet")), out="runs")


register_suite(
    Suite(
        name="tiny",
        title="one small problem",
        problems=(SuiteProblem(name="phi41", equation="phi41", fields=FIELDS_OF_TINY),),
    )
)
CHALLENGE = ("challenge", "make", "tiny", "--seed-file", "SECRET", "-n", "4", "--out", "inputs", "--overwrite")
SUBMISSION = ("challenge", "predict", "inputs", "--run", "runs/mean*", "--card", "card.toml", "--out", "mine")


def secret() -> None:
    Path("SECRET").write_text("0123456789abcdef" * 4)
    Path("card.toml").write_text(CARD.replace("[0, 1, 2]", "[0]"))


def challenge() -> None:
    from spdebench.challenge import make_challenge, read_secret

    secret()
    trained()
    make_challenge("tiny", read_secret("SECRET"), "inputs", n=4)


def submitted() -> None:
    from spdebench.challenge import open_challenge, write_submission

    challenge()
    run = sb.open_run(next(Path("runs").glob("mean*")))
    opened = open_challenge("inputs")
    given = opened.inputs("phi41")
    write_submission("mine", opened, "card.toml", {("phi41", 0): run.predict(given.u0, given.dw)})


def exported() -> None:
    from spdebench.data.published import export_published

    data()
    export_published(
        sb.open_dataset(next(Path("data").glob("*.parquet"))), Path("flat"), name="1d_phi41_xi_8_40_.parquet"
    )


def site() -> None:
    """A site of three pages instead of all."""
    build = importlib.import_module("spdebench.report.site.build")
    build.TABLES = ()
    build.pages = lambda content: [(f"{name}.html", "<p>") for name in ("index", "a/b", "a/c")]
    main(["report", "--results", "results"])


def records() -> None:
    """Three records, one after the other, of which two are of one equation."""
    for model in ("fno", "wno", "nspde"):
        store.add("results", record(model, dataset(8, 0.0)))


COMMANDS = [
    Command("generate", lambda: None, typed("generate", "phi41", *FIELDS, "-n", "6", "--chunk", "3")),
    Command("train", data, typed("train", "fno", "data/*.parquet", *NETWORK, "--checkpoint", "0")),
    Command("evaluate", trained, typed("evaluate", "runs/mean*", "--truth", "data/*seed1*.parquet")),
    Command("predict", trained, typed("predict", "runs/mean*", "data/*seed1*.parquet", "--out=p.npy", "--overwrite")),
    Command("data card", data, typed("data", "card", "data/*.parquet", "--samples", "2", "--out", "card.md")),
    Command("data export", data, typed("data", "export", "data/*.parquet", "--out", "flat")),
    Command("data import", exported, typed("data", "import", "flat/*.parquet", "--out", "native")),
    Command("data push", described, typed("data", "push", "data/*.parquet", "--out", "published")),
    Command("model push", trained, typed("model", "push", "runs/mean*", "published")),
    Command("plot", data, typed("plot", "solution", "data/*.parquet", "--out", "p.png")),
    Command("challenge make", secret, typed(*CHALLENGE)),
    Command("challenge predict", challenge, typed(*SUBMISSION, "--overwrite")),
    Command("challenge score", submitted, typed("challenge", "score", "mine", "--seed-file", "SECRET")),
    Command("records", lambda: os.mkdir("other"), records),
    Command("report", records, site),
]
