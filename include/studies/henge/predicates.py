"""The predicates behind the claims of Henge about jobs that share a cluster, idle and loaded."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import fmean

import numpy as np

from include.model.decision import Reason
from include.studies.base import Answer, known
from include.studies.henge.metrics import FULL, START_S, HengeMetrics, HengeRun

MIDDLE = "linear.bolt_middle"
HOUR_S = 600.0
"""An hour of the diurnal traces."""
NODES = (10, 20, 30, 40)
PERCENTILES = (15, 50, 90)
LARGE_DROP = 5.0
"""Percent of the maximal utility: what section 4.3.3 calls a large drop."""
SPIKE_S, BACK_BY_S = 21_800, 23_000
"""Fig. 18: when other processes take the CPU, and by when the utility is back."""
TRIPLE_S, JUICE_STAYS = 4000, 0.99
"""Fig. 10: when the rate triples, and what juice counts as the same."""
SETTLES_S = 600.0
"""Two reversions within this time are thrashing: Fig. 17b reverts once and stays."""
STATEFUL_EXTRA = 1.5
"""Table 4: 5.5 rounds against 4; half as many more or fewer count as the same."""


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
    pairs = zip(rounds, runs, strict=True)
    return holds, "; ".join(
        f"{n} rounds to {run.instances_at_end[MIDDLE]} executors, {_final(run):.1f} %"
        for n, run in pairs
    )


_initial_rounds_70 = partial(_rounds, slo_ms=70, most=(1, 2))
_initial_rounds_60 = partial(_rounds, slo_ms=60, most=(2, 5))


def _initial_stringent_more(metrics: HengeMetrics) -> Answer:
    mean = {
        (slo, rate): fmean(
            run.instances_at_end[MIDDLE] for run in metrics.initial(slo, rate).values()
        )
        for slo in (60, 70)
        for rate in (1, 2)
    }
    holds = all(mean[60, rate] > mean[70, rate] for rate in (1, 2))
    holds = holds and all(mean[slo, 2] > mean[slo, 1] for slo in (60, 70))
    return holds, "executors, mean over initial ones: " + ", ".join(
        f"{slo} ms at {rate}x {number:.1f}" for (slo, rate), number in mean.items()
    )


def _initial_hogging(metrics: HengeMetrics) -> Answer:
    """Both fewer reconfigurations and fewer executors: a tie means nobody was black-listed."""
    shares = {
        slo: [run for rate in (1, 2) for run in metrics.initial(slo, rate).values()]
        for slo in (40, 50)
    }
    rounds = {slo: fmean(len(run.reconfigurations()) for run in runs)
              for slo, runs in shares.items()}  # fmt: skip
    mean = {slo: fmean(run.instances_at_end[MIDDLE] for run in runs)
            for slo, runs in shares.items()}  # fmt: skip
    holds = mean[40] < mean[50] and rounds[40] < rounds[50]
    return holds, "; ".join(
        f"{slo} ms {mean[slo]:.1f} executors after {rounds[slo]:.1f} rounds" for slo in (40, 50)
    )


def _priorities_order(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_priorities")
    order = list(dict.fromkeys(change.job for change in run.reconfigurations()))
    worth = dict(zip(run.jobs, run.max_utility.tolist(), strict=True))
    return order == sorted(order, key=lambda job: -worth[job]), " ".join(order)


def _meets_by(metrics: HengeMetrics, topology: str, limit_s: float) -> Answer:
    run = metrics.one(topology)
    reached_s = run.at_max(START_S)
    if reached_s is None:
        return False, f"at most {run.satisfaction.max():.1f} %"
    rounds = len(run.reconfigurations())
    return reached_s <= limit_s, f"maximum at {reached_s:.0f} s after {rounds} rounds"


_priorities_time = partial(_meets_by, topology="tenants_priorities", limit_s=1800)
_hybrid_time = partial(_meets_by, topology="tenants_hybrid", limit_s=1710)


def _hybrid_once(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_hybrid")
    once = sum(len(run.reconfigurations(job)) == 1 for job in run.jobs)
    return once >= 9, f"{once} of {len(run.jobs)}"


def _spikes_hidden(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_spikes")
    least = float(run.satisfaction[run.times_s > 3600].min())
    return least >= FULL, f"at least {least:.1f} % from 3600 s on"


def _juice_independent(metrics: HengeMetrics) -> Answer:
    """Of the job that keeps most of it: Fig. 10 shows one of five."""
    run = metrics.one("tenants_triple")
    least = run.juice[run.times_s > TRIPLE_S].min(axis=0)
    numbers = f"juice down to {least.max():.3f} in one job, to {least.min():.3f} in another"
    return bool(least.max() >= JUICE_STAYS), numbers


def _triple_juice(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_triple")
    after = run.times_s > TRIPLE_S
    least = float(run.juice[after].min())
    back_s = run.at_max(TRIPLE_S + 60)
    below = run.times_s[after][(run.satisfaction[after] < FULL)]
    last = f"below the maximum until {below[-1]:.0f} s" if below.size else "never below"
    return run.stays_at_max(5734) and back_s is not None, f"juice down to {least:.3f}; {last}"


def _outage_still(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_outage")
    during = [change for change in run.changes if 1020 < change.time_s < 1680]
    after = [change.time_s for change in run.changes if change.time_s >= 1680]
    first = f"the next at {after[0]:.0f} s" if after else "none later"
    return not during, f"{len(during)} actions; {first}"


def _outage_recovers(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_outage")
    reached_s = run.at_max(1380)
    holds = reached_s is not None and run.stays_at_max(run.times_s[-1] - 600)
    return holds, f"maximum at {reached_s:.0f} s" if reached_s else "never"


def _diurnal(metrics: HengeMetrics, controller: str) -> list[HengeRun]:
    return metrics.of("tenants_diurnal", controller)


def _diurnal_means(metrics: HengeMetrics) -> dict[str, float]:
    return {
        name: fmean(run.mean_satisfaction() for run in _diurnal(metrics, name))
        for name in ("henge", "default-storm", "manual")
    }


def _diurnal_average(metrics: HengeMetrics) -> Answer:
    mean = _diurnal_means(metrics)
    holds = mean["henge"] >= 85 and mean["default-storm"] < 10
    return holds, f"{mean['henge']:.2f} % against {mean['default-storm']:.2f} %"


def _diurnal_manual(metrics: HengeMetrics) -> Answer:
    mean = _diurnal_means(metrics)
    return mean["henge"] > mean["manual"], f"{mean['henge']:.2f} % against {mean['manual']:.2f} %"


def _diurnal_percentiles(metrics: HengeMetrics) -> Answer:
    percentiles = {}
    for name in ("henge", "manual", "default-storm"):
        shares = np.concatenate([run.satisfaction for run in _diurnal(metrics, name)])
        percentiles[name] = np.percentile(shares, PERCENTILES).tolist()
    own, manual = percentiles["henge"], percentiles["manual"]
    holds = own[0] > manual[0] and all(a >= b - 1 for a, b in zip(own[1:], manual[1:], strict=True))
    return holds, "; ".join(
        f"{name} {', '.join(f'{share:.1f}' for share in shares)} %"
        for name, shares in percentiles.items()
    )


def _diurnal_hour_15(metrics: HengeMetrics) -> Answer:
    runs = _diurnal(metrics, "henge")
    share = fmean(run.mean_satisfaction(14.75 * HOUR_S, 15.25 * HOUR_S) for run in runs)
    touched = min(len({c.job for c in run.reconfigurations() if c.time_s < 24 * HOUR_S / 2})
                  for run in runs)  # fmt: skip
    return share >= 89 and touched == 10, f"{share:.1f} %; {touched} jobs in the first 12 hours"


def _diurnal_second_peak(metrics: HengeMetrics) -> Answer:
    counts = [
        fmean(
            sum(first * HOUR_S <= c.time_s < last * HOUR_S for c in run.reconfigurations())
            for run in _diurnal(metrics, "henge")
        )
        for first, last in ((8, 16), (32, 40))
    ]
    return counts[1] < counts[0], f"{counts[0]:.1f}, then {counts[1]:.1f}"


def _production_median(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_production")
    median = 100 * np.nanmedian(run.utility, axis=0) / run.max_utility
    numbers = ", ".join(f"{j} {m:.1f} %" for j, m in zip(run.jobs, median, strict=True))
    return bool(median.min() >= 68), numbers


def _production_reversion(metrics: HengeMetrics) -> Answer:
    """Each reversion brings utility back, and none follows another at once."""
    run = metrics.one("tenants_production")
    back_s = sorted({c.time_s for c in run.changes if c.reason is Reason.BEST_CONFIGURATION})
    gains = [
        run.mean_satisfaction(at_s, at_s + SETTLES_S) - run.mean_satisfaction(at_s - 60, at_s)
        for at_s in back_s
    ]
    soon = sum(later - sooner < SETTLES_S for sooner, later in pairwise(back_s))
    better = sum(gain > 0 for gain in gains)
    holds = bool(back_s) and better == len(gains) and soon == 0
    rounds = len(run.reconfigurations())
    return holds, (
        f"{len(back_s)} reversions after {rounds} reconfigurations, {better} raised the utility, "
        f"{soon} within {SETTLES_S:g} s of another"
    )


def _spike_recovers(metrics: HengeMetrics) -> Answer:
    """The load stays on until after 23000 s: without Henge's help nothing comes back by then."""
    run = metrics.one("tenants_cpu_spike")
    before = run.mean_satisfaction(20_000, SPIKE_S)
    low = float(run.satisfaction[(run.times_s > SPIKE_S) & (run.times_s < BACK_BY_S)].min())
    after = run.mean_satisfaction(BACK_BY_S, BACK_BY_S + 1200)
    holds = low < before - LARGE_DROP and after >= before - 1
    return holds, f"{before:.1f} %, down to {low:.1f} %, {after:.1f} % after {BACK_BY_S} s"


def _spike_reduction(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_cpu_spike")
    reduced = {
        c.job
        for c in run.changes
        if c.stopped and c.reason is Reason.SLO_MET and SPIKE_S <= c.time_s <= BACK_BY_S
    }
    return len(reduced) >= 2, f"{len(reduced)} jobs reduced from {SPIKE_S} to {BACK_BY_S} s"


def _stateful_converge(metrics: HengeMetrics) -> Answer:
    runs = metrics.of("tenants_stateful")
    rounds = {
        kind: fmean(
            len(run.reconfigurations(job)) for run in runs for job in run.jobs if kind in job
        )
        for kind in ("stateful", "stateless")
    }
    met = min(100 * float(run.final_utility().min()) for run in runs)
    extra = rounds["stateful"] - rounds["stateless"]
    holds = met >= FULL and abs(extra - STATEFUL_EXTRA) <= STATEFUL_EXTRA / 2
    return holds, (
        f"{rounds['stateful']:.2f} against {rounds['stateless']:.2f} rounds; "
        f"the least of them ends at {met:.1f} %"
    )


def _growing_max(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_growing")
    before_next = [run.mean_satisfaction(h * 3600 - 600, h * 3600) for h in (4, 6, 8)]
    return min(before_next) >= FULL, ", ".join(f"{share:.1f} %" for share in before_next)


def _growing_contention(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_growing")
    before = run.mean_satisfaction(7.8 * 3600, 8 * 3600)
    low = float(run.satisfaction[run.times_s > 8 * 3600].min())
    end = run.mean_satisfaction(float(run.times_s[-1]) - 1200)
    return low < before - 5, f"{before:.1f} % to {low:.1f} %, {end:.1f} % at the end"


def _growing_old_jobs(metrics: HengeMetrics) -> Answer:
    run = metrics.one("tenants_growing")
    late = [c for c in run.reconfigurations() if c.time_s > 8 * 3600]
    new = sum(c.job.startswith("after_8h") for c in late) / 20
    old = sum(not c.job.startswith("after_8h") for c in late) / 65
    return old < new, f"{old:.2f} against {new:.2f} rounds per job"


def _nodes_overloaded(metrics: HengeMetrics) -> Answer:
    share = metrics.one("tenants_40_on_10").final_utility()
    met = 100 * float((share >= FULL / 100).mean())
    return met >= 40, f"{met:.0f} %"


def _nodes_more(metrics: HengeMetrics) -> Answer:
    low = [
        100 * float(np.percentile(metrics.one(f"tenants_40_on_{n}").final_utility(), 5))
        for n in NODES
    ]
    return low == sorted(low) and low[0] < low[-1], ", ".join(f"{share:.1f} %" for share in low)


def _nodes_rounds(metrics: HengeMetrics) -> Answer:
    rounds = [len(metrics.one(f"tenants_40_on_{n}").reconfigurations()) for n in NODES]
    return rounds[0] <= 2 * max(1, min(rounds[1:])), ", ".join(map(str, rounds))
