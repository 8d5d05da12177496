"""A picture as a page holds it: PNG bytes in the page itself, with what they show in words."""

from __future__ import annotations

import base64
import io
from typing import NamedTuple

from matplotlib.figure import Figure
from PIL import Image

SIZE = (6.6, 2.5)
"""Width and height of a picture in inches; with the resolution, 990 x 375 pixels."""
DOTS = 150
COLOURS = 256
"""A picture is stored with so many colours, at a third of the bytes and no visible loss."""
PALETTE = "RdBu_r"
WIDTH = 990
"""Pixels across that a page gives a picture."""


class Picture(NamedTuple):
    """A PNG, and what it shows in words."""

    png: bytes
    text: str

    @property
    def address(self) -> str:
        """The picture as the address of an image."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()

    @property
    def height(self) -> int:
        """Pixels down, at `WIDTH` across."""
        with Image.open(io.BytesIO(self.png)) as image:
            return round(image.height * WIDTH / image.width)


class Drawing(NamedTuple):
    """Pictures that belong together, what to say below them, and more of them for who asks."""

    pictures: tuple[Picture, ...]
    note: str = ""
    heading: str = ""
    more: tuple[Picture, ...] = ()


def to_picture(figure: Figure, text: str) -> Picture:
    """Draw a figure with few colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", facecolor="white")
    stored = io.BytesIO()
    with Image.open(drawn) as picture:
        few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(stored, format="png", optimize=True)
    return Picture(stored.getvalue(), text)
