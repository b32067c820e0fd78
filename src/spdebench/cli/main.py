"""The command ``spdebench``: it collects the subcommands; a user's mistake is one line and exit code 2."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from spdebench.cli import (
    bench,
    challenge,
    compare,
    data,
    doctor,
    evaluate,
    findings,
    generate,
    leaderboard,
    merge,
    model,
    plot,
    predict,
    report,
    reproduce,
    results,
    show,
    status,
    suite,
    sweep,
    table,
    train,
)
from spdebench.engines import is_out_of_memory, keep_freed_memory
from spdebench.errors import AliasingWarning, DamagedWarning, NoiseWarning, RenamedWarning, UserError, one_line
from spdebench.interrupts import exit_code
from spdebench.registry import WITH, extend, mistake_in_file
from spdebench.version import __version__

app = typer.Typer(
    name="spdebench",
    help="The benchmark for learning stochastic PDEs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("list")(show.list_names)
app.command("show")(show.show)
app.command("generate")(generate.generate)
app.add_typer(data.app, name="data")
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("predict")(predict.predict)
app.add_typer(model.app, name="model")
app.command("sweep")(sweep.sweep)
app.command("table")(table.table)
app.command("reproduce")(reproduce.reproduce)
app.command("merge")(merge.merge)
app.command("suite")(suite.suite)
app.add_typer(challenge.app, name="challenge")
app.command("leaderboard")(leaderboard.leaderboard)
app.command("status")(status.status)
app.command("plot")(plot.plot)
app.command("report")(report.report)
app.command("results")(results.results)
app.command("findings")(findings.findings)
passed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command("bench", context_settings=passed_on, add_help_option=False)(bench.bench)
app.command("doctor")(doctor.doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"spdebench {__version__}")
        raise typer.Exit


@app.callback()
def common(
    files: Annotated[
        list[str] | None,
        typer.Option("--with", help="A Python file that declares your own equation, model, metric, scheme or table."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """The benchmark for learning stochastic PDEs."""
    WITH[:] = files or ()
    extend(WITH)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; it always ends with an exit code."""
    keep_freed_memory()
    warnings.showwarning = _one_line  # type: ignore[assignment]
    warnings.simplefilter("always", RenamedWarning)
    words = sys.argv[1:] if arguments is None else arguments
    try:
        _check_text(words)
        code = app(with_first(words), standalone_mode=False)
    except UserError as error:
        _fail(_option_for(error.unknown_name, words) or str(error))
    except KeyboardInterrupt:
        interrupted()
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:  # a name that is too long, a folder that may not be read
        _fail(one_line(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"))
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a subcommand: the help is the message
            sys.stderr.write(f"{error.format_message().rstrip()}\n")  # type: ignore[attr-defined]
            sys.exit(2)
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # errors of the parser
            _fail(_parsing(error, words))
        if type(error).__name__ == "Abort":  # the parser's name for Ctrl-C
            interrupted()
        if is_out_of_memory(error):
            _fail("out of memory; use a smaller --chunk or batch_size, or fewer --workers")
        if mistake := mistake_in_file(error):
            _fail(one_line(mistake))
        raise
    if code == 130:  # the parser has caught Ctrl-C itself
        interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _check_text(words: Sequence[str]) -> None:
    """Refuse names of files and folders that are not UTF-8: they can be neither printed nor written into files."""
    for word in (*words, os.getcwd()):
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(word).decode(errors="replace")
            raise UserError(f"the name '{shown}' is not UTF-8; rename the file or folder") from None


def with_first(words: Sequence[str]) -> list[str]:
    """The words with every ``--with FILE`` moved before the subcommand."""
    files: list[str] = []
    others: list[str] = []
    left = list(words)
    while left and left[0] != "--":
        word = left.pop(0)
        if word == "--with":
            if not left:
                raise UserError("--with takes a Python file that declares classes")
            files += [word, left.pop(0)]
        else:
            (files if word.startswith("--with=") else others).append(word)
    return [*files, *others, *left]


def interrupted() -> NoReturn:
    """End after Ctrl-C or another signal, in one line."""
    sys.stderr.write("\ninterrupted; finished work is kept, and the same command continues\n")
    sys.exit(exit_code())


def _parsing(error: Any, words: Sequence[str]) -> str:
    """The parser's message; also what to do if several files were given to a command that takes one, or if a field was
    given as an option."""
    message = " ".join(error.format_message().split())
    if "unexpected extra argument" in message and ".parquet" in message:
        return f"{message}; this command takes one dataset file: choose one of them"
    takes_fields = any("KEY=VALUE" in str(each.metavar) for each in _command_of(words).params)
    if type(error).__name__ == "NoSuchOption" and takes_fields:
        return f"{message.rstrip('.')}; fields are given without dashes: {error.option_name.lstrip('-')}=VALUE"
    return message


def _option_for(key: str, words: Sequence[str]) -> str:
    """What to type if a word ``key=value`` should have been an option of the command; empty if it should not."""
    given = next((word for word in words if key and word.startswith(f"{key}=")), None)
    if given is None:
        return ""
    dashes = {option for each in _command_of(words).params for option in each.opts if option.lstrip("-") == key}
    value = given.partition("=")[2]
    return f"'{key}' is an option of this command, not a field: {min(dashes)} {value}" if dashes else ""


def _command_of(words: Sequence[str]) -> Any:
    """The command that the words call, as far as they name one."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(2)


def _one_line(message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a warning in one line; a warning of another package with its file."""
    ours = issubclass(category, AliasingWarning | DamagedWarning | NoiseWarning | RenamedWarning)
    origin = "" if ours else f" ({filename}:{lineno})"
    sys.stderr.write(f"warning: {message}{origin}\n")


if __name__ == "__main__":
    main()
