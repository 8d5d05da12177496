"""Make up the scans of a consortium: ``python -m consortium.simulation FOLDER``."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from consortium.errors import ConsortiumError
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels


def main(words: list[str] | None = None) -> None:
    """Write one simulated BIDS data set a hospital, and the truth that none of them sees."""
    asked = _parser().parse_args(words)
    recipe = Recipe(
        tuple(asked.sites),
        asked.subjects,
        asked.seed,
        volumes=asked.volumes,
        networks=asked.networks,
        resolution=asked.resolution,
        levels=SignalLevels(signal=0.04),
    )
    try:
        made = make_consortium(asked.folder, recipe)
    except ConsortiumError as error:
        sys.exit(str(error))
    for site, folder in made.sites.items():
        sys.stdout.write(f"{site}: {asked.subjects} simulated participants in {folder}\n")


def _parser() -> ArgumentParser:
    parser = ArgumentParser("python -m consortium.simulation", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="gets SITE/bids for every site, and truth")
    parser.add_argument("--sites", nargs="+", default=["north", "east", "south"])
    parser.add_argument("--subjects", type=int, default=20, help="participants of each site")
    parser.add_argument("--volumes", type=int, default=80, help="of each participant")
    parser.add_argument(
        "--networks", type=int, default=8, help="that all participants have in common"
    )
    parser.add_argument("--resolution", type=float, default=10.0, help="voxel edge in mm")
    parser.add_argument("--seed", type=int, default=1, help="decides every value")
    return parser


if __name__ == "__main__":
    main()
