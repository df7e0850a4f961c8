"""Small PNGs of strangers' pictures: decoded, scaled and encoded anew, so that nothing of the file
is passed on but its pixels."""

from __future__ import annotations

import io
import warnings

from PIL import Image, UnidentifiedImageError

from core.english import gettext as _
from core.errors import CountersignError
from registry.icons.declared import SIDE

# SVG is a document with scripts, links and entities; whoever declares one nearly always has a PNG.
FORMATS = ("PNG", "JPEG", "WEBP")
# A file of 100 kB may hold a picture of gigabytes.
SIDE_MAX = 2048
# Pages have light ground behind icons in both themes; one for dark ground brings it along.
CLEAR, DARK = (0, 0, 0, 0), (24, 28, 32, 255)


class IconRefused(CountersignError):
    """The picture cannot be shown; says why."""


def render(content: bytes, *, is_for_dark: bool) -> bytes:
    """A PNG of at most SIDE pixels each way. Raises IconRefused."""
    try:
        with (
            warnings.catch_warnings(action="error"),
            Image.open(io.BytesIO(content), formats=FORMATS) as picture,
        ):
            return _drawn(picture, DARK if is_for_dark else CLEAR)
    except UnidentifiedImageError:
        raise IconRefused(_("It is no PNG, JPEG or WebP picture.")) from None
    except IconRefused:
        raise
    except Exception as error:
        # Decoders fail in many ways, and so do guards against pictures that would fill memory.
        raise IconRefused(_("It cannot be read as a picture.")) from error


def _drawn(picture: Image.Image, ground: tuple[int, int, int, int]) -> bytes:
    if max(picture.size) > SIDE_MAX:
        # The header says so: nothing was decoded yet.
        raise IconRefused(_("It is larger than %(n)d pixels.") % {"n": SIDE_MAX})
    small = picture.convert("RGBA")
    small.thumbnail((SIDE, SIDE))
    # Without what the file said of itself: dates, places, profiles.
    clean = Image.alpha_composite(Image.new("RGBA", small.size, ground), small)
    out = io.BytesIO()
    clean.save(out, "PNG", optimize=True)
    return out.getvalue()
