"""Trying things out on this machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import AsJson
from consortium.coordinator.commands.program import (
    TRIALS,
    OutFolder,
    StudyFile,
    app,
    out,
    tell_result,
)
from consortium.errors import StudyError


@app.command(rich_help_panel=TRIALS)
def simulate(
    study: StudyFile,
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="name=FOLDER, a BIDS data set for each site; or one FOLDER that has all, by name.",
        ),
    ],
    folder: OutFolder,
    seed: Annotated[int, typer.Option(help="Decides every random number.")] = 0,
) -> None:
    """Run all sites in this process, on data you may see; scheme 'none' is allowed here only."""
    from consortium.coordinator.simulate import simulate_study

    tell_result(simulate_study(study, _folders(data, study), folder, seed, out.console), folder)


@app.command(rich_help_panel=TRIALS)
def audit(
    trials: Annotated[int, typer.Option(help="Trials a row.", min=1000)] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Try to refute the privacy formulas: the strongest adversary against the real code."""
    import secrets

    from consortium.coordinator.console_tables import show_audit
    from consortium.privacy.audit import audit_scheme

    settings = [("cape", s, c, k) for s, c in ((4, 1), (10, 3), (30, 9)) for k in (1.0, 1e4)]
    settings += [(m, s, c, 1.0) for s, c in ((4, 1), (10, 3)) for m in ("secure-sum", "local")]
    found = [audit_scheme(*row, trials, lambda: secrets.token_bytes(32)) for row in settings]
    if as_json:
        out.print_json([vars(f) | {"upheld": f.upheld} for f in found])
    else:
        show_audit(found, out.console)
    if not all(finding.upheld for finding in found):
        raise SystemExit(1)


@app.command(rich_help_panel=TRIALS)
def demo(
    folder: OutFolder = Path("build/demo"),
    subjects: Annotated[
        int, typer.Option(help="Participants of a hospital, in the mean.", min=4)
    ] = 100,
    seed: Annotated[int, typer.Option(help="Decides the simulated scans.")] = 1,
    real: Annotated[
        list[Path] | None,
        typer.Option(help="4-D NIfTI to split over the hospitals instead of simulated scans."),
    ] = None,
    full_brain: Annotated[bool, typer.Option(help="One study of scans of 70,000 voxels.")] = False,
) -> None:
    """Four hospitals on this machine, end to end: networks, and where patients differ in them."""
    from consortium.coordinator.demo.run import run_demo

    run_demo(
        folder,
        subjects=subjects,
        seed=seed,
        real=tuple(real or ()),
        console=out.console,
        full_brain=full_brain,
    )


def _folders(pairs: list[str], study: Path) -> dict[str, Path]:
    if len(pairs) == 1 and Path(pairs[0]).is_dir():
        from consortium.study.reader import read_study

        return {site: Path(pairs[0], site) for site in read_study(study).sites}
    folders = {}
    for pair in pairs:
        name, _, folder = pair.partition("=")
        if not folder:
            raise StudyError(f"--data {pair!r} names no folder; write --data site=FOLDER.")
        folders[name] = Path(folder)
    return folders
