"""Columns of text between Arrow and numpy, without pyarrow.compute and what it loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from include.testbeds.columns import Coded


def text_array(column: Coded | Sequence[str]) -> pa.Array:
    """A column of text as Arrow has it: all letters in a row, and where each text ends."""
    import numpy as np
    import pyarrow as pa

    from include.testbeds.columns import Coded

    names = column.names if isinstance(column, Coded) else column
    texts = np.array([name.encode() for name in names], dtype=object)
    lengths = np.array([*map(len, texts)], dtype=np.int32)
    if isinstance(column, Coded):
        texts, lengths = texts[column.codes], lengths[column.codes]
    ends = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=ends[1:])
    letters = b"".join(texts.tolist())
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(letters))


def coded_text(array: pa.Array) -> Coded:
    """A column of Arrow's as codes and names, which are sorted."""
    import numpy as np

    from include.testbeds.columns import Coded

    ends = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset :][: len(array) + 1]
    letters = np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    lengths = np.diff(ends)
    padded = np.zeros((len(array), max(1, lengths.max(initial=0))), dtype=np.uint8)
    padded[np.arange(padded.shape[1]) < lengths[:, np.newaxis]] = letters
    texts = padded.view(f"S{padded.shape[1]}").ravel()
    names, codes = np.unique(texts, return_inverse=True)
    return Coded(codes, tuple(name.decode() for name in names))
