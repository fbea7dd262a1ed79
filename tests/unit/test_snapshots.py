"""State as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from include.testbeds.snapshots import F64, I64


@pytest.mark.parametrize(("kind", "dtype"), [(I64, np.int64), (F64, np.float64)])
@pytest.mark.parametrize("numbers", [[], [3, 4]])
def test_an_array_is_read_as_the_kind_that_it_was(kind: Any, dtype: Any, numbers: list[int]):
    plain = TypeAdapter(kind).dump_python(np.array(numbers, dtype=dtype))
    assert TypeAdapter(kind).validate_python(plain).dtype == dtype
