"""What tables need to know of durations, counted while they are measured.

Every tenth item is a row of ``processing_duration``, by far the largest table. All that is
published of them follows from counts: how many took how long, and what they took together in each
monitoring period. Counts are whole numbers, so they add up to the same in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from include.model.compliance import LEVELS
from include.runs.measurements.rows import DURATION_COUNT, DURATION_SUM
from include.runs.measurements.text import coded_text

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BINS_PER_E = 25.0
"""Bins of a histogram of durations while 1 ms + duration grows by a factor of e: the middle of a
bin is within 2 % and 0.02 ms of what is in it."""
LONGEST_MS = 1e12
"""A duration that is longer, or not a number, is in the last bin."""
BINS = int(math.log(1 + LONGEST_MS) * BINS_PER_E) + 1

KEYS = {DURATION_COUNT: ("operator", "bin"), DURATION_SUM: ("operator", "period")}
"""Summaries, and what their rows are known by; all other columns are added up."""

WINDOWS_AT_ONCE = 16


def summarised(
    samples: Mapping[str, Any],
    slo_ms: Mapping[str, float],
    *,
    duration_s: float,
    monitor_every_s: float,
) -> dict[str, dict[str, Any]]:
    """``duration_count`` and ``duration_sum`` as columns, from those of ``processing_duration``.

    ``slo_ms`` has every operator of the run, which takes ``duration_s``. Samples of operators that
    the run does not have are late at no level, and never outside.
    """
    import numpy as np

    from include.testbeds.columns import Coded

    if not samples:
        return {}
    codes, names = samples["operator"]
    codes = np.asarray(codes, dtype=np.int64)
    has_slo = np.array([name in slo_ms for name in names], dtype=bool)[codes]
    slo = np.array([slo_ms.get(name, math.inf) for name in names])[codes]
    time_s, duration_ms, wait_ms, age_ms = (
        np.asarray(samples[name], dtype=float)
        for name in ("time_s", "duration_ms", "wait_ms", "age_ms")
    )
    count = partial(np.bincount, minlength=len(names) * BINS)
    bins = codes * BINS + _bin_of(duration_ms)
    counted = {
        "samples": count(bins),
        "ages": count(codes * BINS + _bin_of(age_ms)),
        **{f"{name}_late": count(bins[duration_ms > factor * slo]) for name, factor in LEVELS},
        "bad": count(bins[~((duration_ms >= 0) & (wait_ms >= 0) & (age_ms >= 0))]),
        "outside": count(bins[has_slo & ((time_s < 0) | (time_s > duration_s))]),
    }
    there = np.flatnonzero(counted["samples"] + counted["ages"])
    return {
        DURATION_COUNT: {
            "operator": Coded(there // BINS, names),
            "bin": there % BINS,
            **{name: values[there] for name, values in counted.items()},
        },
        DURATION_SUM: _sums(codes, names, np.floor(time_s / monitor_every_s), duration_ms),
    }


class Total:
    """One summary of those of all windows, in the order of what its rows are known by.

    In memory are the rows of a few windows, or those of one operator; the rest is in a file.
    With numpy, because grouping with pyarrow imports pandas: 40 MB, and as long as half an hour
    of a run.
    """

    def __init__(self, table: str, file: IO[bytes]) -> None:
        """Of one of ``KEYS``, without a row yet. ``file`` is empty, and nobody else's."""
        self._key = KEYS[table][1]
        self._file = file
        self._pending: list[pa.Table] = []
        self._names = [self._key]
        self._rows_of: dict[str, list[tuple[int, int]]] = {}
        """By operator: where its rows begin in the file, and how many they are."""

    def add(self, rows: pa.Table) -> None:
        self._pending.append(rows)
        if len(self._pending) == WINDOWS_AT_ONCE:
            self._add_pending()

    def columns(self) -> Iterator[dict[str, Any]]:
        """The rows of one operator after the other, as columns."""
        import numpy as np

        from include.testbeds.columns import Coded

        if self._pending:
            self._add_pending()
        for operator in sorted(self._rows_of):
            rows = _added_up(list(self._read(operator)))
            codes = np.zeros(rows.shape[1], dtype=np.int32)
            numbers = dict(zip(self._names, rows, strict=True))
            yield {"operator": Coded(codes, (operator,)), **numbers}

    def _add_pending(self) -> None:
        import numpy as np
        import pyarrow as pa

        rows = pa.concat_tables(self._pending).combine_chunks()
        self._pending = []
        if not rows.num_rows:
            return
        names = [name for name in rows.column_names if name not in ("operator", self._key)]
        self._names = [self._key, *names]
        codes, operators = coded_text(rows["operator"].chunk(0))
        numbers = np.stack([_numbers(rows[name].chunk(0)) for name in self._names])
        for code, operator in enumerate(operators):
            added_up = _added_up([numbers[:, codes == code]])
            place = self._file.tell(), added_up.shape[1]
            self._rows_of.setdefault(operator, []).append(place)
            self._file.write(added_up.tobytes())

    def _read(self, operator: str) -> Iterator[np.ndarray]:
        import numpy as np

        for start, rows in self._rows_of[operator]:
            self._file.seek(start)
            content = self._file.read(8 * rows * len(self._names))
            yield np.frombuffer(content, dtype=np.int64).reshape(len(self._names), rows)


def _added_up(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Columns with the same key, which is the first row, added up; sorted by it."""
    import numpy as np

    columns = np.concatenate(parts, axis=1)
    columns = columns[:, np.argsort(columns[0], kind="stable")]
    keys, starts = np.unique(columns[0], return_index=True)
    sums: np.ndarray = np.add.reduceat(columns, starts, axis=1)
    sums[0] = keys
    return sums


def _numbers(values: pa.Array) -> np.ndarray:
    """Numbers without a null, viewed; ``to_numpy`` imports pandas."""
    import numpy as np

    start, kind = values.offset, str(values.type)
    numbers: np.ndarray = np.frombuffer(values.buffers()[1], dtype=kind)
    return numbers[start : start + len(values)]


def _sums(
    codes: np.ndarray, names: tuple[str, ...], periods: np.ndarray, duration_ms: np.ndarray
) -> dict[str, Any]:
    import numpy as np

    from include.testbeds.columns import Coded

    first = int(periods.min()) if len(periods) else 0
    width = (int(periods.max()) if len(periods) else 0) - first + 1
    numbers = codes * width + (periods.astype(np.int64) - first)
    samples = np.bincount(numbers, minlength=len(names) * width)
    # Whole microseconds: unlike fractions they add up to the same in any order.
    total_us = np.zeros(len(samples), dtype=np.int64)
    np.add.at(total_us, numbers, (_bounded(duration_ms) * 1000 + 0.5).astype(np.int64))
    there = np.flatnonzero(samples)
    return {
        "operator": Coded(there // width, names),
        "period": there % width + first,
        "samples": samples[there],
        "total_us": total_us[there],
    }


def _bin_of(times_ms: Any) -> np.ndarray:
    import numpy as np

    bins: np.ndarray = (np.log(1 + _bounded(times_ms)) * BINS_PER_E).astype(np.int64)
    return bins


def _bounded(times_ms: Any) -> np.ndarray:
    import numpy as np

    times = np.asarray(times_ms, dtype=float)
    bounded: np.ndarray = np.clip(np.where(np.isnan(times), LONGEST_MS, times), 0, LONGEST_MS)
    return bounded
