"""Bringing a study about: written, planned, signed, run or served."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consortium.base.command_line import AsJson
from consortium.base.formatting import count
from consortium.coordinator.commands.program import (
    STUDIES,
    Credentials,
    ExchangePlace,
    KeysFolder,
    OutFolder,
    RosterFile,
    StudyFile,
    Subjects,
    app,
    out,
    site_sizes,
    tell_result,
)
from consortium.coordinator.relay_job import FOLDER_IS, Carriage, Platform, write_relay_job
from consortium.errors import StudyError

if TYPE_CHECKING:
    from datetime import date

    from consortium.membership.roster import Roster
    from consortium.study.plan import Plan
    from consortium.study.spec import Study

ServedAt = Annotated[
    str | None,
    typer.Option(
        help="Web address under which --out is served. Prefect then links to the report there."
    ),
]
Detected = Annotated[
    Path | None,
    typer.Option(
        "--detect",
        help="glm, describe: own table of participants, whose names of columns and levels are "
        "suggested; no number of it is written.",
    ),
]
Volumes = Annotated[
    int | None,
    typer.Option(help="Volumes per subject (default: the nominal number).", min=2),
]
ANSWERS: Mapping[str, str] = {
    "name": "Short name of the study (default: the file's).",
    "title": "A line for people.",
    "sites": "Names of the sites, with commas.",
    "subjects": "Nominal number of participants, one for all sites or one for each, with commas "
    "(default: those of --roster, or 100).",
    "volumes": "Nominal number of volumes of a participant (default: 200).",
    "epsilon": "Maximum ε of a run (default: 4).",
    "delta": "δ of a run (default: 1e-5).",
    "colluding_sites": "Number of sites that may collude with the coordinator (default: 1).",
    "dropouts": "Number of sites that may fail to answer a round (default: 0).",
    "task": "BIDS task of the images (default: rest).",
    "components": "Maximum number of networks (default: 10). glm: output folder of a run whose "
    "networks are compared.",
    "outcomes": "Columns that are compared (glm) or described, as lh_*_thickness, with commas.",
    "deviation": "glm: their usual standard deviation within a site and group, if known.",
    "column": "Column of the groups of a glm or describe.",
    "levels": "The two groups, with a comma (default: control,patient).",
    "groups": "glm: participants of each group at a site, with a comma, or a table (.tsv, .csv) "
    "with the columns site and both groups, whose numbers are rounded.",
    "limits": "Low and high limit of the measured values, with a comma, or a table (.tsv, .csv) "
    "with the columns name, low and high, or 'detected' for limits from the table of --detect.",
}
"""Options of ``new-study`` that answer a question of the draft, with their help."""


def _with_answers(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each of `ANSWERS`, which its ``**answers`` takes."""
    signature = inspect.signature(command, eval_str=True)
    *own, _ = signature.parameters.values()
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, typer.Option(help=text)],
        )
        for name, text in ANSWERS.items()
    ]
    parameters = sorted([*more, *own], key=lambda each: each.kind)
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    command.__annotations__.update({each.name: each.annotation for each in more})
    return command


@app.command(name="new-study", rich_help_panel=STUDIES)
@_with_answers
def new_study_command(
    study: Annotated[Path, typer.Argument(help="Study file to write; it must not be there yet.")],
    algorithm: Annotated[str, typer.Option(help="group_ica, ica, glm or describe.")] = "group_ica",
    roster: Annotated[
        Path | None,
        typer.Option(help="Roster file, whose sites take part unless --sites is given."),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Folder with the consortium's keys, to sign the study also.")
    ] = None,
    *,
    detected: Detected = None,
    **answers: str | None,
) -> None:
    """Write a commented study file; missing options are asked for at a terminal."""
    from consortium.coordinator.new_study import new_study, questions_of
    from consortium.coordinator.new_study_tables import what_was_read
    from consortium.membership.keys import load_identity
    from consortium.membership.roster import read_roster
    from consortium.membership.signed_study import sign_study
    from consortium.space.atlas import read_names, table_of

    answers["name"] = answers["name"] or study.stem
    if detected is not None:
        _suggest(detected, algorithm, answers)
    elif answers["limits"] == "detected":
        raise StudyError("--limits detected requires the table of --detect. Add --detect TABLE.")
    if keys is not None and roster is None:
        raise StudyError("--keys requires the roster of the sites. Add --roster FILE.")
    members = None if roster is None else read_roster(roster)
    identity = None if keys is None else load_identity(keys)
    if members is not None and answers["sites"] is None:
        answers["sites"] = ",".join(members.sites)
    sizes = None if members is None else _stated_sizes(members, answers["sites"] or "")
    if answers["subjects"] is None and "subjects" in questions_of(algorithm, answers):
        answers["subjects"] = sizes
    made = new_study(study, algorithm, answers, out.ask)
    for line in what_was_read(answers):
        out.print(line)
    out.print(f"{study} is written. 'consortium plan' forecasts its result and privacy loss.")
    for file in (study.parent / view.maps_file for view in made.features if view.maps_file):
        names = ", ".join(read_names(table_of(file)).values())
        out.print(f"{table_of(file)} names the networks for the report: {names}. Edit names there.")
    _preview(made, study, planned=(answers["subjects"] or sizes) is not None)
    if members is not None and identity is not None:
        sign_study(study, members, identity.key)
        out.print("It is also signed. After an edit sign it again with 'consortium sign'.")


def _stated_sizes(members: Roster, sites: str) -> str | None:
    """Return the nominal numbers of participants that all sites of a study stated on joining."""
    sizes = [members.participants.get(name.strip()) for name in sites.split(",")]
    return ",".join(map(str, sizes)) if all(sizes) else None


def _preview(made: Study, file: Path, *, planned: bool) -> None:
    """Print the plan if numbers of participants were given, or otherwise whether it is valid."""
    from consortium.coordinator.console_tables import show_plan
    from consortium.study.spec import how_checked

    if planned:
        show_plan(_plan(file, None, None), out.console)
    else:
        out.print(how_checked(shown=made.adds_again))


@app.command(name="open-cohort", rich_help_panel=STUDIES)
def open_cohort_command(
    study: StudyFile,
    folder: Annotated[
        Path, typer.Argument(help="BIDS data set of the open cohort, with preprocessed images.")
    ],
    site_column: Annotated[
        str, typer.Option(help="Column of participants.tsv with each participant's site.")
    ] = "site",
    source: Annotated[
        str | None,
        typer.Option(
            help="Origin and terms of the data (default: name, license and DOI "
            "of dataset_description.json)."
        ),
    ] = None,
) -> None:
    """Write the file that a study names as analysis.open, from participants whose data are open."""
    from consortium.coordinator.open_cohort import make_open_cohort
    from consortium.coordinator.progress_bar import PersonsBar

    with PersonsBar(out.console) as bar:
        made = make_open_cohort(study, folder, column=site_column, terms=source, tell=bar)
    for each in made.skipped:
        out.print(f"WARNING: {each.detail}")
    size = made.cohort.values.shape[1]
    sites = len(set(made.cohort.sites.tolist()))
    out.print(
        f"{made.path} has {made.cohort.persons} participants of {count(sites, 'site')}, each with "
        f"{made.cohort.values.shape[2]} directions in a basis of {size} maps."
    )
    out.print("Sign the study again, and send this file with it: 'consortium sign'.")


@app.command(rich_help_panel=STUDIES)
def sign(study: StudyFile, roster: RosterFile, keys: KeysFolder) -> None:
    """Print a study's forecast and sign it for its sites: this file, this mask, these keys."""
    from consortium.membership.keys import load_identity
    from consortium.membership.roster import read_roster
    from consortium.membership.signed_study import sign_study, signature_path
    from consortium.study.nominal import check_participants, differing_sizes
    from consortium.study.outlook import Outlook
    from consortium.study.reader import read_study

    members = read_roster(roster)
    key = load_identity(keys).key
    members.check_owner(key)  # before a good signature is overwritten
    asked = read_study(study)
    check_participants(asked, str(study))
    outlook = Outlook(_plan(study, None, None))  # a study that can't be planned is not signed
    signed = sign_study(study, members, key)
    out.print(next(outlook.sentences()))
    for sentence in differing_sizes(asked, members.participants):
        out.print(f"WARNING: {sentence}")
    sites = ", ".join(signed.study.sites)
    out.print(
        f"{signature_path(study)} is made. Send it with the study, the files that it names, "
        f"and the roster to {sites}."
    )


@app.command(rich_help_panel=STUDIES)
def plan(
    study: StudyFile,
    subjects: Subjects = None,
    volumes: Volumes = None,
    details: Annotated[
        bool, typer.Option("--details", help="List the releases and their noise.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Forecast a study's findings, privacy loss and releases, before any data are read."""
    from consortium.coordinator.console_tables import show_plan
    from consortium.study.outlook import Outlook

    made = _plan(study, subjects, volumes)
    if as_json:
        out.print_json(Outlook(made).as_json())
    else:
        show_plan(made, out.console, details=details)


@app.command(name="design", rich_help_panel=STUDIES)
def design_command(
    studies: Annotated[list[Path], typer.Argument(help="Study files (YAML), as they are meant.")],
    folder: OutFolder,
    subjects: Subjects = None,
    volumes: Volumes = None,
    runs: Annotated[int, typer.Option(help="Runs of each study a year.", min=1)] = 1,
    years: Annotated[int, typer.Option(help="Years of the ledgers.", min=1, max=20)] = 5,
) -> None:
    """Write forecasts of a study and similar ones, and their charges to every hospital's ledger."""
    from consortium.coordinator.design import Assumed, design_studies
    from consortium.opened_study import open_study
    from consortium.study.reader import read_study

    assumed = []
    for path in studies:
        study = read_study(path)
        sizes = site_sizes(subjects, study)
        extent = open_study(study, path.parent).space.extent
        assumed.append(Assumed(study, extent, sizes, _volumes(study, volumes)))
    page, designs = design_studies(folder, assumed, runs, years)
    for each in designs:
        for sentence in filter(None, (each.outlook.withheld, *each.sentences)):
            out.print(f"{each.assumed.study.study}: {sentence}")
    out.print(f"The page is {page}, and its numbers are in {page.with_suffix('.json').name}.")


@app.command(name="dpia", rich_help_panel=STUDIES)
def dpia_command(
    study: StudyFile,
    folder: OutFolder,
    subjects: Subjects = None,
    volumes: Volumes = None,
) -> None:
    """Fill a data protection impact assessment from a study; decisions of people stay open."""
    from consortium.coordinator.dpia import write_dpia

    made = _plan(study, subjects, volumes)
    page, text = write_dpia(folder, made, _volumes(made.study, volumes))
    out.print(f"The assessment is {page}. Answer its questions in {text.name}, the file to edit.")


@app.command(rich_help_panel=STUDIES)
def run(
    study: StudyFile,
    roster: RosterFile,
    exchange: ExchangePlace,
    keys: KeysFolder,
    folder: OutFolder,
    credentials: Credentials = None,
    url: ServedAt = None,
    resume: Annotated[
        str | None,
        typer.Option(
            help="Name of a run whose output folder is lost. It is resumed from the exchange."
        ),
    ] = None,
) -> None:
    """Carry a study out; after a crash the same command continues it."""
    from consortium.coordinator.run import RunFiles, run_study
    from consortium.engine.clock import Clock

    files = RunFiles(
        study=study,
        roster=roster,
        exchange=exchange,
        keys=keys,
        out=folder,
        credentials=credentials,
        url=url,
        resumed=resume,
    )
    tell_result(run_study(files, Clock(), out.console), folder)


@app.command(rich_help_panel=STUDIES)
def end(
    study: StudyFile,
    exchange: ExchangePlace,
    keys: KeysFolder,
    run_name: Annotated[
        str, typer.Option("--run", help="Name of the run to end, such as rest-2026-0001.")
    ],
    credentials: Credentials = None,
) -> None:
    """Give up a run that is open on the exchange, and inform its sites.

    Stop the command that carries it out first. Rounds that were answered stay charged.
    """
    from consortium.coordinator.open_runs import end_run
    from consortium.exchange import open_exchange
    from consortium.membership.keys import load_identity
    from consortium.study.reader import read_study

    place = open_exchange(exchange, credentials)
    end_run(place, read_study(study).study, run_name, load_identity(keys))
    out.print(f"{run_name} is given up, and its sites are informed.")


@app.command(name="deploy", rich_help_panel=STUDIES)
def deploy_command(
    study: StudyFile,
    cron: Annotated[str, typer.Option(help="Times of runs, such as '0 20 * * fri'.")],
    roster: RosterFile,
    exchange: ExchangePlace,
    keys: KeysFolder,
    folder: OutFolder,
    credentials: Credentials = None,
    url: ServedAt = None,
    timezone: Annotated[str, typer.Option(help="Time zone of --cron.")] = "UTC",
    dry_run: Annotated[
        bool, typer.Option(help="Report only whether the sites' approvals cover the next run.")
    ] = False,
    on_demand: Annotated[
        bool,
        typer.Option("--on-demand", help="Open runs that are ordered on the server as well."),
    ] = False,
    again: Annotated[
        float,
        typer.Option(
            "--again",
            help="Hours for which a date is tried again if too few sites were there, every 15 "
            "minutes.",
            min=0.0,
            max=168.0,
        ),
    ] = 6.0,
) -> None:
    """Run a study by a schedule, as a deployment on the consortium's Prefect server."""
    from flows import need_prefect

    need_prefect()
    from consortium.coordinator.deploy import (
        DueRuns,
        deploy,
        new_schedule,
        not_covered,
        settings_folder,
    )
    from consortium.coordinator.run import RunFiles
    from consortium.engine.clock import Clock
    from flows.deployment import check_schedule

    files = RunFiles(
        study=study,
        roster=roster,
        exchange=exchange,
        keys=keys,
        out=folder,
        credentials=credentials,
        url=url,
    )
    record = new_schedule(files, cron, timezone)
    check_schedule(record.cron, record.timezone)
    if not dry_run:
        due = DueRuns(settings_folder(), _today, Clock(), out.console)
        deploy(record, due, on_demand=on_demand, again=timedelta(hours=again))
        return
    reasons = not_covered(record, _today())
    out.print("\n".join(reasons.values()) or "Enough approvals cover the next run.")
    if reasons:
        raise SystemExit(1)


@app.command(name="relay", rich_help_panel=STUDIES)
def relay_command(
    platform: Annotated[Platform, typer.Argument(help="Platform that the hospitals already run.")],
    study: StudyFile,
    output: Annotated[Path, typer.Option(help="Folder to write; it must not be there yet.")],
    clients: Annotated[
        str | None,
        typer.Option(help="The sites' names on the platform, with commas (default: the study's)."),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            help="Seconds that a party waits for something to send (default: 2 or 60).", min=0.1
        ),
    ] = None,
    hours: Annotated[float, typer.Option(help="Hours after which the job ends.", min=0.01)] = 24.0,
    installed: Annotated[
        bool,
        typer.Option(
            "--installed", help="Send no code. For nvflare, if all parties have cape-relay."
        ),
    ] = False,
) -> None:
    """Write a job by which a platform carries a study's messages; keys and data stay outside."""
    from consortium.study.reader import read_study

    each = 60.0 if platform is Platform.vantage6 else 2.0
    names = tuple(name.strip() for name in clients.split(",")) if clients else ()
    how = Carriage(names, each if wait is None else wait, hours, not installed)
    write_relay_job(read_study(study), platform, how, output)
    out.print(f"{output} is written; each party names its folder {FOLDER_IS[platform]}.")


@app.command(rich_help_panel=STUDIES)
def schema() -> None:
    """Print the JSON schema of the study file."""
    from consortium.study.reader import study_schema

    out.print_json(study_schema())


def _volumes(study: Study, given: int | None) -> int:
    """Return the volumes of a participant: the given number, or the nominal one."""
    return given or study.volumes or study.data.volumes or 100


def _today() -> date:
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


def _suggest(table: Path, algorithm: str, given: dict[str, str | None]) -> None:
    """Fill in the names that a table suggests, where none were given."""
    from consortium.coordinator.detect import PUBLIC, detect

    if algorithm not in ("glm", "describe"):
        raise StudyError(
            f"--detect suggests columns of a glm or describe, got --algorithm {algorithm[:40]}. "
            "Choose one of the two, or leave --detect out."
        )
    found = detect(table)
    for line in found.lines():
        out.print(line)
    if given["limits"] == "detected":
        given["limits"] = str(table)
    else:
        out.print(PUBLIC)
    column = given["column"]
    if algorithm == "describe":
        suggested = found.described(column)
    else:
        suggested = found.suggested() if column is None else found.of(column)
    given.update({name: said for name, said in suggested.items() if given[name] is None})


def _plan(study: Path, subjects: str | None, volumes: int | None) -> Plan:
    from consortium.opened_study import open_study
    from consortium.study.plan import make_plan
    from consortium.study.reader import read_study
    from consortium.study.slots import check_slots

    parsed = read_study(study)
    sizes = site_sizes(subjects, parsed)
    samples = tuple(size * _volumes(parsed, volumes) for size in sizes)
    extent = open_study(parsed, study.parent).space.extent
    planned = make_plan(parsed, extent.shape(sizes, samples, parsed.privacy.unit))
    check_slots(parsed, planned.shape, [stage.release for stage in planned.stages])
    return planned
