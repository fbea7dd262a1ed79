"""Type of an operator's code: a function from an item to its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from include.testbeds.live.operators.settings import Target
from include.testbeds.live.operators.state import State
from include.testbeds.live.operators.wire import Item, ItemId


@dataclass(frozen=True, slots=True)
class Output:
    """An item to send to an operator."""

    target: str
    id: ItemId
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Context of code: its operator, targets and state."""

    operator: str
    targets: tuple[Target, ...]
    state: State
    service_ms: float = 0.0

    def to_all(self, item_id: ItemId, body: bytes) -> list[Output]:
        return [Output(target.operator, item_id, body) for target in self.targets]


Process = Callable[[Item], Sequence[Output]]
"""Deterministic for the item and the state's answers. Raises ValueError for an unreadable item,
which is noted and dropped."""
Code = Callable[[Place], Process]
