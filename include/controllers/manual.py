"""Instances at the start that a person sets: ``"parse=4 store=2"``."""

from __future__ import annotations

from collections.abc import Iterator

from include.model.errors import unknown_name
from include.model.topology import Topology

TOPOLOGY = "topology"
"""Leave all as the topology says."""


def manual_instances(text: str, topology: Topology) -> dict[str, int]:
    """Instances of every operator: of those named in ``text`` that many, else as submitted.

    A name stands for the operators of that name of every tenant.
    """
    pairs = (pair.partition("=") for pair in text.split() if "=" in pair)
    numbers = {name: int(number) for name, _, number in pairs}
    return {
        op.name: numbers.get(_plain(op.name), op.instances_at_start)
        for op in topology.operators
        if not op.runs_in
    }


def manual_problems(text: str, topology: Topology) -> Iterator[str]:
    """Everything wrong with the text, each with what to do."""
    options = {_plain(name) for name in topology.operator_names}
    for pair in () if text == TOPOLOGY else text.split():
        name, _, number = pair.partition("=")
        if not number.isdigit() or int(number) < 1:
            yield f"instances: write name=number with a number of at least 1, got {pair!r}"
        elif name not in options:
            yield f"instances: {unknown_name('operator', name, options)}"


def _plain(name: str) -> str:
    """An operator's name without that of its tenant."""
    return name.rpartition(".")[2]
