"""What filters remember: plain values, so that a window can store them and the next go on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NothingKept:
    """The identity has no memory."""


@dataclass(frozen=True, slots=True)
class History:
    """By operator: time and metrics of every average in the window, one after the other."""

    of: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """What the dead time has taught about an operator: a and b of f, and Q row after row."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    q: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Regression:
    """Sums for least squares of dz = a D + b dD: of u u' (2, 2) and of u dz' (2, metrics)."""

    uu: tuple[float, ...]
    uz: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EkfMemory:
    """Operators by name, and the filters of their instances as columns, in one order.

    ``x`` and ``p`` hold, row after row, state and covariance of each instance. In its dead time
    they hold the sums of eq. 16 and 17 over its ``measurements``, which are 0 afterwards.
    """

    metrics: int = 0
    rate: dict[str, float] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    """Of operators that are through their dead time."""
    fits: dict[str, Regression] = field(default_factory=dict)
    """Of operators in their first dead time, unless a and b are given."""
    instances: tuple[str, ...] = ()
    operators_of: tuple[str, ...] = ()
    begun_s: tuple[float, ...] = ()
    measurements: tuple[int, ...] = ()
    z: tuple[float, ...] = ()
    x: tuple[float, ...] = ()
    p: tuple[float, ...] = ()


FilterMemory = NothingKept | History | EkfMemory
