"""PVLDB 12(7), sections 2.3, 2.4 and 3.3: the filters, against the paper and another EKF."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from filterpy.kalman import ExtendedKalmanFilter
from hypothesis import given, settings
from hypothesis import strategies as st

from include.controllers.pvldb127.filters.base import Measured, Pure
from include.controllers.pvldb127.filters.ekf import (
    Ekf,
    covariance,
    initial_state,
    least_squares,
    no_rows,
    predict,
    process_noise,
    update,
    with_rows,
)
from include.controllers.pvldb127.filters.weierstrass import Weierstrass, kernel

PERIOD_S = 0.5


def measured(t_s: float, z, *, rate: float = 0.0, starting: int = 0) -> Measured:
    """One operator; ``z`` are the metrics of its instances i1, i2, ..."""
    rows = np.atleast_2d(np.array(z, dtype=float))
    return Measured(
        t_s=t_s,
        operators=("O",),
        starting=np.array([starting]),
        rate=np.array([rate]),
        instances=tuple(f"i{n}" for n in range(1, len(rows) + 1)),
        operator_of=np.zeros(len(rows), dtype=np.int64),
        z=rows,
    )


def averages(chosen, zs, rates=None) -> tuple[np.ndarray, list[bool]]:
    """What the filter makes of a series of measurements at 2 Hz: averages, and whether usable."""
    memory, averages, usable = chosen.initial(), [], []
    for i, z in enumerate(zs):
        rate = 0.0 if rates is None else rates[i]
        memory, filtered = chosen.step(memory, measured(i * PERIOD_S, z, rate=rate))
        averages.append(filtered.total[0] / np.atleast_2d(z).shape[0])
        usable.append(bool(filtered.usable[0]))
    return np.array(averages), usable


@pytest.mark.parametrize("metrics", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_ekf_agrees_with_an_independent_implementation(metrics: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    a, b = draw.normal(0, 0.01, metrics), draw.normal(0, 0.2, metrics)
    q = _covariance(draw, metrics) * 1e-3
    r = np.diag(draw.uniform(0.001, 0.1, metrics))
    other = ExtendedKalmanFilter(dim_x=metrics, dim_z=metrics, dim_u=2)
    x0, p0 = draw.uniform(0, 1, metrics), _covariance(draw, metrics)
    other.x, other.P, other.Q, other.R = x0.copy(), p0.copy(), q, r
    other.F, other.B = np.eye(metrics), np.stack([a, b], axis=1)
    x, p = x0[None], p0[None]
    for _ in range(400):
        u, z = draw.normal(0, 5, 2), draw.uniform(0, 1, metrics)
        other.predict(u)
        other.update(z, HJacobian=lambda _: np.eye(metrics), Hx=lambda state: state)
        x, p = predict(x, p, u[None], a[None], b[None], q[None])
        x, p = update(x, p, z[None], r)
        assert np.abs(x[0] - other.x).max() < 1e-9
        assert np.abs(p[0] - other.P).max() < 1e-9


def _covariance(draw: np.random.Generator, n: int) -> np.ndarray:
    root = draw.normal(size=(n, n))
    return root @ root.T + 0.1 * np.eye(n)


def sums(zs: list[list[float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weighted = [(i, np.array(z)) for i, z in enumerate(zs, start=1)]
    return (
        np.array([len(zs)]),
        np.sum([i * z for i, z in weighted], axis=0)[None],
        np.sum([i * np.outer(z, z) for i, z in weighted], axis=0)[None],
    )


def test_equations_16_and_17_by_hand() -> None:
    """z = 0.2, 0.5, 0.4: the weights are 1/6, 2/6, 3/6, so x0 = 2.4 / 6 = 0.4;
    P0 = (1 * 0.04 + 2 * 0.01 + 3 * 0) / (6 - 1) = 0.012.
    """
    n, first, second = sums([[0.2], [0.5], [0.4]])
    x0 = initial_state(n, first)
    assert x0[0, 0] == pytest.approx(0.4)
    assert covariance(n, x0, second)[0, 0, 0] == pytest.approx(0.012)


def test_equation_17_has_covariances_between_metrics() -> None:
    """z = (0, 1), (3, 1): x0 = (2, 1); the second metric never moved, so it varies with nothing."""
    n, first, second = sums([[0.0, 1.0], [3.0, 1.0]])
    x0 = initial_state(n, first)
    p0 = covariance(n, x0, second)[0]
    assert x0[0].tolist() == [2.0, 1.0]
    assert p0 == pytest.approx(np.array([[(4 + 2) / 2, 0.0], [0.0, 0.0]]))


def test_equation_18_and_its_floor() -> None:
    r = np.diag([0.01, 0.04])
    plain = process_noise(np.diag([0.03, 0.09]), r, floor=0.001)
    assert plain == pytest.approx(np.diag([0.02, 0.05]))
    quiet = process_noise(np.diag([0.03, 0.02]), r, floor=0.001)
    assert quiet == pytest.approx(np.diag([0.02, 0.04 * 0.001]))


@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(1e-6, 0.5))
def test_q_is_always_a_covariance(seed: int, metrics: int, floor: float) -> None:
    draw = np.random.default_rng(seed)
    r = np.diag(draw.uniform(1e-4, 0.1, metrics))
    q = process_noise(_covariance(draw, metrics) * draw.uniform(0, 0.02), r, floor)
    assert np.allclose(q, q.T)
    assert np.linalg.eigvalsh(q).min() > 0


def test_least_squares_finds_a_and_b_of_a_process_that_follows_them() -> None:
    draw = np.random.default_rng(3)
    a, b, fit = np.array([0.002, 0.0]), np.array([0.15, 0.01]), no_rows(2)
    for _ in range(50):
        u = draw.normal(0, 3, 2)
        fit = with_rows(fit, u, np.tile(a * u[0] + b * u[1], (4, 1)))
    found_a, found_b = least_squares(fit)
    assert found_a == pytest.approx(a, abs=1e-12)
    assert found_b == pytest.approx(b)


def test_what_the_dead_time_does_not_tell_is_zero() -> None:
    fit = with_rows(no_rows(1), np.array([0.0, 0.0]), np.array([[0.3]]))
    assert least_squares(fit) == ((0.0,), (0.0,))


EKF = Ekf(r=(0.01,), a=(0.0,), b=(0.1,))


def test_dead_time_then_ease_in_then_estimates() -> None:
    _, usable = averages(EKF, [[0.5]] * 60)
    assert usable.index(True) == 40  # 20 s at 2 Hz
    assert all(usable[40:])


def test_the_dead_time_waits_for_two_measurements() -> None:
    slow, memory = Ekf(r=(0.01,), b=(0.1,)), EKF.initial()
    for t_s in (0.0, 60.0, 120.0):
        memory, _ = slow.step(memory, measured(t_s, [0.4]))
        assert ("O" in memory.models) == (t_s >= 60.0)


def test_every_instance_starts_from_its_own_measurements() -> None:
    memory = EKF.initial()
    for i in range(21):
        memory, _ = EKF.step(memory, measured(i * PERIOD_S, [[0.2], [0.8]]))
    assert memory.x == pytest.approx((0.2, 0.8))


def test_an_instance_that_joins_later_counts_with_the_average_until_it_is_through() -> None:
    memory = EKF.initial()
    for i in range(50):
        memory, _ = EKF.step(memory, measured(i * PERIOD_S, [[0.2]]))
    totals = []
    for i in range(50, 100):
        both = measured(i * PERIOD_S, [[0.2], [0.7]], starting=1)
        memory, filtered = EKF.step(memory, both)
        assert filtered.usable[0]
        totals.append(filtered.total[0, 0])
    assert totals[:40] == pytest.approx([0.4] * 40)  # 20 s; the one that starts adds nothing
    assert totals[40:] == pytest.approx([0.9] * 10)  # eq. 15
    assert memory.x == pytest.approx((0.2, 0.7))


@pytest.mark.parametrize(("keeps", "total"), [(False, 0.8), (True, 1.2)])
def test_what_an_instance_that_leaves_had_to_do_may_stay(keeps: bool, total: float) -> None:
    ekf = Ekf(r=(0.01,), a=(0.0,), b=(0.0,), keeps_total=keeps)
    memory = ekf.initial()
    for i in range(60):
        memory, before = ekf.step(memory, measured(i * PERIOD_S, [[0.4]] * 3))
    assert before.total[0, 0] == pytest.approx(1.2)
    _, after = ekf.step(memory, measured(60 * PERIOD_S, [[0.4]] * 2))
    assert after.total[0, 0] == pytest.approx(total, abs=0.02)


@pytest.mark.parametrize("chosen", [Weierstrass(), Ekf(r=(0.01,)), replace(EKF, keeps_total=True)])
def test_an_operator_that_is_not_measured_once_keeps_its_filter(chosen) -> None:
    """Section 2.2: lambda has "all other values Z_i" with i <= t; bootstrapping is that "After the
    initiation of the operator instances" (2.4)."""
    memory, other = chosen.initial(), replace(measured(30.0, [0.2]), operators=("P",))
    for i in range(60):
        memory, before = chosen.step(memory, measured(i * PERIOD_S, [[0.2], [0.4]]))
    memory, _ = chosen.step(memory, replace(other, instances=("p1",)))
    _, after = chosen.step(memory, measured(30.5, [[0.8], [0.8]]))
    assert after.usable.all()
    assert before.total[0, 0] < after.total[0, 0] < 1.5


@pytest.mark.parametrize("keeps", [False, True])
def test_an_instance_that_is_not_read_once_keeps_its_filter(keeps: bool) -> None:
    """It has not left, so nobody takes its part of the total over."""
    ekf = Ekf(r=(0.01,), a=(0.0,), b=(0.0,), keeps_total=keeps)
    memory = ekf.initial()
    for i in range(60):
        memory, _ = ekf.step(memory, measured(i * PERIOD_S, [[0.2], [0.2], [0.8]]))
    gap = replace(measured(30.0, [[0.2], [0.2]]), unread=frozenset({"i3"}))
    memory, _ = ekf.step(memory, gap)
    _, after = ekf.step(memory, measured(30.5, [[0.2], [0.2], [0.8]]))
    assert after.total[0, 0] == pytest.approx(1.2, abs=0.02)


def test_a_step_of_the_rate_is_believed_before_it_is_measured() -> None:
    rates = [2.0] * 60 + [6.0]
    filtered, _ = averages(EKF, [[0.2]] * 61, rates)
    assert filtered[60, 0] == pytest.approx(0.2 + 0.1 * 4, abs=0.05)
    assert averages(Pure(), [[0.2]] * 61, rates)[0][60, 0] == 0.2


@pytest.mark.parametrize(("shares", "part"), [(True, 0.5), (False, 1.0)])
def test_an_instance_may_take_in_its_part_of_a_step_of_the_rate(shares: bool, part: float) -> None:
    """KALMAN-INPUT: dD is that of the operator, so an estimate does not fall when one joins."""
    ekf = replace(EKF, input_per_instance=shares)
    memory = ekf.initial()
    for i in range(50):
        memory, _ = ekf.step(memory, measured(i * PERIOD_S, [[0.5]], rate=4.0))
    memory, joined = ekf.step(memory, measured(50 * PERIOD_S, [[0.5], [0.5]], rate=4.0))
    assert joined.total[0, 0] == pytest.approx(2 * 0.5, abs=1e-3)
    _, risen = ekf.step(memory, measured(51 * PERIOD_S, [[0.5], [0.5]], rate=8.0))
    assert risen.total[0, 0] == pytest.approx(2 * (0.5 + 0.1 * 4 * part), abs=0.1)


def test_a_cold_start_learns_a_and_b_in_its_dead_time() -> None:
    cold = Ekf(r=(0.01,))
    rates = [float(i % 5) for i in range(30)]
    memory = cold.initial()
    for i, rate in enumerate(rates):
        memory, _ = cold.step(memory, measured(i * PERIOD_S, [[0.1 + 0.15 * rate]], rate=rate))
    assert memory.models["O"].b == pytest.approx((0.15,))
    assert memory.models["O"].a == pytest.approx((0.0,), abs=1e-9)


def test_another_number_of_metrics_starts_the_filter_anew() -> None:
    two = Ekf(r=(0.01, 0.01), a=(0.0, 0.0), b=(0.1, 0.0))
    memory = two.initial()
    for i in range(50):
        memory, _ = two.step(memory, measured(i * PERIOD_S, [[0.2]]))
    memory, filtered = two.step(memory, measured(25.0, [[0.2, 0.5]]))
    assert memory.metrics == 2
    assert not filtered.usable[0]


@settings(max_examples=10, deadline=None)
@given(st.floats(0, 1), st.integers(0, 1000))
def test_constant_input_with_noise_converges_and_the_noise_shrinks(load: float, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.1, 400)
    chosen = Ekf(r=(0.01,), a=(0.0,), b=(0.1,), q_floor=0.001)
    filtered, _ = averages(chosen, [[load + e] for e in noise])
    settled = filtered[200:, 0]
    assert abs(settled.mean() - load) < 0.05
    assert settled.std() < 0.85 * noise[200:].std()


def test_equation_19_directly() -> None:
    ages_s = -np.arange(0, 60, PERIOD_S)
    direct = [math.exp(-(x**2) / 18) / math.sqrt(18 * math.pi) for x in ages_s]
    assert kernel(ages_s, 9.0) == pytest.approx(direct)
    zs = np.random.default_rng(1).uniform(0, 1, 120)
    filtered, usable = averages(Weierstrass(), [[z] for z in zs])
    expected = np.dot(direct, zs[::-1]) / sum(direct)
    assert filtered[-1, 0] == pytest.approx(expected)
    assert all(usable)


def test_the_transform_forgets_what_left_its_window() -> None:
    short = Weierstrass(variance_s2=1e6, window_s=2.0)  # all weights alike
    filtered, _ = averages(short, [[1.0]] * 10 + [[0.0]] * 4)
    assert filtered[-1, 0] == 0.0
    assert filtered[-2, 0] == pytest.approx(0.25)


def test_the_transform_begins_anew_when_a_metric_comes_or_goes() -> None:
    gw, memory = Weierstrass(), Weierstrass().initial()
    for turn, z in enumerate([[0.9, 0.5], [0.9, 0.5], [0.2], [0.3, 0.5]]):
        memory, estimate = gw.step(memory, measured(turn * PERIOD_S, [z]))
        assert estimate.total.shape == (1, len(z))
        assert estimate.total[0, 0] == pytest.approx(z[0])


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1))
def test_the_transform_keeps_a_constant(load: float) -> None:
    filtered, _ = averages(Weierstrass(), [[load, 0.5]] * 130)
    assert filtered[:, 0] == pytest.approx(np.full(130, load))


def test_instances_that_start_do_nothing_yet() -> None:
    _, pure = Pure().step(Pure().initial(), measured(0.0, [[0.9], [0.9]], starting=1))
    assert pure.total[0, 0] == pytest.approx(1.8)
    gw = Weierstrass()
    _, smooth = gw.step(gw.initial(), measured(0.0, [[0.9], [0.9]], starting=1))
    assert smooth.total[0, 0] / 3 == pytest.approx(0.6)


@pytest.mark.parametrize("chosen", [Pure(), Weierstrass(), Ekf(r=(0.01, 0.001))])
def test_operators_are_filtered_each_for_itself(chosen) -> None:
    draw = np.random.default_rng(2)
    together, alone = chosen.initial(), {"A": chosen.initial(), "B": chosen.initial()}
    for i in range(60):
        z, rates = draw.uniform(0, 1, (3, 2)), draw.uniform(0, 9, 2)
        both = Measured(
            t_s=i * PERIOD_S, operators=("A", "B"), starting=np.array([0, 1]), rate=rates,
            instances=("a1", "b1", "b2"), operator_of=np.array([0, 1, 1]), z=z,
        )  # fmt: skip
        together, filtered = chosen.step(together, both)
        for o, (name, mine) in enumerate({"A": [0], "B": [1, 2]}.items()):
            single = Measured(
                t_s=i * PERIOD_S, operators=(name,), starting=np.array([o]), rate=rates[o : o + 1],
                instances=tuple(both.instances[m] for m in mine),
                operator_of=np.zeros(len(mine), dtype=np.int64), z=z[mine],
            )  # fmt: skip
            alone[name], of_one = chosen.step(alone[name], single)
            assert filtered.total[o] == pytest.approx(of_one.total[0])
            assert filtered.usable[o] == of_one.usable[0]
