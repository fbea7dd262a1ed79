"""A job whose instances come and go all at once: a rescale stops it, and starts it with others.

All that was decided and can be carried out becomes one rescale, as on the testbed ``flink``:
instances that start join once their host has booted, those that stop serve until then, and what is
decided while a rescale is under way waits for the next one. A rescale begins with a checkpoint:
what an operator does once it has taken part in it does not count, for it is done again. Items that
begin in the hot phase after that take longer.

With bounded buffers a checkpoint is not possible while instances still go through what was in
their buffers when the job was started last (Flink declines one with "tasks not ready"), and it
takes as long as the last instance needs to take part (:meth:`QueueingNetwork.checkpoint`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from include.testbeds.simulated import kernel
from include.testbeds.simulated.network import I64, LATER_US, QueueingNetwork
from include.testbeds.snapshots import StoredState
from include.testbeds.virtual.calibration import WholeRescale
from include.testbeds.virtual.cloud import VirtualCloud, us
from include.testbeds.virtual.fleet import VirtualInstance

AGAIN_US = 500_000
"""How soon a checkpoint that is not possible yet is tried again."""
USUAL_PERMILLE = 1000


@dataclass(slots=True)
class WholeJob(StoredState):
    """Who runs, and who is to join or to leave with the next rescale."""

    STORED = (
        "rescales", "up_us", "retry_us", "asked_us", "hot_until_us", "hot_permille", "joins_us",
    )  # fmt: skip

    settings: WholeRescale
    network: QueueingNetwork
    cloud: VirtualCloud
    rescales: int = 0
    up_us: int = 0
    """Since when the job is up, or from when on it will be."""
    retry_us: int = 0
    asked_us: int = -1
    """When the rescale was asked for that is not possible yet; -1: there is none."""
    hot_until_us: int = 0
    hot_permille: int = USUAL_PERMILLE
    """Until when the job is slow that was started last, and how fast instances are meanwhile."""
    joins_us: dict[int, int] = field(default_factory=dict)
    """By instance that is not in the job yet, when its host has it ready to join."""

    def begin(self) -> None:
        """What is deployed runs."""
        self.joins_us = {}

    def start(self, instance: VirtualInstance) -> None:
        """An instance joins with a rescale; until then it is not ready."""
        self.joins_us[instance.number] = instance.ready_us
        instance.ready_us = LATER_US

    def stop(self, instance: VirtualInstance) -> None:
        """One that runs serves until the next rescale; one that has not joined never does."""
        if self.joins_us.pop(instance.number, None) is not None:
            self.network.close_server(instance.row, instance.number, 0)

    def forget(self, instances: list[VirtualInstance]) -> bool:
        """Instances that are about to be lost; returns whether any was in the job, and had not
        left it."""
        joining = {instance.number for instance in instances if instance.number in self.joins_us}
        served = any(self._open(lost) for lost in instances if lost.number not in joining)
        for number in joining:
            del self.joins_us[number]
        return served

    def start_without_lost(self, now_us: int) -> None:
        """Start the job without what was lost, on a checkpoint of this moment."""
        at_once = np.zeros(len(self.network.names), dtype=np.int64), 0
        self._rescale(now_us, [], "instances were lost", at_once, decided=False)

    def next_us(self, now_us: int) -> int:
        """When to look again whether to rescale, and how fast instances are."""
        due_us = now_us if self._leaving() else min(self.joins_us.values(), default=kernel.NEVER)
        if due_us < kernel.NEVER:
            due_us = max(now_us, self.up_us, self.retry_us, due_us)
        hot_us = (self.up_us, self.hot_until_us) if self.up_us < self.hot_until_us else ()
        return min([due_us, *(at_us for at_us in hot_us if at_us > now_us)])

    def speed_permille(self, now_us: int) -> int:
        """How fast instances are for items that begin now."""
        hot = self.up_us <= now_us < self.hot_until_us
        return self.hot_permille if hot else USUAL_PERMILLE

    def rescale_if_due(self, now_us: int) -> None:
        """Rescale, if somebody is to come or go and a checkpoint is possible."""
        joining = [number for number, at_us in self.joins_us.items() if at_us <= now_us]
        if now_us < self.up_us or not (joining or self._leaving()):
            return
        if self.asked_us < 0:
            self.asked_us = now_us
        if self.network.restoring:
            self.retry_us = now_us + AGAIN_US
            return
        checkpoint = self.network.checkpoint(now_us)
        why = f"asked for at {self.asked_us / 1e6:.1f} s"
        self._rescale(now_us, joining, why, checkpoint, decided=True)
        self.cloud.pause_job(now_us, self.up_us)

    def _leaving(self) -> list[VirtualInstance]:
        return [
            one
            for one in self.cloud.fleet.instances.values()
            if one.stopped_us is not None and not one.successor and self._open(one)
        ]

    def _open(self, one: VirtualInstance) -> bool:
        """False for one that has left, or was stopped before it joined."""
        slot = self.network.slot(one.row, one.number)
        return bool(self.network.state.servers[one.row, slot, kernel.OPEN])

    def _rescale(
        self,
        now_us: int,
        joining: list[int],
        why: str,
        checkpoint: tuple[I64, int],
        *,
        decided: bool,
    ) -> None:
        """Start the job again."""
        fleet, network = self.cloud.fleet, self.network
        self.rescales += 1
        for number in joining:
            del self.joins_us[number]
            for old in fleet.replaced_by(number):
                old.successor, old.stopped_us = 0, now_us
        runs = len(fleet.serving()) - len(self.joins_us)
        goes_on_us, checkpoint_us = checkpoint
        gap_us = checkpoint_us + us(self.settings.gap(self.cloud.draws, self.rescales, runs))
        self.up_us, self.asked_us = now_us + gap_us, -1
        # A start that a loss interrupts is that of the loss.
        ups_us = [start for start in self.cloud.ups_us if start[0] <= now_us]
        self.cloud.ups_us = [*ups_us, (self.up_us, gap_us, decided)]
        hot_us, factor = self.settings.hot_phase(self.cloud.draws, self.rescales)
        self.hot_until_us = self.up_us + hot_us
        self.hot_permille = max(1, round(USUAL_PERMILLE / factor))
        for number in joining:
            fleet.instances[number].ready_us = self.up_us
        leaving = self._leaving()
        for one in leaving:
            one.stopped_us = now_us
        leave = [one.number for one in leaving]
        network.start_again(joining, leave, now_us, self.up_us, goes_on_us)
        if self.settings.packs:
            self._pack(now_us)
        detail = f"{why}, down for {gap_us / 1e6:.2f} s, {len(joining)} instances joined"
        self.cloud.events.append((now_us / 1e6, "job_restart", "job", detail))

    def _pack(self, now_us: int) -> None:
        """Put all that runs on hosts that are up, so many to each as Flink has slots there."""
        config, fleet = self.cloud.config, self.cloud.fleet
        slots = config.flavor.capacity.slots(config.topology.operators)
        up = [host for host in fleet.leased() if host.up_us <= now_us]
        hosts = sorted(up, key=lambda host: (host.releasing, host.number))
        runs = [one for one in fleet.serving() if one.ready_us < LATER_US]
        for place, one in enumerate(sorted(runs, key=lambda one: one.number)):
            one.host = hosts[min(place // slots, len(hosts) - 1)].number
            slot = self.network.slot(one.row, one.number)
            self.network.state.servers[one.row, slot, kernel.HOST] = one.host
