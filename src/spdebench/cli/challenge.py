"""``spdebench challenge``: inputs without truth, predictions for them, and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdebench.cli.output import Device, Json, check_sample_count, print_json, print_table, size
from spdebench.errors import UserError
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.challenge import Submission

app = typer.Typer(
    help="Make and enter tests whose solutions are hidden.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
SeedFile = Annotated[Path, typer.Option("--seed-file", help="File with the secret, at least 32 bytes.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing folder.")]


@app.command()
def make(
    suite: Annotated[str, typer.Argument(help="A suite, such as core.")],
    seed_file: SeedFile,
    out: Annotated[Path, typer.Option(help="New folder for the inputs and the manifest.")],
    only: Annotated[str, typer.Option(help="Only the problem with this name, or the problems of this row.")] = "",
    n: Annotated[int, typer.Option("-n", callback=check_sample_count, help="Number of inputs of each problem.")] = 200,
    seen: Annotated[
        list[int] | None,
        typer.Option(
            help="Also make each problem with only the noise modes of truncation K as input; may be repeated."
        ),
    ] = None,
    members: Annotated[
        int, typer.Option(help="Number of true solutions per input, for problems with partially seen noise.")
    ] = 32,
    overwrite: Overwrite = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Write test inputs whose solutions are hidden.

    These are initial data and noise, drawn from a secret, for the problems of a suite.
    """
    import torch

    from spdebench.challenge import make_challenge, read_secret

    torch.set_num_threads(1)
    secret = read_secret(seed_file)
    made = make_challenge(
        suite, secret, out, only=only, n=n, seen=seen or (), members=members, device=device, overwrite=overwrite
    )
    paths = [out / problem.file for problem in made.manifest.problems]
    if as_json:
        print_json({"commitment": made.manifest.commitment, "files": [str(path) for path in paths]})
        return
    for path in paths:
        typer.echo(f"{path} ({size(path.stat().st_size)})")
    typer.echo(f"SHA-256 of the secret: {made.manifest.commitment}")
    typer.echo(f"publish {out} and keep {seed_file} secret")
    typer.echo(f"next: {command('challenge predict', out, '--run RUN --card card.toml --out my-method')}")


@app.command()
def predict(
    challenge: Annotated[Path, typer.Argument(help="The folder of a challenge.")],
    runs: Annotated[list[Path], typer.Option("--run", help="A run's folder; may be repeated.")],
    card: Annotated[Path, typer.Option(help="The card, a TOML file; docs/submit.md shows one.")],
    out: Annotated[Path, typer.Option(help="New folder; its name is the name of the submission.")],
    members: Annotated[
        int, typer.Option(min=1, help="Number of members per input, for runs that can draw members of a law.")
    ] = 32,
    overwrite: Overwrite = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Write a submission with the predictions of trained runs.

    It has their predictions for the inputs of the challenge, and the card.
    """
    from spdebench.challenge import open_challenge, read_card, write_submission
    from spdebench.challenge.predict import predict_runs
    from spdebench.training import open_run

    read_card(card)
    opened = open_challenge(challenge)
    chosen = [open_run(run) for run in runs]
    predictions = predict_runs(opened, chosen, members=members, device=device, progress=None)
    folder = write_submission(out, opened, card, predictions, overwrite=overwrite)
    shapes = {f"{label}, seed {seed}": list(array.shape) for (label, seed), array in predictions.items()}
    if as_json:
        print_json({"folder": str(folder), "predictions": shapes})
        return
    for what, shape in shapes.items():
        typer.echo(f"{what}: {' x '.join(map(str, shape))}")
    typer.echo(f"{folder}: send it to the owner of the challenge, who scores it with")
    typer.echo(f"  {command('challenge score', folder, '--seed-file SECRET')}")


@app.command()
def score(
    submission: Annotated[Path, typer.Argument(help="A folder with card and predictions.")],
    seed_file: SeedFile,
    own: Annotated[
        bool, typer.Option("--own", help="The authors of the submission know the secret; the scores will say so.")
    ] = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Score a submission with the secret of the challenge.

    The true solutions are computed from the secret, and the scores are written into the submission.
    """
    import torch

    from spdebench.challenge import read_secret, score_submission

    torch.set_num_threads(1)
    found = score_submission(submission, read_secret(seed_file), own=own, device=device, progress=None)
    _show(found, submission, as_json)
    if not as_json:
        typer.echo(f"next: copy card.toml and scores.json to submissions/{found.name} and open a pull request")


@app.command()
def reproduce(
    submission: Annotated[Path, typer.Argument(help="A submission with scores.")],
    second: Annotated[Path, typer.Argument(help="A folder with scores of a second run of its command.")],
    seed_file: SeedFile,
    as_json: Json = False,
) -> None:
    """Mark a submission as reproduced by a second one.

    The scores of a second run of its command are stored; scores within 2 % count as reproduced.
    """
    from spdebench.challenge import read_secret
    from spdebench.challenge.score import reproduce as store_second_run

    _show(store_second_run(submission, second, read_secret(seed_file)), submission, as_json)


def _show(submission: Submission, folder: Path, as_json: bool) -> None:
    """Print the main score of each problem and seed of a submission."""
    rows = [
        {
            "problem": scored.problem,
            "seen": "all" if scored.seen is None else scored.seen,
            "seed": scored.seed,
            "metric": scored.metric,
            "value": scored.value,
            "low": scored.scores[scored.metric].low,
            "high": scored.scores[scored.metric].high,
            "hidden truth": scored.hidden,
            "reproduced": scored.reproduced,
        }
        for scored in submission.results
    ]
    if as_json:
        print_json({"submission": submission.name, "results": rows})
        return
    print_table(rows)
    typer.echo(f"{folder / 'scores.json'}: all metrics with intervals")


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="A submission, or a folder of submissions.")] = Path("submissions"),
    seed_file: Annotated[
        Path | None,
        typer.Option("--seed-file", help="File with the secret, to also check that the scores were not changed."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the files of submissions: names, card and scores. The exit code is 2 if anything is wrong."""
    from spdebench.challenge import read_secret
    from spdebench.challenge.check import check_submissions

    found = check_submissions(folder, None if seed_file is None else read_secret(seed_file))
    if as_json:
        print_json([{"name": each.name, "error": each.error, "notes": each.notes} for each in found])
    else:
        for each in found:
            if not each.error:
                typer.echo(f"{each.name}: good" + "".join(f"; {note}" for note in each.notes))
    wrong = [each for each in found if each.error]
    for each in wrong:
        typer.echo(f"error: {each.name}: {UserError(each.error)}", err=True)
    if wrong:
        raise typer.Exit(2)
