"""Columns of parts of a table, below each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from include.runs.measurements.rows import SAMPLES
from include.runs.measurements.store import to_arrow
from include.testbeds.columns import Coded, joined

PARTS: list[dict[str, Any]] = [
    {
        "time_s": np.array([1.0, 2.0]),
        "operator": Coded(np.array([1, 0]), ("O1", "O2")),
        "instance": ["O2-1", "O1-1"],
        "duration_ms": np.array([5.0, 6.0]),
        "wait_ms": np.array([0.5, 1.0]),
        "age_ms": [7.0, 8.0],
    },
    {},
    {
        "time_s": [3.0],
        "operator": Coded(np.array([1]), ("O3", "O1")),
        "instance": ["O1-2"],
        "duration_ms": np.array([10.0]),
        "wait_ms": np.array([1.5]),
        "age_ms": np.array([11.0]),
    },
]


@pytest.mark.parametrize("parts", [PARTS, PARTS[::-1], PARTS[:2], PARTS[1:2], []])
def test_joined_columns_are_the_rows_of_all_parts_in_their_order(parts: list[dict[str, Any]]):
    apart = pa.concat_tables([to_arrow(SAMPLES, {}), *(to_arrow(SAMPLES, part) for part in parts)])
    assert to_arrow(SAMPLES, joined(parts)).to_pylist() == apart.to_pylist()


def test_text_that_parts_share_has_one_code():
    column = joined(PARTS)["operator"]
    assert column.names == ("O1", "O2", "O3")
    assert column.codes.tolist() == [1, 0, 0]
