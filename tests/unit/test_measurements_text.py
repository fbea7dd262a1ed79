"""Text goes to Arrow and back without pandas or pyarrow.compute, which cost a run 50 MB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from include.runs.measurements.text import coded_text, text_array
from include.testbeds.columns import Coded
from tests.kernel.worlds import printed

names = st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6))


@given(names)
def test_arrow_has_the_text_and_gives_it_back(texts: list[str]) -> None:
    array = text_array(texts)
    array.validate(full=True)
    assert array.to_pylist() == texts
    codes, distinct = coded_text(array)
    assert [distinct[code] for code in codes] == texts
    assert list(distinct) == sorted(set(texts))


@given(names.filter(bool), st.data())
def test_codes_are_the_same_text(texts: list[str], data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    array = text_array(Coded(np.array(codes, dtype=np.int64), tuple(texts)))
    assert array.equals(text_array([texts[code] for code in codes]))


def test_a_slice_has_its_own_text() -> None:
    codes, distinct = coded_text(pa.array(["a", "bb", "a", "c"]).slice(1, 2))
    assert [distinct[code] for code in codes] == ["bb", "a"]


RUN = """
import os, sys
from pathlib import Path
from include.experiment.spec import RunSpec
from include.runs.stages import run_all
spec = RunSpec(experiment="e", controller="btu", pattern="constant",
               pattern_options={"level": 1}, btu_min=10, seed=1, duration_min=1)
run_all(spec, Path(os.environ["ROOT"]))
print({"pandas", "pyarrow.compute", "cffi"} & sys.modules.keys())
"""


def test_a_run_loads_neither_pandas_nor_functions_of_arrow(tmp_path) -> None:
    assert printed(RUN, ROOT=str(tmp_path)).strip() == "set()"
