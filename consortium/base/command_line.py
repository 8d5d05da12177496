"""Common parts of the command lines of both programs; imports nothing heavy.

``--help`` and ``--version`` must answer at once. So a command imports its modules when it runs
(``tests/end_to_end/test_command_lines.py`` lists the imports of ``--help``).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from consortium import __version__
from consortium.base.formatting import begun
from consortium.base.printable import make_printable
from consortium.base.stopping import ended_by_signals
from consortium.errors import ConfigurationError, ConsortiumError

if TYPE_CHECKING:
    from rich.console import Console

    from consortium.base.checkup import Check

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Metrics = Annotated[
    Path | None,
    typer.Option("--metrics", help="File to write for Prometheus's node exporter (*.prom)."),
]
_WIDTH = 140  # characters of a line that is not printed on a terminal


class Terminal:
    """Where a program writes for people, as wordy as they asked for."""

    def __init__(self) -> None:
        self.quiet = self.verbose = False

    @cached_property
    def console(self) -> Console:
        """The terminal, or the file that replaces it."""
        from rich.console import Console

        # Without markup: brackets in a user's text are text.
        width = None if sys.stdout.isatty() else _WIDTH
        return Console(markup=False, log_path=False, width=width, quiet=self.quiet)

    def print(self, text: str) -> None:
        """Print a line for people, which a long path does not break."""
        self.console.print(text, soft_wrap=True)

    @property
    def ask(self) -> Callable[[str, str], str] | None:
        """Function that asks a question with a default answer; None without a terminal."""
        if not sys.stdin.isatty():
            return None
        return lambda question, usual: str(typer.prompt(question, default=usual))

    def confirm(self, question: str, without: str) -> None:
        """Ask for a confirmation.

        Raises ConfigurationError if the user declines or the input is not a terminal. ``without``
        states the remedy for the latter.
        """
        if not sys.stdin.isatty():
            raise ConfigurationError(f"A terminal is required for this question. {begun(without)}.")
        if not typer.confirm(question):
            raise ConfigurationError("Nothing was done, because the answer was no.")

    def print_json(self, content: object) -> None:
        """Print JSON, also if the program was asked to be quiet."""
        sys.stdout.write(json.dumps(content, indent=1) + "\n")

    def print_checks(
        self, checks: Sequence[Check], as_json: bool, metrics: Path | None = None
    ) -> None:
        """Print the results of checks; the program's exit code is 1 if one failed.

        Parameters
        ----------
        metrics : Path, optional
            File for Prometheus's node exporter, which every user of the machine may read.
        """
        if metrics is not None:
            from consortium.base.checkup import write_metrics

            write_metrics(metrics, Path(sys.argv[0]).name, checks)
        if as_json:
            self.print_json([asdict(check) for check in checks])
        else:
            self.print("\n".join(check.line for check in checks))
        if any(check.state == "fail" for check in checks):
            raise SystemExit(1)


class _Headed(TyperGroup):
    """Commands under their headings, in plain text: to draw boxes takes three times as long."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help's list of commands."""
        under: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            heading = str(getattr(command, "rich_help_panel", None) or "Commands")
            under.setdefault(heading, []).append((name, command.get_short_help_str(_WIDTH)))
        for heading, rows in under.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{__version__}\n")
        raise typer.Exit


def program(help_text: str, terminal: Terminal) -> typer.Typer:
    """Make a program's command line, with the options that come before any command."""
    app = typer.Typer(
        cls=_Headed,
        help=help_text,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option(
                "--version", help="Print the version.", callback=_show_version, is_eager=True
            ),
        ] = False,
        verbose: Annotated[
            bool, typer.Option("--verbose", "-v", help="Show where an error came from.")
        ] = False,
        quiet: Annotated[
            bool, typer.Option("--quiet", "-q", help="Print results and errors only.")
        ] = False,
    ) -> None:
        del version
        terminal.verbose = verbose
        terminal.quiet = quiet
        terminal.__dict__.pop(
            "console", None
        )  # an earlier command in this process may have left one

    return app


_BLAS_PATIENCE = "20"
"""OpenBLAS's threads spin for so long after a product, as a power of two of clock ticks: half a
millisecond. By default it is twenty, in every round, while others on the machine wait."""


def run_program(name: str, app: Callable[[], Any], terminal: Terminal) -> None:
    """Run a command line: an expected error is one sentence and exit code 1."""
    make_printable()
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _BLAS_PATIENCE)  # read when NumPy is imported
    try:
        with ended_by_signals(name):
            app()
    except ConsortiumError as error:
        if terminal.verbose:
            import traceback

            traceback.print_exception(error)
        sys.stderr.write(f"{name}: {error}\n")
        sys.exit(1)
