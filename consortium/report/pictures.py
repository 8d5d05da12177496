"""A picture as a page holds it: WebP bytes in the page itself, with what they show in words."""

import base64
import io
from typing import NamedTuple

from matplotlib.figure import Figure
from PIL import Image

SIZE = (6.6, 2.5)
"""Width and height of a picture in inches; with the resolution, 990 x 375 pixels."""
DOTS = 150
QUALITY = 80
"""Of WebP: half of the bytes of a PNG, so that a page of a hundred maps opens at once."""
PALETTE = "RdBu_r"
WIDTH = 990
"""Pixels across that a page gives a picture."""


class Picture(NamedTuple):
    """A WebP, and what it shows in words."""

    webp: bytes
    text: str

    @property
    def address(self) -> str:
        """The picture as the address of an image."""
        return "data:image/webp;base64," + base64.b64encode(self.webp).decode()

    @property
    def height(self) -> int:
        """Pixels down, at `WIDTH` across."""
        with Image.open(io.BytesIO(self.webp)) as image:
            return round(image.height * WIDTH / image.width)


class Drawing(NamedTuple):
    """Pictures that belong together, what to say below them, and more of them for who asks."""

    pictures: tuple[Picture, ...]
    note: str = ""
    heading: str = ""
    more: tuple[Picture, ...] = ()


def to_picture(figure: Figure, text: str) -> Picture:
    """Draw a figure."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="rgba", facecolor="white")  # PNG would be packed and unpacked
    wide, high = (int(side) for side in figure.bbox.size)
    return pack_picture(
        Image.frombytes("RGBA", (wide, high), drawn.getvalue()).convert("RGB"), text
    )


def pack_picture(image: Image.Image, text: str) -> Picture:
    """Store an image."""
    stored = io.BytesIO()
    image.save(stored, format="webp", quality=QUALITY)
    return Picture(stored.getvalue(), text)
