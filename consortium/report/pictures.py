"""Pictures of a page: WebP bytes in the page itself, with a description in words.

Also the common parts of pictures other than brains.
"""

import base64
import io
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

SIZE = (6.6, 2.5)
"""Width and height of a picture in inches; with the resolution, 990 x 375 pixels."""
DOTS = 150
QUALITY = 80
"""Quality of WebP: half of the bytes of a PNG. A page of a hundred maps then opens at once."""
EFFORT = 2
"""How hard the encoder tries, 0 to 6. Pillow's 4 takes twice the time for 5 % fewer bytes."""
PALETTE = "RdBu_r"
WIDTH = 990
"""Pixels across that a page gives a picture."""
INK = "#16202b"
SOFT = "#8a97a3"
RED = "#b3272d"
BLUE = "#1f5f99"


class Picture(NamedTuple):
    """A picture of a page: WebP bytes, and a description in words."""

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
    """Pictures that belong together, their caption, and further ones that the reader can open."""

    pictures: tuple[Picture, ...]
    note: str = ""
    heading: str = ""
    more: tuple[Picture, ...] = ()


def to_picture(figure: Figure, text: str) -> Picture:
    """Draw a figure on white as a picture of a page."""
    return pack_picture(to_pixels(figure, "white").convert("RGB"), text)


def to_pixels(figure: Figure, ground: str) -> Image.Image:
    """Draw a figure on a colour, or on ``none``, and return its pixels with their opacity."""
    figure.set_facecolor(ground)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.array(canvas.buffer_rgba()))


def pack_picture(image: Image.Image, text: str) -> Picture:
    """Store pixels as a picture of a page."""
    stored = io.BytesIO()
    image.save(stored, format="webp", quality=QUALITY, method=EFFORT)
    return Picture(stored.getvalue(), text)


def largest_size(values: NDArray[Any]) -> float:
    """Return the end of a picture's scale of colours: the largest size, or 1 if all are zero."""
    return float(np.abs(values).max()) or 1.0


def plain_axes(axes: Any) -> None:
    """Draw a figure's axes on two sides only."""
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
