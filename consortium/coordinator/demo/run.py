"""The command ``demo``: four hospitals, end to end.

Three studies of one consortium over the same participants: their findings, and the total privacy
loss. Demos of a single study: real series cut into pieces, and brains of 70,000 voxels.
"""

import json
import shutil
from collections.abc import Sequence
from csv import DictReader
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nilearn.image import resample_img
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from consortium.coordinator.demo.prepare import (
    DemoFolders,
    agents,
    agents_at_work,
    approve_everywhere,
    clear_demo,
    found_consortium,
    make_scans,
    write_study,
)
from consortium.coordinator.open_cohort import make_open_cohort
from consortium.coordinator.run import RunFiles, run_study
from consortium.coordinator.verify import Checkup
from consortium.engine.clock import Clock
from consortium.membership.roster import fingerprint, read_roster
from consortium.opened_study import open_study
from consortium.report.as_templates import write_templates
from consortium.report.statement import summary
from consortium.simulation.bids import Patients, Recipe, Scanner, make_consortium
from consortium.simulation.dataset import split_over_sites
from consortium.simulation.signals import SignalLevels
from consortium.study.reader import read_study
from flows import need_prefect
from flows.embedded import embedded_prefect
from site_agent.config import SiteConfig
from site_agent.ledger.export import print_accounts
from site_agent.ledger.ledger import Ledger
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.policy.policy import Policy

_SITE = "volunteers"
_COUNT = 40
_OPEN_SITE = "open"
_OPEN_COUNT = 40
_OPEN_LACKS = 2


@dataclass(frozen=True, eq=False)
class FoundMaps:
    """Maps that a study of the demo found."""

    image: nib.Nifti1Image
    """4-D, one map after the other."""
    expected: tuple[float, ...] = ()
    """Expected correlation of each with the truth; empty if the analysis reports none."""

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.image.shape[3])


def found_maps(files: RunFiles) -> FoundMaps:
    """Read the maps that a study wrote, without those that it did not find."""
    path = next(files.out.glob("tpl-*/func/*_components.nii.gz"), None)
    if path is None:  # noise left none that could be written
        return FoundMaps(nib.Nifti1Image(np.zeros((1, 1, 1, 0), np.float32), np.eye(4)))
    image = nib.load(path)
    about = json.loads(Path(str(path).replace(".nii.gz", ".json")).read_text(encoding="utf-8"))
    values = image.get_fdata(dtype=np.float32).reshape(*image.shape[:3], -1)
    kept = np.flatnonzero(about.get("Found", [True] * values.shape[3]))
    accuracy = about.get("Accuracy", [])
    expected = tuple(float(accuracy[k]["value"]) for k in kept) if accuracy else ()
    return FoundMaps(nib.Nifti1Image(values[..., kept], image.affine, image.header), expected)


def agreement(place: DemoFolders, maps: FoundMaps) -> NDArray[np.float64]:
    """Return absolute correlations of the demo's true networks with the found maps: R x K."""
    grid: dict[str, Any] = {
        "target_affine": maps.image.affine,
        "target_shape": maps.image.shape[:3],
        "force_resample": True,
        "copy_header": True,
    }
    brain = resample_img(
        nib.load(place.truth / "mask.nii.gz"), interpolation="nearest", **grid
    ).get_fdata()
    truth = resample_img(
        nib.load(place.truth / "networks.nii.gz"), interpolation="linear", **grid
    ).get_fdata()
    found = maps.image.get_fdata()
    inside = (brain > 0) & found.any(axis=3)
    both = np.vstack([truth[inside].T, found[inside].T])
    return np.asarray(np.abs(np.corrcoef(both)[: truth.shape[3], truth.shape[3] :]))


def network_names(place: DemoFolders) -> list[str]:
    """Return the names of the demo's true networks."""
    return list(json.loads((place.truth / "truth.json").read_text(encoding="utf-8"))["networks"])


def score_lines(place: DemoFolders, maps: FoundMaps) -> list[str]:
    """State for every true network of the demo how well the best map agrees with it."""
    if not maps.count:
        return ["No network was found."]
    table = agreement(place, maps)
    kind = " (expected)" if maps.expected else ""
    lines = [f"Correlation of each true network with its best map{kind}:"]
    for name, row in zip(network_names(place), table, strict=True):
        best = int(row.argmax())
        own = int(table[:, best].argmax()) == network_names(place).index(name)
        expected = f"  ({maps.expected[best]:.2f})" if maps.expected and own else ""
        lines.append(f"  {name:<23} {row[best]:.2f}{expected}")
    best_maps = table.max(axis=1)
    lines.append(f"Median {np.median(best_maps):.2f}, least {best_maps.min():.2f}")
    return lines


@dataclass(frozen=True, eq=False)
class Volunteers:
    """Outcomes of the same simulated participants, as controls and as patients."""

    well: NDArray[np.float64]
    ill: NDArray[np.float64]
    """V x n."""

    @property
    def moved(self) -> NDArray[np.float64]:
        """Mean difference of patients in each outcome, length V.

        Amplitudes are fractions of a participant's whole variance, and a map may contain several
        networks: a change of one network also moves the outcomes of others.
        """
        return np.asarray((self.ill - self.well).mean(axis=1))


def measure_volunteers(
    folder: Path, study_file: Path, recipe: Recipe, patients: Patients
) -> Volunteers:
    """Simulate volunteers as controls and as patients, and measure a study's first view in them.

    Parameters
    ----------
    folder : Path
        Gets their scans.
    recipe : Recipe
        Recipe of the study's participants; volunteers have their own seed, and one scanner.
    patients : Patients
        Differences of patients.
    """
    study = read_study(study_file)
    opened = open_study(study, study_file.parent)
    own = replace(recipe, sites=(_SITE,), subjects=_COUNT, seed=recipe.seed + 1, scanners=())
    found = []
    for name, part in (("well", replace(patients, share=0.0)), ("ill", replace(patients, share=1))):
        made = make_consortium(folder / name, replace(own, patients=part))
        cache = folder / name / "cache"
        found.append(FeatureDataset(made.sites[_SITE], opened, cache).table())
    return Volunteers(*(table[: opened.space.views[0].size] for table in found))


SITES = ("north", "east", "south", "west")
SHARES = (1.6, 1.2, 0.8, 0.4)
"""Participants of each hospital over those of the mean one."""
SCANNERS = (Scanner(1.0, 1.0), Scanner(1.7, 0.8), Scanner(0.6, 1.2), Scanner(1.2, 1.0))
LEVELS = SignalLevels(signal=0.026, noise=0.014, autocorrelation=0.6, weakest=0.54)
"""Noise as strong as the weakest network's peak, which neighbours share, and Gaussian courses."""
PATIENTS = Patients(
    0.5,
    {"default-mode": 0.8, "salience": 1.25, "frontoparietal-left": 0.8, "hippocampus": 1.25},
)
_TRUTH = (
    "Truth: the mean change when volunteers are simulated again as patients. A strength is a "
    "fraction of a participant's whole variance, and a map may contain several networks. So the "
    "outcomes of other networks also change a little."
)


def tell_story(root: Path, *, subjects: int, seed: int, console: Console) -> None:
    """Find networks alone and with an open cohort, then by rounds, then patients' differences.

    Takes and raises as `run_demo`.
    """
    place = clear_demo(root)
    recipe = _recipe(subjects, seed)
    make_scans(place, recipe, console)
    found_consortium(place, SITES)
    with agents_at_work(place, SITES), embedded_prefect(place.root / "prefect"):
        console.print("Four hospital agents work; each has its own folder, keys and ledger.")
        maps = _find_networks(place, "networks", recipe, console)
        _check(place.study("networks"), console)
        _find_with_open_cohort(place, recipe, console)
        _find_networks(place, "rounds", recipe, console)
        if maps.count:
            _compare_patients(place, recipe, maps, console)
    _show_ledger(place, console)


def _recipe(subjects: int, seed: int) -> Recipe:
    sizes = tuple(round(share * subjects) for share in SHARES)
    return Recipe(
        SITES,
        sizes,
        seed,
        volumes=80,
        networks=14,
        resolution=8.0,
        levels=LEVELS,
        scanners=SCANNERS,
        patients=PATIENTS,
    )


def _sizes(recipe: Recipe) -> dict[str, int]:
    """Return the participants of each site."""
    return dict(zip(recipe.sites, recipe.sizes, strict=True))


def _find_networks(place: DemoFolders, name: str, recipe: Recipe, console: Console) -> FoundMaps:
    files = place.study(name)
    write_study(files, f"demo-{name}.yaml", _sizes(recipe))
    _carry_out(place, files, console)
    maps = found_maps(files)
    console.print("\n".join(score_lines(place, maps)))
    return maps


def _find_with_open_cohort(place: DemoFolders, recipe: Recipe, console: Console) -> None:
    """Find networks at a smaller ε, with an open cohort that lacks the last two of them."""
    files = place.study("open")
    write_study(files, "demo-open.yaml", _sizes(recipe))
    openly = replace(
        recipe,
        sites=(_OPEN_SITE,),
        subjects=_OPEN_COUNT,
        seed=recipe.seed + 2,
        networks=recipe.networks - _OPEN_LACKS,
        scanners=(),
        patients=None,
    )
    source = make_consortium(place.root / "open-cohort", openly).sites[_OPEN_SITE]
    made = make_open_cohort(files.study, source, terms="simulated participants")
    console.print(
        f"Open cohort: {made.cohort.persons} other simulated participants, without "
        f"{_OPEN_LACKS} of the hospitals' networks."
    )
    _carry_out(place, files, console)
    console.print("\n".join(score_lines(place, found_maps(files))))


def _check(files: RunFiles, console: Console) -> None:
    """Show that the result is the sum of the hospitals' signed contributions."""
    fingerprints = files.study.parent / "fingerprints.yaml"
    keys = read_roster(files.roster)
    own = {"centre": keys.centre, **{site: keys.keys[site] for site in SITES}}
    lines = "".join(f"{name}: {fingerprint(key)}\n" for name, key in own.items())
    fingerprints.write_text(lines, encoding="utf-8")
    command = f"consortium verify {files.out} --sites {fingerprints} --exchange {files.exchange}"
    console.print(command, soft_wrap=True)
    for line in Checkup(files.out, fingerprints, files.open_exchange()).run().lines():
        console.print(line, soft_wrap=True)


def _carry_out(place: DemoFolders, files: RunFiles, console: Console) -> None:
    approve_everywhere(place, files)
    study = read_study(files.study)
    console.rule(study.title)
    report = run_study(files, Clock(), console)
    console.print(f"Output: {files.out} (open report.html)", soft_wrap=True)
    console.print(summary(report), soft_wrap=True)


def _compare_patients(
    place: DemoFolders, recipe: Recipe, maps: FoundMaps, console: Console
) -> None:
    """Contrast patients and controls on the networks that the first study found."""
    files = place.study("patients")
    sizes = _sizes(recipe)
    groups = {
        site: [size - PATIENTS.among(size), PATIENTS.among(size)] for site, size in sizes.items()
    }
    files.study.parent.mkdir()
    write_templates(place.study("networks").out, files.study.parent / "networks.nii.gz")
    write_study(files, "demo-patients.yaml", sizes, groups)
    people = measure_volunteers(place.root / "volunteers", files.study, recipe, PATIENTS)
    _carry_out(place, files, console)
    _show_contrast(place, files, maps, people, console)


def _show_contrast(
    place: DemoFolders, files: RunFiles, maps: FoundMaps, people: Volunteers, console: Console
) -> None:
    """Name every outcome by the most similar true network, with its true difference."""
    names = network_names(place)
    alike = agreement(place, maps).argmax(axis=0)
    path = next(files.out.glob("tables/*contrastpatients_results.tsv"), None)
    if path is None:
        console.print("The study ended before its outcomes: nothing is compared.")
        return
    columns = ("effect", "error", "q", "found", "in truth", "network times")
    table = Table("found map, most like", *columns)
    with path.open(encoding="utf-8") as lines:
        rows = zip(DictReader(lines, delimiter="\t"), alike, people.moved, strict=True)
        for row, true, moved in rows:
            effect = moved / float(row["deviation"])
            weight = PATIENTS.weights.get(names[true], 1.0)
            told = [row[each] for each in ("effect", "error", "q")]
            numbers = (each if each == "n/a" else f"{float(each):.2f}" for each in told)
            table.add_row(names[true], *numbers, row["found"], f"{effect:.2f}", f"{weight:g}")
    console.print(table)
    console.print(_TRUTH)


def _show_ledger(place: DemoFolders, console: Console) -> None:
    """Add the privacy losses of the studies for one hospital's participants."""
    folder = place.site(SITES[0])
    policy = Policy()
    ledger = Ledger(SiteConfig.load(folder).ledger)
    console.print(f"Ledger of {SITES[0]}:")
    print_accounts(ledger, policy, console)


def prepare_full_brain(root: Path, *, subjects: int, seed: int, console: Console) -> DemoFolders:
    """Make hospitals whose scans have 70,000 voxels, and their study."""
    place = clear_demo(root)
    write_study(place.files, "full-brain.yaml", dict.fromkeys(SITES, subjects))
    study = read_study(place.files.study)
    recipe = Recipe(
        study.sites,
        subjects,
        seed,
        volumes=study.data.volumes or 80,
        networks=int(getattr(study.analysis, "components", 14)),
        resolution=study.data.resolution,
        levels=LEVELS,
        scanners=SCANNERS,
    )
    make_scans(place, recipe, console)
    return place


def prepare_real(root: Path, images: Sequence[Path]) -> DemoFolders:
    """Deal pieces of real series to the hospitals of the demo: a check of the path, not science."""
    place = clear_demo(root)
    sites = ("north", "east", "south", "west")
    split_over_sites(root / "hospitals", images, sites=sites, pieces=4)
    shutil.copy(root / "hospitals" / "mask.nii.gz", root / "mask.nii.gz")
    write_study(place.files, "real.yaml")
    return place


def run_one(place: DemoFolders, console: Console) -> None:
    """Run the study of a prepared place over its hospitals' agents, and judge its maps."""
    study = read_study(place.files.study)
    found_consortium(place, study.sites)
    approve_everywhere(place, place.files)
    console.print("Four hospital agents start; each has its own folder, keys and ledger.")
    with agents(place, study):
        report = run_study(place.files, Clock(), console)
    if place.truth.exists():
        console.print("\n".join(score_lines(place, found_maps(place.files))))
    console.print(f"Output: {place.files.out} (open report.html)", soft_wrap=True)
    console.print(summary(report), soft_wrap=True)


def run_demo(
    root: Path,
    *,
    subjects: int,
    seed: int,
    real: Sequence[Path],
    console: Console,
    full_brain: bool = False,
) -> None:
    """Make hospitals, run studies over their agents, and judge the findings.

    Raises ConsortiumError if any part fails.

    Parameters
    ----------
    root : Path
        Replaced if it has an earlier demo.
    subjects : int
        Mean number per hospital.
    seed : int
        Seed of the simulated scans; noise and keys are never seeded.
    real : sequence of Path
        4-D NIfTI files to distribute instead of simulated scans.
    full_brain : bool
        One study of scans of 70,000 voxels.
    """
    need_prefect()
    if real:
        run_one(prepare_real(root, real), console)
    elif full_brain:
        place = prepare_full_brain(root, subjects=subjects, seed=seed, console=console)
        run_one(place, console)
    else:
        tell_story(root, subjects=subjects, seed=seed, console=console)
