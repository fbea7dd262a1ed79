"""What is asked behind the claims of Heinze et al.: each predicate says yes or no, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import fmean

from include.studies.base import Answer
from include.studies.fugu.metrics import Case, FuguMetrics

LOCAL, GLOBAL, SARSA = "fugu-local", "fugu-global", "fugu-sarsa"
CONFIGURATIONS = ("default", "lower 0.2", "lower 0.4", "upper 0.7", "upper 0.9")
DAYS = ("trading_day_1", "trading_day_2", "trading_day_3")
UTILISATION_AROUND = 0.03
LATENCY_AROUND = 0.15
"""How far a figure that the text prints may be off: of a host's CPU, and of itself."""
LEARNING_CUTS_TO = 1 - (1 - 1700 / 2100) / 2
"""Section V-C, from 2100 to 1700 ms: at least half of that decrease, chance alone makes a few %."""


def case(controller: str, configuration: str = "default", day: str = DAYS[0]) -> Case:
    """A case of the evaluation."""
    return controller, configuration, day


def _both(metrics: FuguMetrics, one: Case) -> tuple[float, float]:
    """Average utilisation and 90th percentile of the latency in ms."""
    return metrics.mean(one, "avg_utilisation"), metrics.mean(one, "latency_p90_ms")


def _by_configuration(
    metrics: FuguMetrics,
    controller: str,
    metric: str,
    configurations: tuple[str, ...] = CONFIGURATIONS,
) -> dict[str, float]:
    return {name: metrics.mean(case(controller, name), metric) for name in configurations}


def _by_day(metrics: FuguMetrics, controller: str, metric: str) -> dict[str, float]:
    return {day: metrics.mean(case(controller, day=day), metric) for day in DAYS}


def _is(metrics: FuguMetrics, controller: str, utilisation: float, latency_ms: float) -> Answer:
    pairs = _both(metrics, case(controller))
    holds = (
        abs(pairs[0] - utilisation) <= UTILISATION_AROUND
        and abs(pairs[1] / latency_ms - 1) <= LATENCY_AROUND
    )
    return holds, f"{pairs[0]:.2f} and {pairs[1]:.0f} ms"


_local_default = partial(_is, controller=LOCAL, utilisation=0.52, latency_ms=1850)
_global_default = partial(_is, controller=GLOBAL, utilisation=0.49, latency_ms=2340)


def _moved(metrics: FuguMetrics, configuration: str, sign: int) -> Answer:
    """Whether average utilisation and mean latency both move to one side of the default's."""
    own, default = case(LOCAL, configuration), case(LOCAL)
    changes = [
        sign * (metrics.mean(own, metric) - metrics.mean(default, metric))
        for metric in ("avg_utilisation", "latency_mean_ms")
    ]
    numbers = "; ".join(
        f"{name} {metrics.mean(one, 'avg_utilisation'):.3f}, "
        f"{metrics.mean(one, 'latency_mean_ms'):.0f} ms"
        for name, one in ((configuration, own), ("default", default))
    )
    return min(changes) > 0, numbers


_lower_lower = partial(_moved, configuration="lower 0.2", sign=-1)
_higher_lower = partial(_moved, configuration="lower 0.4", sign=1)


def _upper_costs_latency(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, LOCAL, "latency_p90_ms", ("default", *CONFIGURATIONS[3:]))
    return min(values["upper 0.7"], values["upper 0.9"]) > values["default"], _ms(values)


def _upper_07_migrates(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, LOCAL, "migrations", ("default", "upper 0.7"))
    return values["upper 0.7"] > values["default"], _in_words(values, "{:.0f} migrations")


def _upper_09_overloads(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, LOCAL, "overload_share", ("default", "upper 0.9"))
    percent = {name: 100 * value for name, value in values.items()}
    numbers = _in_words(percent, "{:.1f} % of readings overloaded")
    return percent["upper 0.9"] > percent["default"], numbers


def _global_latency(metrics: FuguMetrics) -> Answer:
    gaps = {
        name: metrics.mean(case(GLOBAL, name), "latency_p90_ms")
        - metrics.mean(case(LOCAL, name), "latency_p90_ms")
        for name in CONFIGURATIONS[1:]
    }
    return min(gaps.values()) > 0, _in_words(gaps, "{:+.0f} ms")


def _global_maximum(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, GLOBAL, "max_utilisation")
    return min(values.values()) > 0.7, _in_words(values, "{:.2f}")


def _local_maximum(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, LOCAL, "max_utilisation")
    return max(values.values()) < 0.7, _in_words(values, "{:.2f}")


def _sarsa_utilisation(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, SARSA, "avg_utilisation")
    holds = all(0.56 <= round(value, 2) <= 0.62 for value in values.values())
    return holds, _in_words(values, "{:.2f}")


def _sarsa_latency(metrics: FuguMetrics) -> Answer:
    values = _by_configuration(metrics, SARSA, "latency_mean_ms")
    return all(1300 <= value <= 2400 for value in values.values()), _ms(values)


def _varies_less(metrics: FuguMetrics, by: Callable[..., dict[str, float]]) -> Answer:
    """Whether the latency varies less with learning than with local thresholds."""
    spreads = {}
    for name in (SARSA, LOCAL):
        latency_ms = by(metrics, name, "latency_p90_ms").values()
        spreads[name] = max(latency_ms) / min(latency_ms)
    return spreads[SARSA] < spreads[LOCAL], _in_words(spreads, "highest {:.1f} times the lowest")


_sarsa_robust = partial(_varies_less, by=_by_configuration)
_days_sarsa = partial(_varies_less, by=_by_day)


def _over_local(
    metrics: FuguMetrics, configuration: str = "default", day: str = DAYS[0]
) -> tuple[float, float]:
    """Both figures with learning, less those of local thresholds."""
    own, other = (_both(metrics, case(name, configuration, day)) for name in (SARSA, LOCAL))
    return own[0] - other[0], own[1] - other[1]


def _signed(gains: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{name} {gain:+.3f}, {ms:+.0f} ms" for name, (gain, ms) in gains.items())


def _sarsa_gains(metrics: FuguMetrics) -> Answer:
    gains = {name: _over_local(metrics, name) for name in CONFIGURATIONS}
    holds = all(round(gain, 2) >= 0.05 and later <= 0 for gain, later in gains.values())
    return holds, _signed(gains)


def _sarsa_utilisation_higher(metrics: FuguMetrics) -> Answer:
    gains = {name: _over_local(metrics, name)[0] for name in CONFIGURATIONS}
    return min(gains.values()) > 0, _in_words(gains, "{:+.3f}")


def _sarsa_saves_hosts(metrics: FuguMetrics) -> Answer:
    own, other = (_by_configuration(metrics, name, "hosts") for name in (SARSA, LOCAL))
    saved = fmean(other.values()) - fmean(own.values())
    return saved >= 0.45, f"{fmean(own.values()):.2f} instead of {fmean(other.values()):.2f} hosts"


def _day_2_local(metrics: FuguMetrics) -> Answer:
    days = _by_day(metrics, LOCAL, "latency_p90_ms")
    ratio = days[DAYS[1]] / days[DAYS[0]]
    return 1.6 <= ratio <= 2.2, f"{ratio:.1f} times: {_ms(days)}"


def _days_sarsa_better(metrics: FuguMetrics) -> Answer:
    gains = {day: _over_local(metrics, day=day) for day in DAYS}
    return all(gain > 0 and later < 0 for gain, later in gains.values()), _signed(gains)


SETTINGS = {
    "none": "imp 0", "default": "default", "more intensive": "imp 0.5", "longer": "dur 160",
}  # fmt: skip


def _settings(metrics: FuguMetrics) -> dict[str, tuple[float, float]]:
    return {name: _both(metrics, case(SARSA, own)) for name, own in SETTINGS.items()}


def _pairs(pairs: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{name} {u:.3f} and {ms:.0f} ms" for name, (u, ms) in pairs.items())


def _learning_utilisation(metrics: FuguMetrics) -> Answer:
    settings = _settings(metrics)
    gain = settings["default"][0] - settings["none"][0]
    return gain >= 0.025, f"{gain:+.3f}: {_pairs(settings)}"


def _learning_latency(metrics: FuguMetrics) -> Answer:
    settings = _settings(metrics)
    ratio = settings["default"][1] / settings["none"][1]
    return ratio <= LEARNING_CUTS_TO, f"{ratio:.2f} times: {_pairs(settings)}"


def _more_is_worse(metrics: FuguMetrics) -> Answer:
    settings = _settings(metrics)
    utilisation, latency_ms = settings["default"]
    others = (settings["more intensive"], settings["longer"])
    return all(u < utilisation and ms > latency_ms for u, ms in others), _pairs(settings)


def _impact_is_worst(metrics: FuguMetrics) -> Answer:
    settings = _settings(metrics)
    more, longer = settings["more intensive"], settings["longer"]
    return more[0] < longer[0] and more[1] > longer[1], _pairs(settings)


def _all_beat_local(metrics: FuguMetrics) -> Answer:
    local, settings = _both(metrics, case(LOCAL)), _settings(metrics)
    holds = all(u > local[0] and ms < local[1] for u, ms in settings.values())
    return holds, f"{_pairs(settings)}; local {local[0]:.3f} and {local[1]:.0f} ms"


def _in_words(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


def _ms(values: Mapping[str, float]) -> str:
    return _in_words(values, "{:.0f} ms")
