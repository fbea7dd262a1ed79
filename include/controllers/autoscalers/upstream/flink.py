"""Rows of apache/flink-kubernetes-operator, module flink-autoscaler, at 6e9caeb.

Its tests let the scale factor be anything and set no time to catch up; what else they set is in the
rows. Modes of alignment are those of 1.11 to 1.15, which 6e9caeb keeps beside its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from include.controllers.autoscalers.flink import Delayed, Flink, Reading, Vertex, true_rate
from include.controllers.autoscalers.key_groups import Alignment, Scaling, scaled
from include.controllers.autoscalers.upstream.rows import Inputs, NotRepresentable, chain
from include.controllers.base import Setting
from include.model.observation import InstanceSample, Observation, OperatorSample

_SOURCE, _SINK = "source", "sink"
_BIGGEST = 2**31 - 1
_LOOKS_OF_WHOLE_TEST = 10
"""Those of BacklogBasedScalingTest.test."""
_MODES = {
    "EVENLY_SPREAD": (Alignment.DIRECTED, False),
    "MAXIMIZE_UTILISATION": (Alignment.DIRECTED, True),
    "BALANCED": (Alignment.BALANCED, False),
    "OFF": (Alignment.OFF, False),
}
_OPTIONS = {
    "target_utilization": "target_share",
    "boundary": "boundary",
    "min": "utilization_min",
    "max": "utilization_max",
    "restart_s": "restart_s",
    "catch_up_s": "catch_up_s",
    "scale_down_interval_s": "scale_down_after_s",
    "min_parallelism_limit": "min_instances",
    "max_parallelism_limit": "max_instances",
    "max_scale_down_factor": "most_down",
    "max_scale_up_factor": "most_up",
    "max_parallelism": "key_groups",
    "source_partitions": "source_partitions",
    "lag_threshold_s": "backlog_lag_s",
}
_ABSENT = {
    "AUTO-OBSERVED": ("observed", "history", "effective"),
    "AUTO-CONFORM-FLINK": (
        "exclude",
        "quota",
        "gc_",
        "heap",
        "memory",
        "plugin",
        "custom",
        "events",
        "resource_check",
    ),
}
"""By deviation: parts of the names of inputs that no option of ours stands for."""


def check(function: str, inputs: Inputs) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    for deviation, words in _ABSENT.items():
        if any(word in name for name in inputs for word in words):
            raise NotRepresentable(deviation)
    for start, run in _RULES.items():
        if function.startswith(start):
            return run(inputs)
    raise NotRepresentable("AUTO-CONFORM-FLINK")


def _scale(inputs: Inputs) -> Mapping[str, Any]:
    lowest, highest = inputs["lower_limit"], inputs["upper_limit"]
    mode = inputs.get("mode", "EVENLY_SPREAD")
    if lowest > highest or mode not in _MODES:
        raise NotRepresentable("AUTO-CONFORM-FLINK")
    alignment, maximise = _MODES[mode]
    partitions = max(0, inputs.get("source_partitions", 0))
    scaling = Scaling(
        current=inputs["current"],
        factor=inputs["scale_factor"],
        lowest=lowest,
        highest=highest,
        key_groups=inputs["max_parallelism"],
        partitions=partitions,
    )
    aligned = partitions > 0 or _hashed(inputs)
    alignment = alignment if aligned else Alignment.OFF
    return {"parallelism": scaled(scaling, alignment, maximise=maximise)}


def _target(inputs: Inputs) -> Mapping[str, Any]:
    rules, delayed = _rules(inputs), dict[str, Delayed]()
    name = _SOURCE if inputs.get("source_partitions") else _SINK
    changes = list[list[Any]]()
    for look in inputs.get("looks", [inputs]):
        vertex = _vertex(look, inputs["current"])
        wanted, outside = rules.decided(
            name, vertex, look.get("at_s", 0.0), delayed, backlog=inputs.get("backlog", False)
        )
        changes.append([wanted] if wanted == vertex.current else [wanted, outside])
    last = changes[-1]
    return {
        "parallelism": last[0],
        "outside": last[1:] == [True],
        "no_change": len(last) == 1,
        "parallelism_and_outside": changes,
    }


def _waiting(inputs: Inputs) -> Mapping[str, Any]:
    triggers = inputs["triggers_at_s"]
    waits, highest = Delayed(triggers[0][0]), list[list[Any]]()
    for (at_s, instances, outside), start_s in zip(
        triggers, inputs["window_starts_s"], strict=True
    ):
        waits = waits.with_one(at_s, instances, outside=outside)
        highest.append(list(waits.highest_since(start_s)))
    return {"highest_after_each": highest}


def _bounds(inputs: Inputs) -> Mapping[str, Any]:
    up_below, down_above = _rules(inputs).bounds_per_s(
        _vertex(inputs, 1), backlog=inputs.get("backlog", False)
    )
    return {"scale_up_below": up_below, "scale_down_above": down_above}


def _evaluated(inputs: Inputs) -> Mapping[str, Any]:
    looks = inputs["looks"]
    window = tuple((look["at_s"], _reading(look)) for look in looks)
    lags = {_SOURCE: looks[-1][_SOURCE].get("lag", 0.0), _SINK: 0.0}
    vertices, _ = _rules(inputs).evaluated(window, lags, dict.fromkeys(lags, 1))
    return {
        name: {
            "target_rate": one.target_per_s,
            "catch_up_rate": one.catch_up_per_s,
            "load": one.busiest_share,
        }
        for name, one in vertices.items()
    }


def _backlog(inputs: Inputs) -> Mapping[str, Any]:
    return {"backlog": _rules(inputs).is_backlog(inputs.get("lag") or 0.0, inputs["input_per_s"])}


def _true_rate(inputs: Inputs) -> Mapping[str, Any]:
    in_s, busy = inputs["input_per_s"], inputs["busy_ms_per_s"]
    if in_s == 0:
        return {"true_rate": math.inf}
    if not all(isinstance(value, int | float) for value in (in_s, busy)):
        raise NotRepresentable("AUTO-OBSERVED")
    return {"true_rate": true_rate(in_s, busy / 1000)}


def _summary(inputs: Inputs) -> Mapping[str, Any]:
    rules = _rules(inputs)
    vertices = {name: _vertex(inputs[name], inputs[name]["parallelism"]) for name in _names(inputs)}
    changes = rules.summary(vertices, 0.0, {}, backlog=inputs.get("backlog", False))
    return {
        "vertices_changed": len(changes),
        "changed": sorted(changes),
        "parallelism": {
            name: changes.get(name, one.current) for name, one in sorted(vertices.items())
        },
    }


def _end_to_end(inputs: Inputs) -> Mapping[str, Any]:
    """A look that brings another parallelism is the first of a job that was started again; one
    that brings none has what was decided before."""
    rules, after = _with_options(inputs), list[list[int]]()
    memory, started_s, before, wanted = rules.initial_memory(), 0.0, [0, 0], {_SOURCE: 1, _SINK: 1}
    for look in inputs["looks"]:
        parallelism = look.get("parallelism", list(wanted.values()))
        both = parallelism if isinstance(parallelism, list) else [parallelism] * 2
        started_s, before = (started_s if both == before else look["at_s"]), both
        current = dict(zip((_SOURCE, _SINK), both, strict=True))
        rules = replace(rules, window_s=look.get("window_s", rules.window_s))
        memory, targets = rules.targets(memory, _observation(look, current, started_s))
        wanted = current | {name: target.instances for name, target in targets.items()}
        after.append([wanted[_SOURCE], wanted[_SINK]])
    outcome: dict[str, Any] = {"parallelism": wanted, "parallelism_after_each_look": after}
    if len(after) == _LOOKS_OF_WHOLE_TEST:
        outcome["whole_test_after_each_look"] = after
    return outcome


def _delayed_end_to_end(inputs: Inputs) -> Mapping[str, Any]:
    """Looks a minute apart, each with as many records more, until something changes; operators are
    busy for so many milliseconds of a second, each value for so many looks."""
    rules, current = _with_options(inputs), inputs["parallelism"]
    busy_ms = {
        name: [values[0]] + [value for value in values for _ in range(inputs["looks_per_value"])]
        for name, values in inputs["busy_ms_per_s"].items()
    }
    memory = rules.initial_memory()
    last = inputs.get("until_minute", len(busy_ms[_SOURCE]) - 1)
    for minute in range(last + 1):
        records = max(0, minute - 1) * inputs["records_per_minute"]
        look = {
            name: {"records_in": records, "busy": values[minute] / 1000}
            for name, values in busy_ms.items()
        }
        waiting = sorted(memory.delayed)
        seen = _observation({"at_s": 60.0 * minute, **look}, current, 0.0)
        memory, targets = rules.targets(memory, seen)
        if targets:
            after = current | {name: target.instances for name, target in targets.items()}
            change = {"minute": minute, "parallelism": after}
            return {"change": change, "waiting_before": waiting, "waiting": sorted(memory.delayed)}
    return {"change": None, "waiting_before": waiting, "waiting": sorted(memory.delayed)}


_RULES: Mapping[str, Callable[[Inputs], Mapping[str, Any]]] = {
    "JobVertexScaler.scale": _scale,
    "computeScaleTargetParallelism": _target,
    "DelayedScaleDown.triggerScaleDown": _waiting,
    "computeProcessingRateThresholds": _bounds,
    "computeEvaluatedMetrics": _evaluated,
    "isProcessingBacklog": _backlog,
    "computeTrueProcessingRate": _true_rate,
    "ScalingExecutor.computeScalingSummary": _summary,
    "JobAutoScalerImpl.scale, scale-down delayed": _delayed_end_to_end,
    "JobAutoScalerImpl.scale": _end_to_end,
}
"""By how the name of upstream's function begins."""


def _hashed(inputs: Inputs) -> bool:
    """Of a row, or of one operator of it."""
    return "HASH" in inputs.get("input_ship_strategies", "")


def _names(inputs: Inputs) -> list[str]:
    """The operators that a row has, from the source on."""
    named = [name for name, of in inputs.items() if isinstance(of, dict) and "parallelism" in of]
    return named or [_SOURCE, _SINK]


def _with_options(inputs: Inputs) -> Flink:
    """Of a row that has our options under their own names."""
    options: dict[str, Any] = {
        name: float(_BIGGEST) if value == "max int" else value
        for name, value in inputs["options"].items()
    }
    return Flink(setting=_setting(inputs), **options)


def _rules(inputs: Inputs) -> Flink:
    options: dict[str, Any] = {
        "most_down": 1.0,
        "most_up": float(_BIGGEST),
        "catch_up_s": 0.0,
        "scale_down_after_s": 0.0,
        "version": "1.15",
        "key_groups": 720,
        "maximise_utilisation": inputs.get("mode") == "MAXIMIZE_UTILISATION",
    }
    options |= {ours: inputs[theirs] for theirs, ours in _OPTIONS.items() if theirs in inputs}
    options |= {name: inputs[name] for name in _OPTIONS.values() if name in inputs}
    return Flink(setting=_setting(inputs), **options)


def _vertex(inputs: Inputs, current: int) -> Vertex:
    return Vertex(
        current=current,
        target_per_s=inputs["target_rate"],
        catch_up_per_s=inputs.get("catch_up_rate", 0.0),
        true_per_s=float(inputs.get("true_rate", math.inf)),
    )


def _setting(inputs: Inputs) -> Setting:
    """A chain of operators. Behind a hash, an operator is one with state."""
    source, *others = _names(inputs)
    behind_hash = {name: _hashed(inputs) or _hashed(inputs.get(name) or {}) for name in others}
    return chain({source: False, **behind_hash}, inputs.get("output_ratio", 1))


def _reading(look: Inputs) -> Reading:
    return {
        name: (
            of["records_in"],
            of.get("lag", of.get("pending", 0)),
            of.get("load", of.get("busy")),
        )
        for name, of in look.items()
        if name in (_SOURCE, _SINK)
    }


def _observation(look: Inputs, current: Mapping[str, int], started_s: float) -> Observation:
    operators = {
        name: OperatorSample(
            operator=name,
            waiting_items=waiting,
            durations_ms=(),
            arrived_items=0,
            completed_items=0,
            completed_in_all=done,
            busiest_share=busy,
        )
        for name, (done, waiting, busy) in _reading(look).items()
    }
    return Observation(
        now_s=look["at_s"],
        operators=operators,
        hosts={},
        instances=_instances(tuple(current.items()), started_s),
        job_started_s=started_s,
    )


@cache
def _instances(counts: tuple[tuple[str, int], ...], started_s: float) -> dict[str, InstanceSample]:
    """So many of every operator; kept, for many looks of a test see the same hundreds."""
    return {
        f"{name}-{n}": InstanceSample(
            instance=f"{name}-{n}",
            operator=name,
            host="any",
            started_s=started_s,
            ready=True,
            stopping=False,
        )
        for name, count in counts
        for n in range(count)
    }
