"""Networks of a data set's participants, by the command line that BIDS Apps have in common."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from site_agent.commands.program import ALONE, app, out


class Level(StrEnum):
    """Analysis levels of a BIDS App that there are."""

    participant = "participant"


Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--participant-label",
        "--participant_label",
        help="Labels without sub-, with spaces between; all participants if not given.",
    ),
]


@app.command(name="bids-app", rich_help_panel=ALONE)
def bids_app(
    bids_dir: Annotated[Path, typer.Argument(help="BIDS data set with preprocessed images.")],
    output_dir: Annotated[
        Path, typer.Argument(help="Folder of the networks; other participants' may be there.")
    ],
    analysis_level: Annotated[Level, typer.Argument(help="Each participant separately.")],
    templates: Annotated[Path, typer.Option(help="NIfTI of maps, one for each network.")],
    more_labels: Annotated[
        list[str] | None, typer.Argument(help="Further labels of --participant-label.")
    ] = None,
    participant_label: Labels = None,
    task: Annotated[str, typer.Option(help="BIDS label of the task.")] = "rest",
    space: Annotated[
        str, typer.Option(help="BIDS label of the space of images and templates.")
    ] = "MNI152NLin2009cAsym",
    resolution: Annotated[float, typer.Option(help="Edge of a voxel of the maps in mm.")] = 4.0,
    confounds: Annotated[
        str, typer.Option(help="Columns of the confounds tables, with commas between.")
    ] = "",
    high_pass: Annotated[float | None, typer.Option(help="Lowest frequency kept, in Hz.")] = None,
    low_pass: Annotated[float | None, typer.Option(help="Highest frequency kept, in Hz.")] = None,
) -> None:
    """Write participants' own networks by templates, as a BIDS App; needs no consortium."""
    from consortium.base.formatting import count
    from site_agent.bids_app import run_participants

    del analysis_level  # there is one
    if more_labels and not participant_label:
        raise typer.BadParameter(f"{more_labels[0]} follows no --participant-label")
    labels = [*(participant_label or ()), *(more_labels or ())]
    settings: dict[str, object] = {"task": task, "space": space, "resolution": resolution}
    columns = [column for column in confounds.split(",") if column]
    settings |= {"confounds": columns, "high_pass": high_pass, "low_pass": low_pass}
    with out.console.status("0 of all participants") as shown:
        persons, skipped = run_participants(
            bids_dir,
            target=output_dir,
            templates=templates,
            settings=settings,
            labels=labels,
            tell=shown.update,
        )
    for each in skipped:
        out.print(each.detail)
    out.print(f"Networks of {count(persons, 'participant')} are in {output_dir}.")
