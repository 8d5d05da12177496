"""The command line of the coordinator: ``consortium``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consortium.command_line import AsJson, Terminal, program, run_program
from consortium.errors import StudyError

if TYPE_CHECKING:
    from datetime import date

    from consortium.report.privacy_report import PrivacyReport
    from consortium.study.plan import Plan

out = Terminal()
app = program(
    "Studies over several hospitals whose data stay where they are. A consortium begins with "
    "init and admit; a study goes through new-study, plan, sign, run and report.",
    out,
)
MEMBERS, STUDIES, TRIALS = "Members", "A study", "Trying out"  # headings of the help
StudyFile = Annotated[Path, typer.Argument(help="Study file (YAML).")]
RosterFile = Annotated[Path, typer.Option(help="Roster file, roster.yaml of 'init'.")]
KeysFolder = Annotated[Path, typer.Option(help="Folder with the consortium's keys, of 'init'.")]
ExchangePlace = Annotated[
    str, typer.Option(help="What the sites share: a directory, s3://… or sftp://…")
]
Credentials = Annotated[
    Path | None, typer.Option(help="File with the centre's credentials for the exchange.")
]
OutFolder = Annotated[Path, typer.Option("--out", help="Output folder.")]


@app.command(rich_help_panel=MEMBERS)
def init(
    folder: Annotated[Path, typer.Argument(help="Folder for the centre's keys.")],
    exchange: Annotated[
        Path | None, typer.Option(help="A directory for the messages, which is made.")
    ] = None,
) -> None:
    """Make a consortium: its keys and an empty roster."""
    import secrets

    from consortium.files.atomic import make_folder
    from consortium.membership.keys import create_identity
    from consortium.membership.roster_file import found_roster, save_roster

    make_folder(folder)
    identity = create_identity(folder, secrets.token_bytes(64))
    roster = folder / "roster.yaml"
    save_roster(roster, found_roster(identity.public), identity.key)
    if exchange is not None:
        make_folder(exchange)
        out.print(f"Messages shall lie in {exchange}; let every party read and add there.")
    out.print(f"The keys are in {folder}, and the roster is {roster}.")
    out.print("Tell every site this key of the consortium:")
    out.print(identity.public.hex())


@app.command(rich_help_panel=MEMBERS)
def admit(
    requests: Annotated[list[Path], typer.Argument(help="Files that 'site-agent join' wrote.")],
    roster: RosterFile,
    keys: KeysFolder,
    lost_key: Annotated[
        bool, typer.Option(help="Accept a new key that the site's old one did not sign.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="The fingerprints were compared; don't ask.")
    ] = False,
) -> None:
    """Put sites on the roster, once their fingerprints were compared by telephone."""
    from consortium.membership.admission import admit as take_up
    from consortium.membership.admission import read_request
    from consortium.membership.keys import load_identity
    from consortium.membership.roster_file import fingerprint, read_roster, save_roster

    members, key = read_roster(roster), load_identity(keys).key
    members.check_owner(key)
    for path in requests:
        request = read_request(path)
        out.print(f"{request.site}: {fingerprint(request.key)}")
        if not (yes or typer.confirm("Did the site read out this fingerprint?")):
            raise StudyError(f"{request.site} was not admitted; ask it for its fingerprint.")
        members = take_up(members, request, lost_key=lost_key)
    save_roster(roster, members, key)
    out.print(f"The roster has {len(members.sites)} sites, serial number {members.serial}.")


@app.command(rich_help_panel=MEMBERS)
def remove(
    site: Annotated[str, typer.Argument(help="Name of the site.")],
    roster: RosterFile,
    keys: KeysFolder,
) -> None:
    """Take a site off the roster; studies that name it must be signed anew without it."""
    from consortium.membership.keys import load_identity
    from consortium.membership.roster_file import read_roster, save_roster

    members = read_roster(roster).without_site(site)
    save_roster(roster, members, load_identity(keys).key)
    out.print(f"{site} is off the roster, serial number {members.serial}.")


@app.command(rich_help_panel=MEMBERS)
def rotate(
    roster: RosterFile,
    keys: KeysFolder,
    new: Annotated[Path, typer.Option(help="New folder for the new keys.")],
) -> None:
    """Give the consortium new keys, vouched for by the old ones."""
    import secrets

    from consortium.files.atomic import make_folder
    from consortium.membership.keys import create_identity, load_identity
    from consortium.membership.roster_file import read_roster, save_roster

    members, old = read_roster(roster), load_identity(keys).key
    members.check_owner(old)
    make_folder(new)
    identity = create_identity(new, secrets.token_bytes(64))
    save_roster(roster, members.handed_over(old, identity.public), identity.key)
    out.print(
        f"The keys in {new} are the consortium's now; sign its studies again with them, and send "
        "every site the roster."
    )


@app.command(name="new-study", rich_help_panel=STUDIES)
def new_study_command(
    study: Annotated[Path, typer.Argument(help="Study file to write; it must not be there yet.")],
    algorithm: Annotated[str, typer.Option(help="group_ica, ica, glm or histogram.")] = "group_ica",
    roster: Annotated[
        Path | None, typer.Option(help="Roster file: its sites take part unless --sites says.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Folder with the consortium's keys: sign the study, too.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its short name; by default the file's.")] = None,
    title: Annotated[str | None, typer.Option(help="A line for people.")] = None,
    sites: Annotated[str | None, typer.Option(help="Names of the sites, with commas.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Largest ε of a run; else 4.")] = None,
    delta: Annotated[str | None, typer.Option(help="δ that belongs to it; else 1e-5.")] = None,
    colluding_sites: Annotated[
        str | None, typer.Option(help="Sites that may side with the coordinator; else 1.")
    ] = None,
    dropouts: Annotated[
        str | None, typer.Option(help="Sites that may fail to answer a round; else 0.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="BIDS task of the images; else rest.")] = None,
    components: Annotated[
        str | None, typer.Option(help="Most networks that are looked for; else 10.")
    ] = None,
    outcomes: Annotated[
        str | None, typer.Option(help="glm: columns that are compared, as region[1-20].")
    ] = None,
    deviation: Annotated[
        str | None, typer.Option(help="glm: their usual standard deviation among persons.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="histogram: what is looked at; glm: where the groups stand.")
    ] = None,
    levels: Annotated[
        str | None, typer.Option(help="glm: the two groups, with a comma; else control,patient.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="glm: persons of each group at a site, with a comma.")
    ] = None,
    limits: Annotated[
        str | None, typer.Option(help="Least and largest value of what is measured, with a comma.")
    ] = None,
    subjects: Annotated[
        str | None, typer.Option(help="Subjects per site: show what plan shows, before signing.")
    ] = None,
    volumes: Annotated[int, typer.Option(help="Volumes per subject, for --subjects.", min=2)] = 100,
) -> None:
    """Write a commented study file; what the options don't say is asked at a terminal."""
    from consortium.coordinator.console_tables import show_plan
    from consortium.coordinator.new_study import new_study
    from consortium.membership.keys import load_identity
    from consortium.membership.roster_file import read_roster
    from consortium.membership.signed_study import sign_study

    given = {
        "name": name or study.stem,
        "title": title,
        "sites": sites,
        "epsilon": epsilon,
        "delta": delta,
        "colluding_sites": colluding_sites,
        "dropouts": dropouts,
        "task": task,
        "components": components,
        "outcomes": outcomes,
        "deviation": deviation,
        "column": column,
        "levels": levels,
        "groups": groups,
        "limits": limits,
    }
    if keys is not None and roster is None:
        raise StudyError("--keys signs for a roster's sites; give --roster, too.")
    members = None if roster is None else read_roster(roster)
    identity = None if keys is None else load_identity(keys)
    if members is not None and sites is None:
        given["sites"] = ",".join(members.sites)
    new_study(study, algorithm, given, out.ask)
    out.print(f"{study} is written; see what it would cost and find with 'consortium plan'.")
    if subjects is not None:
        show_plan(_plan(study, subjects, volumes), out.console)
    if members is not None and identity is not None:
        sign_study(study, members, identity.key)
        out.print("It is signed, too. After an edit sign it again with 'consortium sign'.")


@app.command(rich_help_panel=STUDIES)
def sign(study: StudyFile, roster: RosterFile, keys: KeysFolder) -> None:
    """Sign a study for its sites: this file, this mask, these keys."""
    from consortium.membership.keys import load_identity
    from consortium.membership.roster_file import read_roster
    from consortium.membership.signed_study import sign_study, signature_path

    members, key = read_roster(roster), load_identity(keys).key
    members.check_owner(key)  # before a good signature is overwritten
    signed = sign_study(study, members, key)
    sites = ", ".join(signed.study.sites)
    out.print(
        f"{signature_path(study)} is made; send it with the study, its mask if it names a file, "
        f"and the roster to {sites}."
    )


@app.command(rich_help_panel=STUDIES)
def plan(
    study: StudyFile,
    subjects: Annotated[
        str, typer.Option(help="Subjects per site: one number, or one per site with commas.")
    ],
    volumes: Annotated[int, typer.Option(help="Volumes per subject.", min=2)] = 100,
    as_json: AsJson = False,
) -> None:
    """Work out what a study would cost and release, before any data is read."""
    from consortium.coordinator.console_tables import plan_numbers, show_plan

    made = _plan(study, subjects, volumes)
    if as_json:
        out.print_json(plan_numbers(made))
    else:
        show_plan(made, out.console)


@app.command(name="design", rich_help_panel=STUDIES)
def design_command(
    studies: Annotated[list[Path], typer.Argument(help="Study files (YAML), as they are meant.")],
    subjects: Annotated[
        str, typer.Option(help="Subjects per site: one number, or one per site with commas.")
    ],
    folder: OutFolder,
    volumes: Annotated[int, typer.Option(help="Volumes per subject.", min=2)] = 100,
    runs: Annotated[int, typer.Option(help="Runs of each study a year.", min=1)] = 1,
    years: Annotated[int, typer.Option(help="Years of the ledgers.", min=1, max=20)] = 5,
) -> None:
    """Write what a study would reach, and studies near it, and do to every hospital's ledger."""
    from consortium.coordinator.design import Assumed
    from consortium.coordinator.design_page import design_studies
    from consortium.space.study_space import study_space
    from consortium.study.reader import load_study

    assumed = []
    for path in studies:
        study = load_study(path)
        sizes = _sizes(subjects, len(study.sites))
        assumed.append(Assumed(study, study_space(study, path.parent).extent, sizes, volumes))
    page, designs = design_studies(folder, assumed, runs, years)
    for each in designs:
        for sentence in each.sentences:
            out.print(f"{each.assumed.study.study}: {sentence}")
    out.print(f"The page is {page}, and its numbers are in {page.with_suffix('.json').name}.")


@app.command(rich_help_panel=STUDIES)
def run(
    study: StudyFile,
    roster: RosterFile,
    exchange: ExchangePlace,
    keys: KeysFolder,
    folder: OutFolder,
    credentials: Credentials = None,
) -> None:
    """Carry a study out; after a crash the same command goes on where it stopped."""
    from consortium.coordinator.run import RunFiles, run_study
    from consortium.engine.clock import Clock

    files = RunFiles(study, roster, exchange, keys, folder, credentials)
    _tell(run_study(files, Clock(), out.console), folder)


@app.command(name="deploy", rich_help_panel=STUDIES)
def deploy_command(
    study: StudyFile,
    cron: Annotated[str, typer.Option(help="When a run is due, such as '0 20 * * fri'.")],
    roster: RosterFile,
    exchange: ExchangePlace,
    keys: KeysFolder,
    folder: OutFolder,
    credentials: Credentials = None,
    timezone: Annotated[str, typer.Option(help="Time zone of --cron.")] = "UTC",
    dry_run: Annotated[
        bool, typer.Option(help="Only say whether the sites' approvals cover the next run.")
    ] = False,
    on_demand: Annotated[
        bool,
        typer.Option("--on-demand", help="Open runs that somebody orders on the server, too."),
    ] = False,
) -> None:
    """Run a study by a schedule, as a deployment on the consortium's Prefect server."""
    from consortium.coordinator.deploy import DueRuns, deploy
    from consortium.coordinator.run import RunFiles
    from consortium.coordinator.schedule import home, new_schedule, not_covered
    from consortium.engine.clock import Clock
    from flows.deployment import check_schedule

    files = RunFiles(study, roster, exchange, keys, folder, credentials)
    record = new_schedule(files, cron, timezone)
    check_schedule(record.cron, record.timezone)
    if not dry_run:
        due = DueRuns(home(), _today, Clock(), out.console)
        deploy(record, due, on_demand=on_demand)
        return
    reasons = not_covered(record, _today())
    out.print("\n".join(reasons) or "Every site's approval covers the next run.")
    if reasons:
        raise SystemExit(1)


@app.command(rich_help_panel=TRIALS)
def simulate(
    study: StudyFile,
    data: Annotated[
        list[str], typer.Option("--data", help="name=FOLDER, a BIDS data set for each site.")
    ],
    folder: OutFolder,
    seed: Annotated[int, typer.Option(help="Decides every random number.")] = 0,
) -> None:
    """Run all sites in this process, on data you may see; scheme 'none' is allowed here only."""
    from consortium.coordinator.simulate import simulate_study

    _tell(simulate_study(study, _folders(data), folder, seed, out.console), folder)


@app.command(rich_help_panel=STUDIES)
def status(
    folder: OutFolder,
    study: StudyFile,
    exchange: ExchangePlace,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Say of each site what is awaited, since when, and until when."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_status
    from consortium.coordinator.run_folder import read_run
    from consortium.coordinator.status import run_status
    from consortium.exchange import open_exchange
    from consortium.study.reader import load_study

    record = read_run(folder)
    if record is None:
        raise StudyError(f"{folder} holds no run; start one with 'consortium run'.")
    place = open_exchange(exchange, credentials)
    found = run_status(place, record.run, load_study(study), folder)
    if as_json:
        out.print_json(asdict(found))
    else:
        show_status(found, out.console)


@app.command(rich_help_panel=STUDIES)
def report(folder: Annotated[Path, typer.Argument(help="Output folder of a run.")]) -> None:
    """Print the privacy statement of a finished study."""
    from consortium.report.privacy_report import read_privacy_report
    from consortium.report.statement import statement

    for line in statement(read_privacy_report(folder / "privacy_report.json")):
        out.print(line + "\n")


@app.command(rich_help_panel=STUDIES)
def contrast(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    expression: Annotated[str, typer.Argument(help="Such as 'patients - controls'.")],
    as_json: AsJson = False,
) -> None:
    """Compare levels or columns of a finished glm that has contrasts: all; it costs no privacy."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_contrast
    from consortium.coordinator.contrast import contrast as work_out
    from consortium.coordinator.contrast import read_released

    found = work_out(read_released(folder), expression)
    if as_json:
        out.print_json(asdict(found))
    else:
        show_contrast(found, out.console)


@app.command(name="compare", rich_help_panel=STUDIES)
def compare_command(
    first: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    second: Annotated[Path, typer.Argument(help="Output folder of another.")],
    folder: OutFolder,
) -> None:
    """Lay two results side by side, as a page; it costs no privacy."""
    from consortium.report.comparison import differences, match_components, read_outcome
    from consortium.report.comparison_page import summary, write_comparison

    one, other = read_outcome(first), read_outcome(second)
    page = write_comparison(folder, one, other)
    for sentence in summary(match_components(one, other)[0], list(differences(one, other))):
        out.print(sentence)
    out.print(f"The page is {page}.")


@app.command(rich_help_panel=STUDIES)
def verify(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run, or a copy of it.")],
    exchange: Annotated[
        str | None, typer.Option(help="Where the run's messages lie: its sums are added again.")
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(help="File of lines 'name: fingerprint', as hospitals publish their own."),
    ] = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Check that a result is the sum of what sites signed: 0 shown, 1 contradicted, 2 open."""
    from consortium.coordinator.verify import Checkup
    from consortium.exchange import open_exchange

    place = None if exchange is None else open_exchange(exchange, credentials)
    verdict = Checkup(folder, sites, place).run()
    if as_json:
        out.print_json(verdict.numbers())
    else:
        for line in verdict.lines():
            out.print(line)
    raise SystemExit(verdict.code)


@app.command(rich_help_panel=STUDIES)
def evidence(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run, or a copy of it.")],
    exchange: Annotated[str, typer.Option(help="Where the run's messages lie.")],
    credentials: Credentials = None,
) -> None:
    """Fetch what sites attested after a result was published, for verify to count."""
    from consortium.coordinator.late_evidence import fetch_late
    from consortium.exchange import open_exchange

    for line in fetch_late(folder, open_exchange(exchange, credentials)).lines():
        out.print(line)


@app.command(rich_help_panel=TRIALS)
def audit(
    trials: Annotated[int, typer.Option(help="Trials a row.", min=1000)] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Try to refute the privacy formulas: the strongest adversary against the real code."""
    import secrets

    from consortium.coordinator.console_tables import show_audit
    from consortium.privacy.audit import examine

    settings = [("cape", s, c, k) for s, c in ((4, 1), (10, 3), (30, 9)) for k in (1.0, 1e4)]
    settings += [(m, s, c, 1.0) for s, c in ((4, 1), (10, 3)) for m in ("secure-sum", "local")]
    found = [examine(*row, trials, lambda: secrets.token_bytes(32)) for row in settings]
    if as_json:
        out.print_json([vars(f) | {"upheld": f.upheld} for f in found])
    else:
        show_audit(found, out.console)
    if not all(finding.upheld for finding in found):
        raise SystemExit(1)


@app.command(rich_help_panel=TRIALS)
def demo(
    folder: OutFolder = Path("build/demo"),
    subjects: Annotated[int, typer.Option(help="Persons of a hospital, in the mean.", min=4)] = 100,
    seed: Annotated[int, typer.Option(help="Decides the made-up scans.")] = 1,
    real: Annotated[
        list[Path] | None,
        typer.Option(help="4-D NIfTI to split over the hospitals instead of made-up scans."),
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


@app.command(rich_help_panel=STUDIES)
def schema() -> None:
    """Print the JSON schema of the study file."""
    from consortium.study.reader import study_schema

    out.print_json(study_schema())


def _today() -> date:
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


def _plan(study: Path, subjects: str, volumes: int) -> Plan:
    from consortium.space.study_space import study_space
    from consortium.study.plan import make_plan
    from consortium.study.reader import load_study

    parsed = load_study(study)
    sizes = _sizes(subjects, len(parsed.sites))
    samples = tuple(size * volumes for size in sizes)
    extent = study_space(parsed, study.parent).extent
    return make_plan(parsed, extent.shape(sizes, samples, parsed.privacy.unit))


def _tell(report: PrivacyReport, folder: Path) -> None:
    from consortium.report.statement import summary

    out.print(f"Output: {folder} (open report.html)")
    out.print(summary(report))


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


def main() -> None:
    """Entry point: an expected error is one sentence and exit code 1."""
    run_program("consortium", app, out)
