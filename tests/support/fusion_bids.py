"""A simulated consortium with images and EEG of each participant: one BIDS data set per site.

The sources, participants and links are those of `tests.support.fusion`, in a hospital's files:
series in MNI space whose networks vary as strongly as the participant's profile states, a contrast
image, and EEG whose epochs contain the linked potentials. Sites have their EEG in different
formats.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from consortium.simulation.dataset import require_empty, start_derivatives, write_indented
from consortium.simulation.networks import network_maps
from consortium.space.grid import template_grid
from tests.support.fusion import linked_profiles
from tests.support.fusion_person import (
    ELECTRODES,
    SOURCES_AT,
    Array,
    FusionRecipe,
    Person,
    Setting,
    write_person,
)


@dataclass(frozen=True)
class FusionMade:
    """Where everything is.

    Parameters
    ----------
    sites : dict of str to Path
        Each site's BIDS data set.
    truth : Path
        Folder with ``networks.nii.gz``, ``profiles.npz`` and ``truth.json``.
    """

    sites: dict[str, Path]
    truth: Path


def make_fusion_consortium(
    folder: Path, recipe: FusionRecipe, *, progress: Callable[[str], None] = lambda _site: None
) -> FusionMade:
    """Write a consortium's data sets and, next to them, the truth, which no site receives.

    Parameters
    ----------
    folder : Path
        Gets ``<site>/bids`` per site and ``truth``.
    recipe : FusionRecipe
    progress : callable
        Called with the site's name after each participant.

    Raises
    ------
    OutputError
        If a data set's folder or the truth's already contains files.
    ValueError
        If a correlation is beyond -1 and 1, or there are more than six.
    """
    count = len(recipe.correlations)
    if count > len(SOURCES_AT):
        raise ValueError(f"give at most {len(SOURCES_AT)} correlations")
    grid = template_grid(recipe.resolution)
    setting = Setting(recipe, grid, *network_maps(grid.affine, grid.shape, grid.mask, count=count))
    made = FusionMade({site: folder / site / "bids" for site in recipe.sites}, folder / "truth")
    require_empty(made.truth)
    profiles: dict[str, Array] = {}
    for number, site in enumerate(recipe.sites):
        people = list(_people(made.sites[site], number, setting))
        start_derivatives(
            made.sites[site], f"Made-up images and EEG of {site}", [each.label for each in people]
        )
        for person in people:
            profiles[f"{site}_sub-{person.label}"] = np.stack([person.image, person.potential])
            write_person(person, setting)
            progress(site)
        _write_participants(made.sites[site], people)
    _write_truth(made.truth, setting, profiles)
    return made


def _people(folder: Path, site: int, setting: Setting) -> Iterator[Person]:
    """Draw a site's participants: their profiles, missing modalities and labels."""
    recipe = setting.recipe
    seeds = np.random.SeedSequence(recipe.seed, spawn_key=(site,)).spawn(recipe.subjects)
    for index, seed in enumerate(seeds):
        generator = np.random.default_rng(seed)
        image, potential = linked_profiles(generator, recipe.correlations, 1)
        lacks = index % recipe.one_sided if recipe.one_sided else None
        yield Person(
            folder / f"sub-{index + 1:03d}",
            recipe.formats[site % len(recipe.formats)],
            generator,
            image[:, 0],
            potential[:, 0],
            with_images=lacks != recipe.one_sided - 2,
            with_eeg=lacks != recipe.one_sided - 1,
        )


def _write_participants(folder: Path, people: Sequence[Person]) -> None:
    """Write the participants' table; age and group follow the first two sources' profiles.

    Age depends on the first source's image profile, and the group on the second's.
    """
    lines = ["participant_id\tage\tsex\tgroup"]
    for person in people:
        first, second = (*person.image, 0.0)[:2]
        draws = person.generator.standard_normal(2)
        age = int(np.clip(np.rint(45 + 10 * (0.6 * first + 0.8 * draws[0])), 18, 90))
        sex = "FM"[int(person.generator.integers(2))]
        group = "patient" if 0.7 * second + draws[1] > 0 else "control"
        lines.append(f"sub-{person.label}\t{age}\t{sex}\t{group}")
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_truth(folder: Path, setting: Setting, profiles: dict[str, Array]) -> None:
    """Write maps, topographies and profiles (2 x K: image, potential), and the recipe."""
    folder.mkdir(parents=True)
    nib.save(setting.grid.image(setting.maps), folder / "networks.nii.gz")
    np.savez(folder / "profiles.npz", **profiles)  # type: ignore[arg-type]
    told: dict[str, Any] = {"networks": list(setting.names), "recipe": asdict(setting.recipe)}
    told["topographies"] = dict(zip(ELECTRODES, setting.topographies.tolist(), strict=True))
    write_indented(folder / "truth.json", told)
