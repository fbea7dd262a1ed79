"""The operators of the manufacturing topology, O1 to O9 (PeerJ CS 141, Table 2 and Eqs. 2 to 5)."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.picture import CHECK, LABELS, check_number
from include.testbeds.live.operators.readings import (
    DEFECT,
    Component,
    Effectiveness,
    Production,
    Status,
    Temperature,
    decode,
    encode,
)
from include.testbeds.live.operators.wire import Item, ItemId

TESSERACT = (
    "tesseract", "stdin", "stdout", "--oem", "1", "--psm", "6",
    "-c", "tessedit_char_whitelist=ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ",
)  # fmt: skip
"""The network recogniser on one uniform block of capital letters and digits."""
LINE = re.compile(r"^.*?\s(\d+)$")
TIMEOUT_S = 60
LIMIT_CELSIUS = 80.0
"""The paper speaks of a predefined threshold and does not say which."""
COMPONENTS = ("availability", "performance", "quality")
VALUES_PER_REPORT = 300
"""Table 2, for a topology in which nobody takes the reports."""
LINES_PER_COLUMN = 50
COLUMNS = 3
MARGIN_PT, LINE_PT, COLUMN_PT, FONT_PT = 50, 14, 170, 9


def o1(place: Place) -> Process:
    """O1, Parse and Distribute Data: reads the picture of a display and passes on what it says.

    One item of production data to every target, in the order of the topology.
    """

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
    readings = [match[1] for line in text.splitlines() if (match := LINE.match(line.strip()))]
    expected = len(LABELS) + 1
    if len(readings) != expected:
        raise ValueError(f"{len(readings)} of {expected} lines of a display could be read")
    *values, check = (int(text) for text in readings)
    if check != check_number(tuple(values)):
        raise ValueError(f"the {CHECK.lower()} number of a display does not fit its lines")
    return Production(*values)


def o2(place: Place) -> Process:
    """O2, Filter Availability: a warning for each new defect of a machine; everything else ends.

    The status itself is the warning.
    """

    def process(item: Item) -> Sequence[Output]:
        status = decode(Status, item.body)
        defect = status.status == DEFECT
        if not place.state.is_new_incident(item.id, status.machine, status.time_ms, defect):
            return ()
        return place.to_all(item.id.through(place.operator), item.body.rstrip())

    return process


def o3(place: Place) -> Process:
    """O3, Calculate Performance of the last reporting cycle (Eq. 2).

    One component for each production reading.
    """

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Production, item.body)
        value = performance(reading.produced, reading.ideal_ms, reading.cycle_ms)
        part = Component(reading.machine, reading.time_ms, "performance", value)
        return place.to_all(item.id.through(place.operator), encode(part))

    return process


def performance(produced: int, ideal_ms: int, cycle_ms: int) -> float:
    """Eq. 2: produced items x ideal production time / reporting cycle."""
    if cycle_ms <= 0:
        raise ValueError("a reporting cycle of no length")
    return produced * ideal_ms / cycle_ms


def o4(place: Place) -> Process:
    """O4, Calculate Availability since production began (Eq. 3).

    One component for each production reading.
    """

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Production, item.body)
        amounts = (reading.cycle_ms, reading.scheduled_ms, reading.unscheduled_ms)
        value = availability(*place.state.add_up(item.id, reading.machine, amounts))
        part = Component(reading.machine, reading.time_ms, "availability", value)
        return place.to_all(item.id.through(place.operator), encode(part))

    return process


def availability(total_ms: int, scheduled_ms: int, unscheduled_ms: int) -> float:
    """Eq. 3: (total time - scheduled downtime - unscheduled downtime) / total time."""
    if total_ms <= 0:
        raise ValueError("no production time yet")
    return (total_ms - scheduled_ms - unscheduled_ms) / total_ms


def o5(place: Place) -> Process:
    """O5, Calculate Quality since production began (Eq. 4).

    One component for each production reading.
    """

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Production, item.body)
        amounts = (reading.produced, reading.defective)
        value = quality(*place.state.add_up(item.id, reading.machine, amounts))
        part = Component(reading.machine, reading.time_ms, "quality", value)
        return place.to_all(item.id.through(place.operator), encode(part))

    return process


def quality(produced: int, defective: int) -> float:
    """Eq. 4: (produced goods - defective goods) / produced goods.

    A machine that has produced nothing has produced nothing bad: 1.
    """
    return (produced - defective) / produced if produced else 1.0


def o6(place: Place) -> Process:
    """O6, Monitor Temperature: a notification for each time a machine becomes too hot.

    The reading itself is the notification; temperatures up to the limit end here.
    """

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Temperature, item.body)
        hot = reading.celsius > LIMIT_CELSIUS
        if not place.state.is_new_incident(item.id, reading.machine, reading.time_ms, hot):
            return ()
        return place.to_all(item.id.through(place.operator), item.body.rstrip())

    return process


def o7(place: Place) -> Process:
    """O7, Calculate OEE: joins the three components of a machine and time (Eq. 5).

    One value for every three components, sent when the last of them has come.

    It is named after the reading all three derive from, whichever of them came last.
    """

    def process(item: Item) -> Sequence[Output]:
        part = decode(Component, item.body)
        if part.kind not in COMPONENTS:
            raise ValueError(f"no component of the OEE: {part.kind!r}")
        of_kind = (part.kind, repr(part.value))
        joined = place.state.join(part.machine, part.time_ms, of_kind, len(COMPONENTS))
        if not joined:
            return ()
        factors = {kind: float(text) for kind, text in joined.items()}
        value = Effectiveness(part.machine, part.time_ms, oee(**factors))
        return place.to_all(ItemId(place.operator, item.id.number), encode(value))

    return process


def oee(availability: float, performance: float, quality: float) -> float:
    """Eq. 5: availability x performance x quality."""
    return availability * performance * quality


def o8(place: Place) -> Process:
    """O8, Inform User: the end of the topology. As in the paper, it takes items and does nothing.

    That an item counts once, however often it comes, is the ledger's work (``ledger.py``).

        Nothing leaves.
    """

    def process(item: Item) -> Sequence[Output]:
        return ()

    return process


def o9(place: Place) -> Process:
    """O9, Generate Report: a PDF over every N values of the overall equipment effectiveness.

    A report whenever as many values are together as the edge takes items for one.

    The report is named by its number; the item that completed it makes it again if need be.
    """
    per_target = (target.items_in // target.items_out for target in place.targets)
    values_per_report = max(per_target, default=VALUES_PER_REPORT)

    def process(item: Item) -> Sequence[Output]:
        value = decode(Effectiveness, item.body)
        line = f"{value.machine} {value.time_ms} {value.oee:.6f}"
        batch = place.state.collect(item.id, line, values_per_report)
        if batch is None:
            return ()
        number, lines = batch
        return place.to_all(ItemId(place.operator, number), report(number, lines))

    return process


def report(number: int, lines: Sequence[str]) -> bytes:
    """A PDF of lines ``machine time_ms oee`` under their mean; the same for the same lines."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    height = A4[1]
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    mean = sum(float(line.split()[2]) for line in lines) / len(lines)
    per_page = LINES_PER_COLUMN * COLUMNS
    for start in range(0, len(lines), per_page):
        canvas.setFont("Helvetica-Bold", FONT_PT + 3)
        title = f"Overall equipment effectiveness, report {number}: mean {mean:.4f}"
        canvas.drawString(MARGIN_PT, height - MARGIN_PT, title)
        canvas.setFont("Helvetica", FONT_PT)
        for index, line in enumerate(lines[start : start + per_page]):
            column, row = divmod(index, LINES_PER_COLUMN)
            x, y = MARGIN_PT + column * COLUMN_PT, height - MARGIN_PT - (row + 2) * LINE_PT
            canvas.drawString(x, y, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
