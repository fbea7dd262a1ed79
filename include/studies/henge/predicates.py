"""The predicates behind the claims of Henge about jobs that share an idle cluster."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from include.studies.base import Answer, Predicate, known
from include.studies.henge.metrics import START_S, HengeMetrics, HengeRun

MIDDLE = "linear.bolt_middle"
FULL = 99.5
"""Percent of the maximum that count as all of it, as for the controller."""


def _final(run: HengeRun) -> float:
    return 100 * float(run.final_utility()[0])


def _initial_reaches_max(metrics: HengeMetrics) -> Answer:
    final = {
        (slo, rate): min(_final(run) for run in metrics.initial(slo, rate).values())
        for slo in (60, 70)
        for rate in (1, 2)
    }
    return min(final.values()) >= FULL, ", ".join(
        f"{slo} ms at {rate}x: {share:.1f} %" for (slo, rate), share in final.items()
    )


def _initial_unachievable(metrics: HengeMetrics) -> Answer:
    best = {
        slo: max(_final(run) for run in metrics.initial(slo, 1, "manual").values())
        for slo in (40, 50, 60, 70)
    }
    holds = max(best[40], best[50]) < FULL <= min(best[60], best[70])
    return holds, "best " + ", ".join(f"{slo} ms: {share:.1f} %" for slo, share in best.items())


def _rounds(metrics: HengeMetrics, slo_ms: int, most: tuple[int, int]) -> Answer:
    runs = [known(metrics.initial(slo_ms, rate), 10) for rate in (1, 2)]
    rounds = [len(run.reconfigurations()) for run in runs]
    holds = (
        all(_final(run) >= FULL for run in runs) and rounds[0] <= most[0] and rounds[1] <= most[1]
    )
    found = zip(rounds, runs, strict=True)
    return holds, "; ".join(
        f"{n} rounds to {run.instances_at_end[MIDDLE]} executors, {_final(run):.1f} %"
        for n, run in found
    )


def _initial_rounds_70(metrics: HengeMetrics) -> Answer:
    return _rounds(metrics, 70, (1, 2))


def _initial_rounds_60(metrics: HengeMetrics) -> Answer:
    return _rounds(metrics, 60, (2, 5))


def _initial_stringent_more(metrics: HengeMetrics) -> Answer:
    mean = {
        (slo, rate): fmean(
            run.instances_at_end[MIDDLE] for run in metrics.initial(slo, rate).values()
        )
        for slo in (60, 70)
        for rate in (1, 2)
    }
    holds = all(mean[60, rate] >= mean[70, rate] for rate in (1, 2))
    holds = holds and all(mean[slo, 2] > mean[slo, 1] for slo in (60, 70))
    return holds, "executors, mean over initial ones: " + ", ".join(
        f"{slo} ms at {rate}x {number:.1f}" for (slo, rate), number in mean.items()
    )


def _initial_hogging(metrics: HengeMetrics) -> Answer:
    """Both fewer reconfigurations and fewer executors: a tie means nobody was black-listed."""
    found = {
        slo: [run for rate in (1, 2) for run in metrics.initial(slo, rate).values()]
        for slo in (40, 50)
    }
    rounds = {slo: fmean(len(run.reconfigurations()) for run in runs)
              for slo, runs in found.items()}  # fmt: skip
    mean = {slo: fmean(run.instances_at_end[MIDDLE] for run in runs)
            for slo, runs in found.items()}  # fmt: skip
    holds = mean[40] < mean[50] and rounds[40] < rounds[50]
    return holds, "; ".join(
        f"{slo} ms {mean[slo]:.1f} executors after {rounds[slo]:.1f} rounds" for slo in (40, 50)
    )


def _priorities_order(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_priorities")
    order = list(dict.fromkeys(change.job for change in run.reconfigurations()))
    worth = dict(zip(run.jobs, run.max_utility.tolist(), strict=True))
    return order == sorted(order, key=lambda job: -worth[job]), " ".join(order)


def _meets_by(run: HengeRun, limit_s: float) -> Answer:
    reached_s = run.at_max(START_S)
    if reached_s is None:
        return False, f"at most {run.satisfaction.max():.1f} %"
    rounds = len(run.reconfigurations())
    return reached_s <= limit_s, f"maximum at {reached_s:.0f} s after {rounds} rounds"


def _priorities_time(metrics: HengeMetrics) -> Answer:
    return _meets_by(metrics.one("tenants_priorities"), 1800)


def _hybrid_time(metrics: HengeMetrics) -> Answer:
    return _meets_by(metrics.one("tenants_hybrid"), 1710)


def _hybrid_once(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_hybrid")
    once = sum(len(run.reconfigurations(job)) <= 1 for job in run.jobs)
    return once >= 9, f"{once} of {len(run.jobs)}"


def _spikes_hidden(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_spikes")
    least = float(run.satisfaction[run.times_s > 3600].min())
    return least >= FULL, f"at least {least:.1f} % from 3600 s on"


def _triple_juice(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_triple")
    after = run.times_s > 4000
    least = float(run.juice[after].min())
    back_s = run.at_max(4000 + 60)
    below = run.times_s[after][(run.satisfaction[after] < FULL)]
    restored = bool((run.satisfaction[run.times_s > 5734] >= FULL).all())
    last = f"below the maximum until {below[-1]:.0f} s" if below.size else "never below"
    return restored and back_s is not None, f"juice down to {least:.3f}; {last}"


def _outage_still(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_outage")
    during = [change for change in run.changes if 1020 < change.time_s < 1680]
    after = [change.time_s for change in run.changes if change.time_s >= 1680]
    first = f"the next at {after[0]:.0f} s" if after else "none later"
    return not during, f"{len(during)} actions; {first}"


def _outage_recovers(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_outage")
    reached_s = run.at_max(1380)
    holds = reached_s is not None and run.stays_at(FULL, run.times_s[-1] - 600)
    return holds, f"maximum at {reached_s:.0f} s" if reached_s else "never"


PREDICATES: Mapping[str, Predicate] = {
    "initial_reaches_max": _initial_reaches_max,
    "initial_unachievable": _initial_unachievable,
    "initial_rounds_70": _initial_rounds_70,
    "initial_rounds_60": _initial_rounds_60,
    "initial_stringent_more": _initial_stringent_more,
    "initial_hogging": _initial_hogging,
    "priorities_order": _priorities_order,
    "priorities_time": _priorities_time,
    "hybrid_time": _hybrid_time,
    "hybrid_once": _hybrid_once,
    "spikes_hidden": _spikes_hidden,
    "triple_juice": _triple_juice,
    "outage_still": _outage_still,
    "outage_recovers": _outage_recovers,
}
