"""Loadings on EEG: time series, heads from above, and a table of channels and times or bands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from consortium.base.array import Array
from consortium.base.formatting import count
from consortium.report.finished import Finished
from consortium.report.pictures import (
    DOTS,
    INK,
    PALETTE,
    SIZE,
    SOFT,
    Drawing,
    Picture,
    largest_size,
    plain_axes,
    to_picture,
)
from consortium.report.tables import write_loading_table
from consortium.space.study_space import Space, ViewSpace
from consortium.views.eeg import EegView

READING = (
    "For a potential every channel's time series is drawn, and those with the largest values are "
    "named. Heads are seen from above with the nose up, at the peaks of the global field power."
)
NAMED = 4
"""Channels of a picture that are named: those that reach furthest."""
LINES = "#d55e00", "#0072b2", "#009e73", "#cc79a7"
"""Their colours, of Okabe and Ito (2008), which are also distinct in colour blindness."""
HEADS = 3
"""Topographies of a potential: at the largest peaks of its global field power."""
APART = 0.04
"""Least time between two of them, in s."""
WEAKEST = 0.25
"""Least power of one of them over the largest."""


def draw(space: Space, view: ViewSpace[EegView], values: Array, name: str) -> Drawing:
    """Draw time series or bands, and heads if channels have standard names and MNE is installed."""
    del space
    settings = view.view
    table = values.reshape(len(settings.channels), -1)
    if settings.measure == "erp":
        first = _course(settings, table, name)
        places = _peaks(settings, table)
        titles = [f"{1000 * settings.times[place]:.0f} ms" for place in places]
    else:
        titles = list(settings.bands)[:5]
        places = list(range(min(5, table.shape[1])))
        first = _grid(settings, table, name)
    heads = _topographies(settings.channels, table[:, places], titles, name)
    return Drawing((first,) if heads is None else (first, heads))


def person(view: ViewSpace[EegView], values: Array) -> Sequence[tuple[str, str]]:
    """Return nothing, because it is drawn."""
    del view, values
    return ()


def write(folder: Path, run: Finished, view: ViewSpace[EegView], values: Array) -> Path:
    """Write a table with a column of channels and one of times in s, or of bands."""
    split = (label.partition("@") for label in view.labels)
    entries = [(channel, inner) for channel, _, inner in split]
    heads = ("channel", "time" if view.view.measure == "erp" else "band")
    return write_loading_table(folder / "eeg", run, view, (heads, entries), values)


def _course(view: EegView, table: Array, name: str) -> Picture:
    """Draw every channel's time series; those with the largest values are named."""
    figure = Figure(figsize=SIZE, dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    times = 1000 * np.array(view.times)
    furthest = np.argsort(-np.abs(table).max(axis=1))[:NAMED]
    for row in table:
        axes.plot(times, row, color=SOFT, linewidth=0.6, alpha=0.7)
    for row, colour in zip(furthest, LINES, strict=False):
        axes.plot(times, table[row], color=colour, linewidth=1.4, label=view.channels[row])
    axes.axhline(0, color=INK, linewidth=0.5)
    axes.axvline(0, color=INK, linewidth=0.5, linestyle=":")
    axes.set_xlabel("time in ms")
    axes.set_xlim(times[0], times[-1])
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8, ncols=NAMED)
    plain_axes(axes)
    named = ", ".join(view.channels[row] for row in furthest)
    shown = count(len(table), "channel")
    return to_picture(figure, f"{name}: time series of {shown}, furthest {named}")


def _grid(view: EegView, table: Array, name: str) -> Picture:
    """Draw channels by bands in colour."""
    figure = Figure(figsize=SIZE, dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    top = largest_size(table)
    drawn = axes.imshow(table.T, cmap=PALETTE, vmin=-top, vmax=top, aspect="auto")
    axes.set_yticks(range(table.shape[1]), list(view.bands))
    if len(table) <= 32:
        axes.set_xticks(range(len(table)), view.channels, rotation=90)
    axes.tick_params(labelsize=8, length=0)
    figure.colorbar(drawn, ax=axes, shrink=0.8)
    return to_picture(figure, f"{name}: {count(table.shape[1], 'band')} on the channels")


def _peaks(view: EegView, table: Array) -> list[int]:
    """Return samples of the largest peaks of global field power, in order of time."""
    power = table.std(axis=0)
    apart = max(1, round(APART * view.rate))
    found: list[int] = []
    for place in np.argsort(-power):
        local = power[max(0, place - 1) : place + 2].max() <= power[place]
        if (
            local
            and power[place] >= WEAKEST * power.max()
            and all(abs(place - other) >= apart for other in found)
        ):
            found.append(int(place))
    return sorted(found[:HEADS])


def _topographies(
    channels: Sequence[str], columns: Array, titles: Sequence[str], name: str
) -> Picture | None:
    """Draw heads from above, nose up; none if MNE or a channel's place is not known."""
    info = _places(channels)
    if info is None:
        return None
    from mne.viz import plot_topomap

    figure = Figure(figsize=SIZE, dpi=DOTS)
    top = largest_size(columns)
    width = 1.0 / len(titles)
    for place, (values, title) in enumerate(zip(columns.T, titles, strict=True)):
        axes = figure.add_axes((place * width, 0.02, width, 0.84))
        plot_topomap(
            values, info, axes=axes, show=False, cmap=PALETTE, vlim=(-top, top), contours=4
        )
        axes.set_title(title, fontsize=9, color=INK)
    return to_picture(figure, f"{name}: topography at {', '.join(titles)}, seen from above")


def _places(channels: Sequence[str]) -> Any:
    """Return electrodes of the 10-20 system (or 10-05) in MNE's form, or None."""
    if len(channels) < 4:
        return None  # too few to interpolate between
    try:
        import mne
    except ImportError:  # the extra 'eeg', which a centre may go without
        return None
    names = mne.channels.get_builtin_montages()
    known = next(name for name in ("colin27_1005", "standard_1005") if name in names)
    montage = mne.channels.make_standard_montage(known)
    standard = {name.lower(): name for name in montage.ch_names}
    found = [standard.get(channel.lower()) for channel in channels]
    if None in found or len(set(found)) < len(found):
        return None
    info = mne.create_info(found, 100.0, "eeg", verbose="ERROR")
    return info.set_montage(montage, verbose="ERROR")
