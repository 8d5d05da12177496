"""Values and files of single images and maps that may be wrong, compared between participants.

The comparison is for the site's staff. The site's messages do not depend on it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Serious
from consortium.base.formatting import count
from site_agent.data.understood import Fact
from site_agent.images.copies import same_files

_FACTOR = 100.0
"""Factor between participants' scales that no biological difference explains."""
_APART = 10.0
"""Factor from the median of all participants beyond which participants are named."""
_LARGEST = 1e20
_NAMED = 3


@dataclass
class Scales:
    """Sizes of the values of participants' images in a view."""

    view: str
    medians: dict[str, float] = field(default_factory=dict)
    """Medians of the absolute values that are finite and not 0."""
    huge: set[str] = field(default_factory=set)
    """Participants with an absolute value above 1e20."""

    def add(self, label: str, values: NDArray[Any]) -> None:
        """Add a participant's values."""
        sizes = np.abs(values[np.isfinite(values)])
        sizes = sizes[sizes > 0]
        if len(sizes):
            self.medians[label] = float(np.median(sizes))
            if sizes.max() > _LARGEST:
                self.huge.add(label)

    def facts(self) -> Iterator[Fact]:
        """Yield the range of the participants' medians."""
        if self.medians:
            low = min(self.medians.values())
            high = max(self.medians.values())
            spread = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
            many = count(len(self.medians), "participant")
            yield Fact(
                f"median absolute value of view '{self.view}'",
                f"{spread}, values of 0 left out, of {many}",
            )

    def notes(self) -> Iterator[str]:
        """Yield warnings of scales that differ, and of huge values."""
        if self.huge:
            yield Serious(
                f"view '{self.view}': {_who(self.huge)} {_has(self.huge)} an absolute value above "
                f"{_LARGEST:.0e}. Correct the files."
            )
        low, high = (f(self.medians.values(), default=1.0) for f in (min, max))
        if high > _FACTOR * low:
            middle = float(median(self.medians.values()))
            apart = {
                label
                for label, each in self.medians.items()
                if max(each, middle) > _APART * min(each, middle)
            }
            yield Serious(
                f"view '{self.view}': the participants' median absolute values range from "
                f"{low:.3g} to {high:.3g}. {_who(apart)} {_has(apart)} more than {_APART:g} times "
                f"the median of all participants ({middle:.3g}), or less than a tenth of it. Check "
                "that all values are in one unit."
            )


def copy_notes(view: str, files: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    """Yield warnings of files with the same content.

    Parameters
    ----------
    view : str
        Name of the view.
    files : mapping of str to sequence of Path
        The chosen files by participant.
    """
    owners = {path: label for label, paths in files.items() for path in paths}
    groups = same_files(owners)
    labels = [{owners[path] for path in group} for group in groups]
    shared = {label for each in labels if len(each) > 1 for label in each}
    if shared:
        some = next(group for group, each in zip(groups, labels, strict=True) if len(each) > 1)
        yield Serious(
            f"view '{view}': {_who(shared)} have a file with the same content as another "
            f"participant's, such as {_pair(some)}. Replace the copies."
        )
    twice = {owners[one] for group in groups for one, _ in _twins(group, owners)}
    if twice:
        yield Serious(
            f"view '{view}': {_who(twice)} {_has(twice)} two files with the same content, where "
            "the left and the right hemisphere are required. Replace the copies."
        )


def _twins(group: Sequence[Path], owners: Mapping[Path, str]) -> Iterator[tuple[Path, Path]]:
    """Yield the pairs of one participant's files among files with the same content."""
    first: dict[str, Path] = {}
    for path in group:
        twin = first.setdefault(owners[path], path)
        if twin != path:
            yield twin, path


def forms_disagree(sform: NDArray[Any] | None, qform: NDArray[Any] | None) -> bool:
    """Return whether an image's two orientations exchange left and right.

    Parameters
    ----------
    sform, qform : array, shape (4, 4), optional
        None where the image does not state it.
    """
    if sform is None or qform is None:
        return False
    return float(sform[0, :3] @ qform[0, :3]) < 0


def form_notes(labels: set[str]) -> Iterator[str]:
    """Yield a warning of participants whose images' two orientations (sform, qform) disagree."""
    if labels:
        yield Serious(
            f"{_who(labels)}: sform and qform disagree about left and right, and the sform is "
            "used. Compare the images with the original scans, and correct the wrong one."
        )


def _pair(paths: Iterable[Path]) -> str:
    one, other = sorted(paths)[:2]
    return f"{one} and {other}"


def _has(labels: set[str]) -> str:
    return "has" if len(labels) == 1 else "have"


def _who(labels: set[str]) -> str:
    some = ", ".join(f"sub-{label}" for label in sorted(labels)[:_NAMED])
    more = ", …" if len(labels) > _NAMED else ""
    return f"{count(len(labels), 'participant')} ({some}{more})"
