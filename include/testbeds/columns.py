"""Columns of text as codes and names: what a testbed hands over instead of a million strings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Coded(NamedTuple):
    """Row ``i`` reads ``names[codes[i]]``."""

    codes: np.ndarray
    names: tuple[str, ...]


def coded(numbers: np.ndarray, template: str) -> Coded:
    """Numbers as text, each through ``template`` (one ``{}``)."""
    known, codes = np.unique(numbers, return_inverse=True)
    return Coded(codes, tuple(template.format(number) for number in known))
