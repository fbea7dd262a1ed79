"""The testbed protocol on real hosts, containers and queues, in wall time."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import redis

from include.model.decision import Decision, LeaseHost, MigrateInstance, Outcome
from include.model.errors import TestbedError, TestbedNotReady
from include.model.observation import OperatorSample
from include.testbeds.base import TestbedConfig
from include.testbeds.live.broker import TROUBLE, why_blocked
from include.testbeds.live.calibration import LiveCalibration
from include.testbeds.live.fleet import LiveHost, LiveInstance
from include.testbeds.live.give_back import give_back
from include.testbeds.live.hosts.local.hosts import LocalHosts
from include.testbeds.live.hosts.provider import HostProvider
from include.testbeds.live.monitor import LiveMonitor
from include.testbeds.live.reading import observed_of, operator_samples
from include.testbeds.live.real_time import DEPLOY_WITHIN_S, LEAD_S, RealTimeTestbed, Watch
from include.testbeds.live.reconciler import LiveReconciler
from include.testbeds.live.replay import ReplayProcess, plan_of
from include.testbeds.live.services import START, image_of
from include.testbeds.live.state import RunState


class LiveTestbed(RealTimeTestbed[LiveHost, LiveInstance]):
    """A run on leased Docker hosts. Processes come and go; ``RunState`` is what they share."""

    _host_type = LiveHost
    _instance_type = LiveInstance

    def __init__(
        self,
        config: TestbedConfig,
        hosts: HostProvider | None = None,
        calibration: LiveCalibration | None = None,
    ) -> None:
        calibration = calibration or LiveCalibration.model_validate(config.calibration)
        hosts = hosts or LocalHosts(config.run)
        self._state = RunState(config, calibration.complete(config.topology), hosts)
        self._reconciler = LiveReconciler(self._state)
        super().__init__(self._state, LiveMonitor(self._state), self._reconciler)

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Create queues, hosts and instances, wait until all are up, start the data provider.

        Gives back resources of an earlier attempt first. Raises TestbedNotReady if something is
        not up in time, TestbedError if it will never be, and before anything is started the errors
        of ``HostProvider.check``, or TestbedNotReady if the broker blocks publishers.
        """
        state = self._state
        leases = [step for step in decision.steps if isinstance(step.action, LeaseHost)]
        state.hosts.check(state.config.flavor, len(leases))
        give_back(state.run, state.hosts)
        if why := why_blocked(state.services):
            raise TestbedNotReady(why)
        state.touch()
        try:
            state.broker.declare(state.config.topology.operator_names)
            state.shared.grant()
        except (*TROUBLE, redis.RedisError) as error:
            raise TestbedNotReady(f"broker or Redis does not answer; {START}: {error}") from error
        outcomes = self._carry_out_first(decision)
        self._wait_until_up()
        state.begin(LEAD_S)
        state.save()
        ReplayProcess(state.run).start(plan_of(state.config, state.clock))
        return outcomes

    def _wait_until_up(self) -> None:
        state = self._state
        wanted = len(state.fleet.instances), len(state.fleet.leased())
        limits = state.calibration
        within_s = max(DEPLOY_WITHIN_S, limits.boot_within_s + limits.start_within_s)
        began_s = time.monotonic()
        while self._not_up():
            rest_s = self._reconciler.reconcile()
            now = len(state.fleet.instances), len(state.fleet.leased())
            if now != wanted:
                events, _ = state.journal.read(0)
                raise TestbedError(f"the deployment failed: {events['event']['detail'][-1]}")
            waited_s = time.monotonic() - began_s
            booting = [host.name for host in state.fleet.leased() if not host.endpoint]
            for late, limit_s in ((booting, limits.boot_within_s), (self._not_up(), within_s)):
                if late and waited_s > limit_s:
                    problem = f"not up within {limit_s:g} s: {', '.join(late)}"
                    raise TestbedNotReady(f"{problem}; see {state.folder}")
            time.sleep(rest_s)

    def lease(self, action: LeaseHost) -> LiveHost:
        state, now_s = self._state, self._state.now_s()
        state.touch()  # many orders to a slow cloud take longer than a run may be silent
        return self._keep_lease(action, now_s, id=state.hosts.lease(state.config.flavor))

    def migrate(
        self, instance: LiveInstance, host: LiveHost, action: MigrateInstance
    ) -> LiveInstance:
        instance.overlaps = action.overlaps
        return super().migrate(instance, host, action)

    # --------------------------------------------------------------- reading

    def _operators(self, before: Watch) -> tuple[dict[str, OperatorSample], Watch]:
        state = self._state
        instances, scale = state.fleet.instances.values(), state.clock.scale
        now = observed_of(state.reading, before, instances, scale)
        seen_before = {**before, "busy": now["busy"]}
        return operator_samples(state.config.topology, state.reading, seen_before), now

    def _images(self, host: LiveHost) -> frozenset[str]:
        state, names = self._state, self._state.config.topology.operator_names
        return frozenset(name for name in names if image_of(state.images, name) in host.images)

    # ------------------------------------------------------------------- end

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().restore(arrays)
        self._reconciler.give_back_strays()

    def close(self) -> None:
        self._reconciler.close()
        self._state.hosts.close()

    def give_back(self) -> None:
        """The folder is deleted last, so a run without a folder holds nothing."""
        state = self._state
        if state.folder.is_dir() or state.hosts.leased():
            give_back(state.run, state.hosts)
        self.close()  # last, because calls under way end with their hosts
