"""The display of a machine as a camera sees it: what S2 emits and O1 reads (Table 1: 12,500 bytes).

The last line is a check number over the others, so that a digit read wrongly is noticed rather
than reported.
"""

from __future__ import annotations

import io
from dataclasses import astuple, fields
from typing import Any

from include.testbeds.live.operators.readings import PICTURE_BYTES, Production

LABELS = tuple(field.name.removesuffix("_ms").upper() for field in fields(Production))
CHECK = "CHECK"
CHECK_MODULUS = 9973
SIZE_PX = (400, 370)
FONT_PX = 26
LINE_PX = 39
QUALITY = 30


def lines_of(production: Production) -> tuple[str, ...]:
    """The text on the display, one labelled number per line."""
    values: tuple[int, ...] = astuple(production)
    shown = [f"{label} {value}" for label, value in zip(LABELS, values, strict=True)]
    return (*shown, f"{CHECK} {check_number(values)}")


def check_number(values: tuple[int, ...]) -> int:
    """Differs when one digit of one value does, or two values are swapped."""
    total = 0
    for value in values:
        total = (total * 31 + value) % CHECK_MODULUS
    return total


def picture_of(production: Production, size_bytes: int = PICTURE_BYTES) -> bytes:
    """A JPEG of the display, filled with a comment up to a size; the same for the same reading."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("L", SIZE_PX, 236)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(FONT_PX)
    for row, line in enumerate(lines_of(production)):
        draw.text((20, 10 + row * LINE_PX), line, fill=24, font=font)
    plain = _jpeg(image, b"")
    missing = size_bytes - len(plain)
    # A comment costs four bytes of its own.
    return _jpeg(image, b" " * (missing - 4)) if missing > 4 else plain


def _jpeg(image: Any, comment: bytes) -> bytes:
    buffer = io.BytesIO()
    options = {"comment": comment} if comment else {}
    image.save(buffer, format="JPEG", quality=QUALITY, **options)
    return buffer.getvalue()
