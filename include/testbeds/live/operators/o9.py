"""O9, Generate Report: a PDF over every N values of the overall equipment effectiveness."""

from __future__ import annotations

import io
from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import Effectiveness, decode
from include.testbeds.live.operators.wire import Item, ItemId

VALUES_PER_REPORT = 300
"""Table 2, for a topology in which nobody takes the reports."""
LINES_PER_COLUMN = 50
COLUMNS = 3
MARGIN_PT, LINE_PT, COLUMN_PT, FONT_PT = 50, 14, 170, 9


def code(place: Place) -> Process:
    """A report whenever as many values are together as the edge takes items for one.

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
