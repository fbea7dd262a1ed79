"""One dataclass per measured table: its fields are the columns and their Parquet types.

``experiment`` and ``run`` are partition columns, added by the store. ``time_s`` is seconds
since the run began. Strings are never null; an empty one means "does not apply".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row per run: the point of the spec that was run.

    ``variant`` and ``conditions`` say what was not left at its default (experiment/variant.py);
    ``pays_by_btu`` is that of the controller's registration.
    """

    controller: str
    pattern: str
    btu_min: float
    seed: int
    duration_s: float
    topology: str
    testbed: str
    flavor: str
    vcpus: float
    memory_mb: float
    sample_every_items: int
    spec_hash: str
    monitor_every_s: float
    pays_by_btu: bool
    variant: str = ""
    conditions: str = ""


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One row per operator of the run's topology.

    ``instances_per_level`` instances are busy all the time per level unit, where all sources have
    the same level. Compliance is totalled without those of
    ``high_volume`` as well. ``path_slo_ms`` is o_slo added up along the slowest path from a source.
    """

    operator: str
    label: str
    slo_ms: float
    cpu_cores: float
    memory_mb: float
    instances_per_level: float
    high_volume: bool
    path_slo_ms: float


@dataclass(frozen=True, slots=True)
class Price:
    """One row per price book of the run."""

    price_book: str
    btu_s: float
    price_per_btu: float
    penalty_per_item: float


@dataclass(frozen=True, slots=True)
class Billing:
    """How a price book bills beyond whole BTUs, and where its price is from.

    A lease pays at least ``minimum_s``, a multiple of the BTU, and at most ``cap_per_month``,
    which is 0 where there is no cap. Only books that users wrote have a row.
    """

    price_book: str
    minimum_s: float
    cap_per_month: float
    currency: str
    provider: str
    region: str
    instance_type: str
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class ProcessingDuration:
    """One sampled item at one operator; it stands for ``sample_every_items`` items.

    ``duration_ms`` is what the operator recorded (publication to completion, with the
    timestamp resolution of the run); ``wait_ms`` exact time in the queue; ``age_ms`` exact
    time since the source emitted the item this one derives from.
    """

    time_s: float
    operator: str
    instance: str
    duration_ms: float
    wait_ms: float
    age_ms: float


@dataclass(frozen=True, slots=True)
class DurationCount:
    """How many samples of an operator were how long, and how many how old (summaries.py).

    A sample is counted by its duration in one row and by its age in one. ``bad`` ones cannot be
    right, and those ``outside`` lie before the begin or after the end of the run.
    """

    operator: str
    bin: int
    samples: int
    ages: int
    real_time_late: int
    near_real_time_late: int
    relaxed_late: int
    bad: int
    outside: int


@dataclass(frozen=True, slots=True)
class DurationSum:
    """How long the samples of an operator took together that ended in a monitoring period.

    Period ``k`` begins ``k`` monitoring intervals after the run.
    """

    operator: str
    period: int
    samples: int
    total_us: int


@dataclass(frozen=True, slots=True)
class Queue:
    """One operator at one monitoring time. Counts of items are since the time before.

    ``instances`` run or start, ``ready_instances`` can take items.
    """

    time_s: float
    operator: str
    waiting_items: int
    arrived_items: int
    completed_items: int
    instances: int
    ready_instances: int


@dataclass(frozen=True, slots=True)
class InstanceUtilisation:
    """Share of the last monitoring period that an instance was busy."""

    time_s: float
    instance: str
    operator: str
    host: str
    cpu_share: float


@dataclass(frozen=True, slots=True)
class HostUtilisation:
    """Share of a host's CPU in use and of its memory reserved."""

    time_s: float
    host: str
    cpu_share: float
    memory_share: float
    instances: int


@dataclass(frozen=True, slots=True)
class ScalingActivity:
    """One change that was carried out.

    ``activity`` is upscaling, downscaling, migration, host_leased, host_prolonged or
    host_released.
    """

    time_s: float
    activity: str
    operator: str
    instance: str
    host: str


@dataclass(frozen=True, slots=True)
class Lease:
    """One host, from the order to its release (or the end of the run: ``released`` is false).

    ``paid_until_s`` is the end of the last BTU that the order and its prolongations pay for; a
    host that is kept longer is billed for the BTUs it has begun.
    """

    host: str
    flavor: str
    ordered_s: float
    ended_s: float
    paid_until_s: float
    released: bool


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One action of one decision (or none: ``action`` is wait) with its reason and outcome.

    ``reason`` is one of include/model/decision.py, for programs; ``because`` says it to people.
    """

    time_s: float
    step: int
    action: str
    operator: str
    subject: str
    host: str
    accepted: bool
    reason: str
    because: str
    detail: str


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """What an advisor would have done about one operator; nothing of it is carried out.

    Of the instances and hosts there are when it looks, the controller that acts makes the
    ``acted_`` ones at the same time, and the advisor would make the ``advised_`` ones; what the
    guard would refuse changes nothing. Hosts are those of the run, the same in every row of a
    time. Where the advisor ``failed`` it advised nothing, and ``because`` has its error.
    """

    time_s: float
    advisor: str
    operator: str
    instances: int
    acted_instances: int
    advised_instances: int
    hosts: int
    acted_hosts: int
    would_lease: int
    would_release: int
    failed: bool
    reason: str
    because: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """A monitoring period that ends at ``time_s``: the level with which it began, and the items
    that each source published in it.
    """

    time_s: float
    source: str
    level: float
    published_items: int


@dataclass(frozen=True, slots=True)
class TenantRow:
    """One tenant at one monitoring time; NaN where nothing left its sinks.

    ``utility`` is what its intent is worth now, of ``max_utility``; both 0 without an intent.
    """

    time_s: float
    tenant: str
    latency_ms: float
    tail_latency_ms: float
    juice: float
    utility: float
    max_utility: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the testbed: a fault, its end, a lost host."""

    time_s: float
    event: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class PauseRow:
    """When a change paused an operator or, without one, the whole job. Pauses may overlap, and end
    after the run.
    """

    operator: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class RescaleRow:
    """One time at which an engine stopped its job and started it again, by the clock of the run.

    ``asked_s`` is when it was ordered, ``down_s`` when processing stopped and ``up_s`` when it
    went on; of a ``cause`` that nobody ordered ``asked_s`` is ``down_s``. ``cause`` is controller,
    crash, or engine where neither explains it. ``gap_s`` is the longest silence at the outputs
    that this explains, NaN where it is not known. ``reprocessed_items`` were done again, over all
    operators. ``checkpoint_s`` and ``checkpoint_bytes`` are of the checkpoint that it was restored
    from, 0 without one; instances are those of all operators.
    """

    asked_s: float
    down_s: float
    up_s: float
    gap_s: float
    cause: str
    reprocessed_items: int
    checkpoint_s: float
    checkpoint_bytes: int
    instances_before: int
    instances_after: int


@dataclass(frozen=True, slots=True)
class MachineRow:
    """How busy the machine was that a run in real time shared, over one window that ends then.

    ``load`` is its highest load average over a minute. Timers of the process of the run were late
    by at most ``timer_lag_p99_ms`` in 99 of 100 cases, and never by more than ``timer_lag_max_ms``.
    """

    time_s: float
    load: float
    timer_lag_p99_ms: float
    timer_lag_max_ms: float


@dataclass(frozen=True, slots=True)
class CoverRow:
    """What the hosts of a run cost under a price book for whoever knows all arrivals.

    Computed by include/results/bounds, never measured; ``spec_hash`` is that of its run.
    """

    spec_hash: str
    price_book: str
    cover_cost: float
    floor_cost: float | None
    floor_found_cost: float | None


@dataclass(frozen=True, slots=True)
class SourceDemandRow:
    """What a source asks of an operator that its items reach; computed by include/results/tables,
    never measured.

    One level unit keeps ``instances_per_level`` busy all the time, those for an operator that runs
    in it included; that one has none. An item of the source leads to ``executions_per_item``.
    """

    source: str
    operator: str
    instances_per_level: float | None
    executions_per_item: float


@dataclass(frozen=True, slots=True)
class CostPartRow:
    """Costs that add up to what the hosts of a run were billed under a price book; hosts cost by
    the second in all but the last. Computed by include/results/bounds from what was measured.

    ``work``: hosts as fractions that do what arrives. ``whole_instances``: instances that are
    whole. ``whole_hosts``: hosts that are, as few as hold them. So much takes a schedule with
    foresight. ``headroom``: instances beyond these, negative where the run had fewer and fell
    behind. ``spread``: hosts beyond those that first fit takes for the run's own instances, largest
    first. ``empty``: hosts without an instance, which boot, were ordered early or wait for the end
    of their BTU. ``unused``: BTUs that are billed beyond the leases.
    """

    price_book: str
    work: float
    whole_instances: float
    whole_hosts: float
    headroom: float
    spread: float
    empty: float
    unused: float


SAMPLES = "processing_duration"
DURATION_COUNT = "duration_count"
DURATION_SUM = "duration_sum"

TABLES: dict[str, type] = {
    "run": RunRow,
    "operator": OperatorRow,
    "price": Price,
    "billing": Billing,
    SAMPLES: ProcessingDuration,
    DURATION_COUNT: DurationCount,
    DURATION_SUM: DurationSum,
    "queue": Queue,
    "instance_utilisation": InstanceUtilisation,
    "host_utilisation": HostUtilisation,
    "scaling_activity": ScalingActivity,
    "lease": Lease,
    "decision": DecisionRow,
    "advice": AdviceRow,
    "arrival": Arrival,
    "event": Event,
    "tenant": TenantRow,
    "pause": PauseRow,
    "rescale": RescaleRow,
    "machine": MachineRow,
}
"""Measured tables by name: ``run``, ``operator``, ``price``, ``billing`` and ``lease`` once,
the others once per window; ``advice`` only of a run with advisors, ``pause``, ``rescale`` and
``machine`` only on testbeds that are registered with them."""

ONCE_PER_RUN = ("run", "operator", "price", "billing", "lease")
"""Tables with some rows per run, in a file of their own."""
UNREAD = (SAMPLES, "instance_utilisation")
"""What no published table is made of; the largest two, which ``summaries_only`` leaves out."""

COVER = "cover"
COST_PART = "cost_part"
SOURCE_DEMAND = "source_demand"
COMPUTED: dict[str, type] = {
    COVER: CoverRow,
    COST_PART: CostPartRow,
    SOURCE_DEMAND: SourceDemandRow,
}
"""What queries read beside the measured tables; cover and parts once somebody asks for them."""
