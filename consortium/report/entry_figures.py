"""Pictures of loadings that are no images: courses and topographies of EEG, bars of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from consortium.formatting import count
from consortium.report.brain_figures import DOTS, PALETTE, SIZE, to_png
from consortium.space.study_space import ViewSpace
from consortium.views.eeg import EegView

Array = NDArray[Any]

INK, SOFT, RED, BLUE = "#16202b", "#8a97a3", "#b3272d", "#1f5f99"
NAMED = 4
"""Channels of a picture that are named: those that reach furthest."""
HEADS = 3
"""Topographies of a potential: at the largest peaks of its global field power."""
APART = 0.04
"""Least time between two of them, in s."""
WEAKEST = 0.25
"""Least power of one of them over the largest."""
MOST_BARS = 12


class Picture(NamedTuple):
    """A PNG, and what it shows in words."""

    png: bytes
    text: str


def draw_entries(view: ViewSpace, values: Array, name: str) -> list[Picture]:
    """Draw one column of a view's loadings.

    Parameters
    ----------
    view : ViewSpace
        Of EEG or of a table.
    values : array, shape (D_v,)
    name : str
        What to call the column in words.

    Returns
    -------
    list of Picture
        Of EEG a course and, if all channels have standard names and MNE is installed,
        topographies; of a table, bars.
    """
    if not isinstance(view.view, EegView):
        return [_bars(view.labels, values, name)]
    table = values.reshape(len(view.view.channels), -1)
    if view.view.measure == "erp":
        first, places = _course(view.view, table, name), _peaks(view.view, table)
        titles = [f"{1000 * view.view.times[place]:.0f} ms" for place in places]
    else:
        titles, places = list(view.view.bands)[:5], list(range(min(5, table.shape[1])))
        first = _grid(view.view, table, name)
    heads = _topographies(view.view.channels, table[:, places], titles, name)
    return [first] if heads is None else [first, heads]


def _course(view: EegView, table: Array, name: str) -> Picture:
    """Every channel's course over time; those that reach furthest are named."""
    figure = Figure(figsize=SIZE, dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    times = 1000 * np.array(view.times)
    furthest = np.argsort(-np.abs(table).max(axis=1))[:NAMED]
    for row in table:
        axes.plot(times, row, color=SOFT, linewidth=0.6, alpha=0.7)
    for row, colour in zip(furthest, (RED, BLUE, "#2a7a3f", "#c07a00"), strict=False):
        axes.plot(times, table[row], color=colour, linewidth=1.4, label=view.channels[row])
    axes.axhline(0, color=INK, linewidth=0.5)
    axes.axvline(0, color=INK, linewidth=0.5, linestyle=":")
    axes.set_xlabel("time in ms")
    axes.set_xlim(times[0], times[-1])
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8, ncols=NAMED)
    _plain(axes)
    named = ", ".join(view.channels[row] for row in furthest)
    shown = count(len(table), "channel")
    return Picture(to_png(figure), f"{name}: course of {shown}, furthest {named}")


def _grid(view: EegView, table: Array, name: str) -> Picture:
    """Channels by bands in colour."""
    figure = Figure(figsize=SIZE, dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    top = _top(table)
    drawn = axes.imshow(table.T, cmap=PALETTE, vmin=-top, vmax=top, aspect="auto")
    axes.set_yticks(range(table.shape[1]), list(view.bands))
    if len(table) <= 32:
        axes.set_xticks(range(len(table)), view.channels, rotation=90)
    axes.tick_params(labelsize=8, length=0)
    figure.colorbar(drawn, ax=axes, shrink=0.8)
    return Picture(to_png(figure), f"{name}: {count(table.shape[1], 'band')} on the channels")


def _peaks(view: EegView, table: Array) -> list[int]:
    """Samples of the largest peaks of global field power, in order of time."""
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
    top = _top(columns)
    width = 1.0 / len(titles)
    for place, (values, title) in enumerate(zip(columns.T, titles, strict=True)):
        axes = figure.add_axes((place * width, 0.02, width, 0.84))
        plot_topomap(
            values, info, axes=axes, show=False, cmap=PALETTE, vlim=(-top, top), contours=4
        )
        axes.set_title(title, fontsize=9, color=INK)
    return Picture(to_png(figure), f"{name}: topography at {', '.join(titles)}, seen from above")


def _places(channels: Sequence[str]) -> Any:
    """Electrodes of the 10-20 system (or 10-05) in MNE's form, or None."""
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


def _bars(labels: Sequence[str], values: Array, name: str) -> Picture:
    """Show the largest entries as bars."""
    largest = np.argsort(-np.abs(values), kind="stable")[:MOST_BARS]
    width, height = SIZE[0], max(1.2, 0.5 + 0.26 * len(largest))
    figure = Figure(figsize=(width, height), dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    shown = values[largest][::-1]
    axes.barh(range(len(shown)), shown, color=[RED if v > 0 else BLUE for v in shown])
    axes.set_yticks(range(len(shown)), [labels[k][:40] for k in largest][::-1])
    axes.axvline(0, color=INK, linewidth=0.5)
    _plain(axes)
    return Picture(
        to_png(figure), f"{name}: largest entries {', '.join(labels[k] for k in largest[:5])}"
    )


def _top(values: Array) -> float:
    return float(np.abs(values).max()) or 1.0


def _plain(axes: Any) -> None:
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
