"""The command line of the coordinator: ``consortium``."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from consortium.algorithms.base import Shape
from consortium.engine.wire import Clock
from consortium.errors import ConsortiumError, StudyError
from consortium.exchange import DirectoryExchange
from consortium.identity import create_identity
from consortium.plan import Plan, make_plan
from consortium.privacy.audit import Finding, examine
from consortium.privacy.gdp import epsilon_of
from consortium.privacy.loss import printed_loss
from consortium.progress import read_run, standing
from consortium.report.grid import study_grid
from consortium.report.privacy import PrivacyReport, read_privacy_report
from consortium.report.statement import statement, summary
from consortium.study import load_study

app = typer.Typer(
    help="Studies over several hospitals whose data stay where they are.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
out = Console(log_path=False, width=None if sys.stdout.isatty() else 140)
StudyFile = Annotated[Path, typer.Argument(help="Study file (YAML).")]
OutFolder = Annotated[Path, typer.Option("--out", help="Output folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]


@app.command()
def init(folder: Annotated[Path, typer.Argument(help="Folder for the centre's keys.")]) -> None:
    """Make the centre's keys."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = create_identity(folder, secrets.token_bytes(64))
    out.print(f"centre: {identity.public.hex()}", soft_wrap=True)


@app.command()
def plan(
    study: StudyFile,
    subjects: Annotated[
        str, typer.Option(help="Subjects per site: one number, or one per site with commas.")
    ],
    volumes: Annotated[int, typer.Option(help="Volumes per subject.", min=2)] = 100,
    as_json: AsJson = False,
) -> None:
    """Work out what a study would cost and release, before any data is read."""
    parsed = load_study(study)
    grid = study_grid(parsed.data, study.parent)
    sizes = _sizes(subjects, len(parsed.sites))
    samples = tuple(size * volumes for size in sizes)
    shape = Shape(grid.features, sizes, samples, parsed.privacy.unit)
    made = make_plan(parsed, shape)
    if as_json:
        sys.stdout.write(json.dumps(_plan_numbers(made), indent=1) + "\n")
    else:
        _show_plan(made)


@app.command()
def run(
    study: StudyFile,
    roster: Annotated[Path, typer.Option(help="Roster file.")],
    exchange: Annotated[Path, typer.Option(help="Directory that the sites share.")],
    keys: Annotated[Path, typer.Option(help="Folder with the centre's keys.")],
    folder: OutFolder,
) -> None:
    """Carry a study out; after a crash the same command goes on where it stopped."""
    from consortium.conduct import Errand, carry_out

    _tell(carry_out(Errand(study, roster, exchange, keys, folder), Clock(), out), folder)


@app.command()
def simulate(
    study: StudyFile,
    data: Annotated[
        list[str], typer.Option("--data", help="name=FOLDER, a BIDS data set for each site.")
    ],
    folder: OutFolder,
    seed: Annotated[int, typer.Option(help="Decides every random number.")] = 0,
) -> None:
    """Run all sites in this process, on data you may see; scheme 'none' is allowed here only."""
    from consortium.conduct import simulate_study

    _tell(simulate_study(study, _folders(data), folder, seed, out), folder)


@app.command()
def status(
    folder: OutFolder,
    study: StudyFile,
    exchange: Annotated[Path, typer.Option(help="Directory that the sites share.")],
) -> None:
    """Say what a run is waiting for."""
    record = read_run(folder)
    if record is None:
        raise StudyError(f"{folder} holds no run; start one with 'consortium run'.")
    found = standing(DirectoryExchange(exchange), record.run, load_study(study).sites)
    waiting = f", waiting for {', '.join(found.waiting)}" if found.waiting else ""
    out.print(f"{record.run}: {found.step}{waiting}")


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="Output folder of a run.")]) -> None:
    """Print the privacy statement of a finished study."""
    for line in statement(read_privacy_report(folder / "privacy_report.json")):
        out.print(line + "\n")


@app.command()
def audit(
    trials: Annotated[int, typer.Option(help="Trials a row.", min=1000)] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Try to refute the privacy formulas: the strongest adversary against the real code."""
    settings = [("cape", s, c, k) for s, c in ((4, 1), (10, 3), (30, 9)) for k in (1.0, 1e4)]
    settings += [(m, s, c, 1.0) for s, c in ((4, 1), (10, 3)) for m in ("secure-sum", "local")]
    found = [examine(*row, trials, lambda: secrets.token_bytes(32)) for row in settings]
    if as_json:
        sys.stdout.write(json.dumps([vars(f) | {"upheld": f.upheld} for f in found], indent=1))
    else:
        _show_audit(found)
    if not all(finding.upheld for finding in found):
        raise SystemExit(1)


@app.command()
def demo(
    folder: OutFolder = Path("build/demo"),
    subjects: Annotated[int, typer.Option(help="Subjects per hospital.", min=4)] = 100,
    seed: Annotated[int, typer.Option(help="Decides the made-up scans.")] = 1,
    real: Annotated[
        list[Path] | None,
        typer.Option(help="4-D NIfTI to split over the hospitals instead of made-up scans."),
    ] = None,
) -> None:
    """Four hospitals on this machine, end to end."""
    from consortium.demo import run_demo

    run_demo(folder, subjects=subjects, seed=seed, real=tuple(real or ()), console=out)


@app.command()
def schema() -> None:
    """Print the JSON schema of the study file."""
    from consortium.study import study_schema

    sys.stdout.write(json.dumps(study_schema(), indent=1) + "\n")


def _tell(report: PrivacyReport, folder: Path) -> None:
    out.print(f"Output: {folder} (open report.html)", soft_wrap=True)
    out.print(summary(report), soft_wrap=True)


def _sizes(text: str, sites: int) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise StudyError(f"--subjects {text!r} is not a list of numbers; write 40,60.") from error
    if len(numbers) == 1:
        numbers *= sites
    if len(numbers) != sites or min(numbers) < 1:
        raise StudyError(f"--subjects {text!r} must give one positive number for {sites} sites.")
    return numbers


def _folders(pairs: list[str]) -> dict[str, Path]:
    folders = {}
    for pair in pairs:
        name, _, folder = pair.partition("=")
        if not folder:
            raise StudyError(f"--data {pair!r} names no folder; write --data site=FOLDER.")
        folders[name] = Path(folder)
    return folders


def _plan_numbers(made: Plan) -> dict[str, object]:
    delta = made.study.privacy.delta
    return {
        "features": made.shape.features,
        "rounds": made.rounds,
        "unit": made.shape.unit,
        "coalition": {"mu": made.mu, "epsilon": made.epsilon},
        "outsider": {"mu": made.outsider_mu, "epsilon": epsilon_of(made.outsider_mu, delta)},
        "stages": [
            {
                "stage": stage.name,
                "statistic": stage.release.statistic,
                "rounds": stage.release.rounds,
                "entries": stage.release.entries,
                "bound": stage.release.bound.norm,
                "sigma_aggregate": stage.mechanism.noise.aggregate(),
                "bits": stage.mechanism.lattice.bits,
                "message_bytes": stage.message_bytes,
            }
            for stage in made.stages
        ],
    }


def _show_plan(made: Plan) -> None:
    table = Table("stage", "statistic", "rounds", "numbers", "bound", "noise σ", "bytes a round")
    for s in made.stages:
        r, sigma = s.release, s.mechanism.noise.aggregate()
        row = (r.stage, r.statistic, r.rounds, r.entries, f"{r.bound.norm:.3g}", f"{sigma:.3g}")
        table.add_row(*map(str, row), str(s.message_bytes))
    out.print(table)
    privacy = made.study.privacy
    seen = epsilon_of(made.outsider_mu, privacy.delta)
    out.print(
        f"ε = {made.epsilon:.4g} against the centre and {privacy.colluding_sites} colluding sites, "
        f"{seen:.4g} against outsiders (δ = {privacy.delta:g}, unit {privacy.unit}, "
        f"{made.shape.features} voxels)"
    )


def _show_audit(found: list[Finding]) -> None:
    table = Table(
        "scheme", "S", "S_C", "κ", "promised μ", "empirical μ", "±", "verdict", "printed μ"
    )
    for f in found:
        printed = printed_loss(f.sites, f.colluding) if (f.scheme, f.boost) == ("cape", 1) else None
        refuted = printed is not None and f.empirical > printed + 4 * f.error
        table.add_row(
            f.scheme,
            str(f.sites),
            str(f.colluding),
            f"{f.boost:g}" if f.scheme == "cape" else "",
            f"{f.promised:.4f}",
            f"{f.empirical:.4f}",
            f"{f.error:.4f}",
            "upheld, tight" if f.upheld and f.tight else "upheld" if f.upheld else "REFUTED",
            "" if printed is None else f"{printed:.4f} {'refuted' if refuted else 'stands'}",
        )
    out.print(table)


def main() -> None:
    """Entry point: an expected error is one sentence and exit code 1."""
    try:
        app()
    except ConsortiumError as error:
        sys.stderr.write(f"consortium: {error}\n")
        sys.exit(1)
