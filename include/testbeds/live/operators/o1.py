"""O1, Parse and Distribute Data: reads the picture of a display and passes on what it says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.picture import CHECK, LABELS, check_number
from include.testbeds.live.operators.readings import Production, encode
from include.testbeds.live.operators.wire import Item

TESSERACT = (
    "tesseract", "stdin", "stdout", "--oem", "1", "--psm", "6",
    "-c", "tessedit_char_whitelist=ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ",
)  # fmt: skip
"""The network recogniser on one uniform block of capital letters and digits."""
LINE = re.compile(r"^.*?\s(\d+)$")
TIMEOUT_S = 60


def code(place: Place) -> Process:
    """One item of production data to every target, in the order of the topology."""

    def process(item: Item) -> Sequence[Output]:
        body = encode(production_of(text_of(item.body)))
        return place.to_all(item.id.through(place.operator), body)

    return process


def text_of(picture: bytes) -> str:
    """The text on a picture. Raises ValueError when it is no picture."""
    done = subprocess.run(
        TESSERACT,
        input=picture,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},  # an instance is sized in shares of one core
    )
    if done.returncode != 0:
        raise ValueError(f"not readable as a picture: {done.stderr.decode()[:200].strip()}")
    return done.stdout.decode()


def production_of(text: str) -> Production:
    """The reading on a display. Raises ValueError when a line is missing or read wrongly."""
    found = [match[1] for line in text.splitlines() if (match := LINE.match(line.strip()))]
    expected = len(LABELS) + 1
    if len(found) != expected:
        raise ValueError(f"{len(found)} of {expected} lines of a display could be read")
    *values, check = (int(one) for one in found)
    if check != check_number(tuple(values)):
        raise ValueError(f"the {CHECK.lower()} number of a display does not fit its lines")
    return Production(*values)
