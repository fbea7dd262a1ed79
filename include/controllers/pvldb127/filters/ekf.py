"""EKF: the extended Kalman filter of PVLDB 12(7), section 2.3, over every instance at once.

State x and measurement z hold the same metrics, so h is the identity (eq. 9). With it and with
f(x, u) = x + a D + b dD the Jacobians F and H are 1, and eq. 12 and 13 need no more than stands
here. How a filter starts (section 2.4) stands at the end: what is collected in the dead time is
kept as sums, so the memory does not grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from include.controllers.pvldb127.filters.base import (
    F64,
    EkfMemory,
    Estimate,
    Measured,
    Model,
    Regression,
)

COLUMNS = ("instances", "operators_of", "begun_s", "measurements", "z", "x", "p")
"""The fields of the memory that have a row for each instance."""
NEW = -1
"""The count of a filter that has taken in nothing yet."""


@dataclass(frozen=True, slots=True)
class Ekf:
    """One filter per instance (eq. 15). ``r``, ``a`` and ``b`` have one value per metric.

    ``r`` is the variance of the measurement noise. Empty ``a`` and ``b`` are fitted to what is
    seen in the first dead time of an operator (a cold start); a warm start gives them.

    Every instance goes through dead time and ease-in for itself. Until then it stands in the
    total with the average of those that are through; an operator without any is not usable.
    """

    r: tuple[float, ...]
    a: tuple[float, ...] = ()
    b: tuple[float, ...] = ()
    dead_time_s: float = 10.0
    ease_in_s: float = 10.0
    q_floor: float = 0.001
    """Lowest Q, as a share of R: eq. 18 may come out at or below 0."""
    keeps_total: bool = False
    """Whether what an instance that leaves had to do goes to those that stay, so that the total of
    eq. 15 is what it was. Else it falls with every instance that is stopped."""
    input_per_instance: bool = False
    """Whether D and dD of eq. 5 are those of the operator divided by its instances."""
    counts: bool = True

    def initial(self) -> EkfMemory:
        return EkfMemory()

    def step(self, memory: EkfMemory, measured: Measured) -> tuple[EkfMemory, Estimate]:
        """Predict and update every filter; or, in the dead time of an instance, collect."""
        if memory.metrics != measured.metrics:
            memory = EkfMemory(metrics=measured.metrics)
        names, rates = measured.operators, measured.rate.tolist()
        before = [memory.rate.get(name, rate) for name, rate in zip(names, rates, strict=True)]
        u = np.stack([measured.rate, measured.rate - before], axis=1)
        if self.input_per_instance:
            u /= np.bincount(measured.operator_of, minlength=len(names))[:, None]
        rows = _Rows.of(memory, measured)
        if self.keeps_total and memory.instances != measured.instances:
            rows.take_over(memory, measured)
        models = {name: memory.models[name] for name in names if name in memory.models}
        fits = self._fits(memory, measured, rows, u)
        self._filter(measured, rows, u, models)
        rows.collect(measured.z)
        age_s = measured.t_s - rows.begun_s
        ends = (rows.count >= 2) & (age_s >= self.dead_time_s - 1e-9)
        places = measured.rows_of() if ends.any() else []
        for o in np.unique(measured.operator_of[ends]).tolist():
            mine = np.flatnonzero(ends[places[o]]) + places[o].start
            fit = fits.pop(names[o], None)
            models[names[o]] = self._start(rows, mine, models.get(names[o]), fit)
        seasoned = (rows.count == 0) & (age_s >= self.dead_time_s + self.ease_in_s - 1e-9)
        kept = EkfMemory(
            metrics=measured.metrics,
            rate=dict(zip(names, rates, strict=True)),
            models=models,
            fits=fits,
            **rows.plain(measured),
        )
        return with_unread(kept, memory, measured), _gathered(measured, rows.x, seasoned)

    def _fits(
        self, memory: EkfMemory, measured: Measured, rows: _Rows, u: F64
    ) -> dict[str, Regression]:
        """The regressions of operators without a model, with what this measurement adds."""
        fits: dict[str, Regression] = {}
        if self.a or all(name in memory.models for name in measured.operators):
            return fits
        change = measured.z - rows.z
        for o, (name, place) in enumerate(zip(measured.operators, measured.rows_of(), strict=True)):
            if name not in memory.models:
                sums = memory.fits.get(name) or no_rows(measured.metrics)
                fits[name] = with_rows(sums, u[o], change[place][rows.known[place]])
        return fits

    def _filter(self, measured: Measured, rows: _Rows, u: F64, models: dict[str, Model]) -> None:
        """Eq. 10 to 14 for every instance that is through its dead time."""
        mine, m = rows.count == 0, measured.metrics
        if not mine.any():
            return
        nobody = Model(a=(0.0,) * m, b=(0.0,) * m, q=(0.0,) * m**2)
        of = [models.get(name, nobody) for name in measured.operators]
        who = measured.operator_of[mine]
        a, b = np.array([one.a for one in of])[who], np.array([one.b for one in of])[who]
        q = np.array([one.q for one in of]).reshape(-1, m, m)[who]
        x, p = predict(rows.x[mine], rows.p[mine], u[who], a, b, q)
        rows.x[mine], rows.p[mine] = update(x, p, measured.z[mine], np.diag(self.r[:m]))

    def _start(
        self, rows: _Rows, mine: np.ndarray, known: Model | None, fit: Regression | None
    ) -> Model:
        """Section 2.4, after the dead time: x0 and P0 of instances; Q, a and b of the operator."""
        m = rows.x.shape[1]
        x0 = initial_state(rows.count[mine], rows.x[mine])
        p0 = covariance(rows.count[mine], x0, rows.p[mine])
        rows.x[mine], rows.p[mine], rows.count[mine] = x0, p0, 0
        if known is not None:
            return known
        q = process_noise(p0.mean(axis=0), np.diag(self.r[:m]), self.q_floor)
        a, b = (self.a[:m], self.b[:m]) if fit is None else least_squares(fit)
        return Model(a=tuple(a), b=tuple(b), q=tuple(q.ravel().tolist()))


def with_unread(now: EkfMemory, before: EkfMemory, measured: Measured) -> EkfMemory:
    """With the operators and instances that were not measured now, as they were."""
    instances = enumerate(zip(before.operators_of, before.instances, strict=True))
    rows = [
        row
        for row, (operator, instance) in instances
        if operator not in now.rate or instance in measured.unread
    ]
    if not rows:
        return now

    kept = dict[str, Any]()
    for name in ("rate", "models", "fits"):
        known = getattr(before, name).items()
        unmeasured = {operator: value for operator, value in known if operator not in now.rate}
        kept[name] = unmeasured | getattr(now, name)
    for name in COLUMNS:
        values = getattr(before, name)
        width = len(values) // len(before.instances)
        unread = chain.from_iterable(values[i * width : (i + 1) * width] for i in rows)
        kept[name] = (*getattr(now, name), *unread)
    return replace(now, **kept)


def predict(x: F64, p: F64, u: F64, a: F64, b: F64, q: F64) -> tuple[F64, F64]:
    """A priori state and covariance. x (n, metrics), p and q (n, metrics, metrics), u (n, 2).

    ``u`` is the input of the period that ends now: D over it, and D less that of the one before.
    """
    x_prior = x + a * u[:, :1] + b * u[:, 1:]  # (10), with f(x, u) = x + a D + b dD
    return x_prior, p + q  # (12), with F = 1


def update(x_prior: F64, p: F64, z: F64, r: F64) -> tuple[F64, F64]:
    """A posteriori state and covariance, given the measurement z (n, metrics)."""
    z_expected = x_prior  # (11)
    gain = p @ np.linalg.inv(p + r)  # (13), with H = 1
    x = x_prior + (gain @ (z - z_expected)[:, :, None])[:, :, 0]  # (14)
    return x, (np.eye(x.shape[1]) - gain) @ p  # not printed in the paper; as in [27]


def _gathered(measured: Measured, x: F64, seasoned: np.ndarray) -> Estimate:
    """Eq. 15, with the average of the seasoned filters in the place of the others."""
    operators = len(measured.operators)
    through = np.bincount(measured.operator_of, seasoned, operators)
    measured_of = np.bincount(measured.operator_of, minlength=operators)
    total = measured.total(np.where(seasoned[:, None], x, 0.0))
    scale = np.divide(measured_of, through, out=np.zeros(operators), where=through > 0)
    return Estimate(total * scale[:, None], through > 0)


@dataclass(slots=True, eq=False)
class _Rows:
    """The filters of the measured instances as arrays.

    ``count`` is 0 once a filter is through its dead time; before, x and p hold sums over that many
    measurements. One that was measured at the time before, too, is ``known``.
    """

    known: np.ndarray
    begun_s: F64
    count: np.ndarray
    z: F64
    x: F64
    p: F64

    @classmethod
    def of(cls, memory: EkfMemory, measured: Measured) -> _Rows:
        """The stored rows, in the order of the measured instances."""
        m, n = measured.metrics, len(memory.instances)
        stored = (
            np.array(memory.begun_s, dtype=float),
            np.array(memory.measurements, dtype=np.int64),
            np.array(memory.z, dtype=float).reshape(n, m),
            np.array(memory.x, dtype=float).reshape(n, m),
            np.array(memory.p, dtype=float).reshape(n, m, m),
        )
        if memory.instances == measured.instances:
            return cls(np.ones(n, dtype=bool), *stored)
        row = {name: i for i, name in enumerate(memory.instances)}
        at = np.array([row.get(name, n) for name in measured.instances], dtype=np.int64)
        known = at < n
        # One row of zeros at the end stands for every new instance.
        wide = (np.concatenate([one, np.zeros((1, *one.shape[1:]), one.dtype)]) for one in stored)
        rows = cls(known, *(one[at] for one in wide))
        rows.begun_s[~known], rows.count[~known] = measured.t_s, NEW
        return rows

    def take_over(self, memory: EkfMemory, measured: Measured) -> None:
        """Raise the states of those that stay to the total with those that have left."""
        stay = np.bincount(measured.operator_of, self.known, len(measured.operators))
        instances = zip(memory.operators_of, memory.instances, strict=True)
        before = [operator for operator, instance in instances if instance not in measured.unread]
        had = np.array([before.count(name) for name in measured.operators])
        share = np.divide(had, stay, out=np.ones(len(stay)), where=stay > 0)
        through = self.count == 0
        self.x[through] *= share[measured.operator_of[through]][:, None]

    def collect(self, z: F64) -> None:
        """Add a measurement to the sums of eq. 16 and 17 of filters in their dead time."""
        dead = self.count != 0
        if not dead.any():
            return
        self.count[dead] = np.maximum(self.count[dead], 0) + 1
        i = self.count[dead][:, None]
        self.x[dead] += i * z[dead]
        self.p[dead] += i[:, :, None] * z[dead][:, :, None] * z[dead][:, None, :]

    def plain(self, measured: Measured) -> dict[str, tuple[Any, ...]]:
        """The rows as fields of the memory."""
        return {
            "instances": measured.instances,
            "operators_of": tuple(measured.operators[o] for o in measured.operator_of.tolist()),
            "begun_s": tuple(self.begun_s.tolist()),
            "measurements": tuple(self.count.tolist()),
            "z": tuple(measured.z.ravel().tolist()),
            "x": tuple(self.x.ravel().tolist()),
            "p": tuple(self.p.ravel().tolist()),
        }


def triangular(n: NDArray[np.int64]) -> F64:
    """The n-th triangular number (footnote 3)."""
    numbers: F64 = n * (n + 1) / 2
    return numbers


def initial_state(n: NDArray[np.int64], sums: F64) -> F64:
    """x0: the average of n measurements, the i-th weighted by i (eq. 16).

    ``n`` (filters,), ``sums`` (filters, metrics) the sum of i z_i.
    """
    return sums / triangular(n)[:, None]


def covariance(n: NDArray[np.int64], x0: F64, squares: F64) -> F64:
    """P0: the same average of (z - x0)(z - x0)', with Bessel's correction (eq. 17).

    ``squares`` (filters, metrics, metrics) is the sum of i z_i z_i'. One measurement has no
    spread: 0.
    """
    whole = triangular(n)[:, None, None]
    spread = squares - whole * x0[:, :, None] * x0[:, None, :]
    p0: F64 = np.where(whole > 1, spread / np.maximum(whole - 1, 1), 0.0)
    return p0


def process_noise(p0: F64, r: F64, floor: float) -> F64:
    """Q = P0 - R (eq. 18), raised where it is below ``floor`` times R in any direction.

    The paper assumes P0 > R. At rest P0 is about R, or less, and Q would not be a covariance.
    """
    scale = np.sqrt(np.diag(r))
    values, vectors = np.linalg.eigh((p0 - r) / np.outer(scale, scale))
    lifted = (vectors * np.maximum(values, floor)) @ vectors.T
    q: F64 = lifted * np.outer(scale, scale)
    return q


def no_rows(metrics: int) -> Regression:
    """A regression that has seen nothing."""
    return Regression((0.0,) * 4, (0.0,) * 2 * metrics)


def with_rows(sums: Regression, u: F64, change: F64) -> Regression:
    """With rows of n instances: their input ``u`` (2,) and ``change`` of z (n, metrics)."""
    uu = np.array(sums.uu) + len(change) * np.outer(u, u).ravel()
    uz = np.array(sums.uz) + np.outer(u, change.sum(axis=0)).ravel()
    return Regression(tuple(uu.tolist()), tuple(uz.tolist()))


def least_squares(sums: Regression) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """a and b, one value per metric; what the rows do not tell is 0."""
    uu = np.array(sums.uu).reshape(2, 2)
    a, b = np.linalg.lstsq(uu, np.array(sums.uz).reshape(2, -1), rcond=1e-9)[0]
    return tuple(a.tolist()), tuple(b.tolist())
