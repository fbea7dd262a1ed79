"""A run: a spec point with everything looked up, stored once and read by every window."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from include.controllers import CONTROLLERS
from include.controllers.base import Controller, Setting
from include.experiment.controller_setting import setting_of
from include.experiment.levels import levels_of_sources
from include.experiment.options import checked_options
from include.experiment.prices import price_book
from include.experiment.problems import problems_of, read_calibration
from include.experiment.spec import Choice, RunSpec, without_empty
from include.model.billing import CloudPriceBook
from include.model.errors import SpecError
from include.model.host import HostFlavor, PriceBook
from include.model.topology import Topology
from include.testbeds import TESTBEDS
from include.testbeds.base import Testbed, TestbedConfig
from include.testbeds.flavors import FLAVORS
from include.workloads.pattern import Levels
from include.workloads.topologies import load_topology

PEAK_UTILISATION = 0.6
"""How busy the instances that an oracle provides are at the peak of the arrivals."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that decides what is measured. Stored as run.json before anything starts."""

    spec: RunSpec
    topology: Topology
    levels: tuple[Levels, ...]
    """Each once, because many sources may follow the same."""
    level_of: Mapping[str, int]
    """For every source, the place of its level in ``levels``."""
    flavor: HostFlavor
    price_books: tuple[CloudPriceBook | PriceBook, ...]
    calibration: Mapping[str, Any]
    faults: Mapping[str, Any]
    instances_at_peak: Mapping[str, int]
    """By operator, those that are PEAK_UTILISATION busy when every source is at its highest."""

    @property
    def levels_of(self) -> dict[str, Levels]:
        return {source: self.levels[place] for source, place in self.level_of.items()}

    @property
    def instances_per_level(self) -> dict[str, float]:
        """Instances of each operator that one level unit keeps busy all the time."""
        levels = dict.fromkeys(self.topology.source, 1.0)
        return self.topology.busy_instances(levels, self.calibration["service_ms"])

    @cached_property
    def spec_hash(self) -> str:
        """The same for the same measurements: it covers every file the spec refers to."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        plain = _ADAPTER.dump_python(self, mode="json")
        plain["spec"] = without_empty(plain["spec"])
        for operator in plain["topology"]["operators"]:
            if operator["keyed"] is None:  # the hashes of runs are older than the field
                del operator["keyed"]
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Run:
        return _ADAPTER.validate_json(text)

    def build_controller(self) -> Controller:
        return self._built(Choice(self.spec.controller, dict(self.spec.controller_options)))

    def build_advisors(self) -> dict[str, Controller]:
        return {advisor.label: self._built(advisor) for advisor in self.spec.advisors}

    def _built(self, choice: Choice) -> Controller:
        registered = CONTROLLERS[choice.name]
        options, _ = checked_options("", registered.build, choice.options)
        oracle = self.instances_at_peak if registered.needs_peak else {}
        setting = replace(self.setting, instances_at_peak=oracle)
        return registered.build(setting=setting, **options)

    @cached_property
    def setting(self) -> Setting:
        """What every controller may know of the run."""
        books = self.price_books
        return setting_of(self.spec, self.topology, self.flavor, books, self.calibration)

    def build_testbed(self) -> Testbed:
        """The testbed of the run, before anything is deployed on it."""
        config = TestbedConfig(
            topology=self.topology,
            levels_of=self.levels_of,
            flavor=self.flavor,
            max_hosts=self.spec.max_hosts,
            btu_s=self.spec.window_s,
            duration_s=self.spec.duration_s,
            seed=self.spec.seed,
            monitor_every_s=self.spec.monitor_every_s,
            calibration=self.calibration,
            faults=self.faults,
            run=self.spec.run_id,
            experiment=self.spec.experiment,
        )
        return TESTBEDS[self.spec.testbed].build(config)


_ADAPTER = TypeAdapter(Run)


def resolve(spec: RunSpec) -> Run:
    """Look everything up. Raises SpecError with every problem, before anything is provisioned."""
    if problems := problems_of(spec):
        raise SpecError(f"experiment {spec.experiment}", problems)
    topology = load_topology(spec.topology)
    calibration = read_calibration(spec, topology)
    levels_of = levels_of_sources(spec, topology)
    unique: dict[Levels, int] = {}
    for levels in levels_of.values():
        unique.setdefault(levels, len(unique))
    peaks = {name: levels.peak(spec.duration_s) for name, levels in levels_of.items()}
    faults = TESTBEDS[spec.testbed].parameters().faults.model_validate(spec.faults)
    busy_ms = topology.emission_period_s * 1000 * PEAK_UTILISATION
    return Run(
        spec=spec,
        topology=topology.with_memory_factor(calibration.memory_factor),
        levels=tuple(unique),
        level_of={source: unique[levels] for source, levels in levels_of.items()},
        flavor=FLAVORS[spec.flavor],
        price_books=tuple(price_book(name) for name in spec.price_books),
        calibration=calibration.model_dump(mode="json"),
        faults=faults.model_dump(mode="json"),
        instances_at_peak={
            name: max(1, math.ceil(items * calibration.service_ms[name] / busy_ms - 1e-9))
            for name, items in topology.items_per_period(peaks).items()
        },
    )
