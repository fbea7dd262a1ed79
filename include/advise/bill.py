"""What leases cost in a month, and what they would cost at least."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from include.advise.case import Case
from include.advise.cluster import ReplayLease
from include.model.billing import MONTH_S, CloudPriceBook
from include.model.host import PriceBook
from include.workloads.recordings.recording import FloatArray


def cost_of(
    leases: Iterable[ReplayLease], book: PriceBook, lasted_s: float, step_s: float
) -> float:
    """Cost of a month of leases like these, in the currency of the book.

    The recording is taken to repeat for a month of 730 hours. A host that is held throughout is
    one lease of a month, so that it pays a cap once and no begun hour at the end of a recording.
    """
    leases = list(leases)
    if isinstance(book, CloudPriceBook) and book.reserved:
        return book.fleet_cost(_held(leases, lasted_s, step_s), step_s) * MONTH_S / lasted_s
    shorter = [lease for lease in leases if lease.ordered_s > 0 or lease.ends_s < lasted_s]
    billed = sum(book.bill(lease.ends_s - lease.ordered_s) for lease in shorter)
    return billed * MONTH_S / lasted_s + (len(leases) - len(shorter)) * book.bill(MONTH_S)


def _held(leases: Iterable[ReplayLease], lasted_s: float, step_s: float) -> list[float]:
    times_s = np.arange(0, lasted_s, step_s)
    held = np.zeros(times_s.size)
    for one in leases:
        held += (one.ordered_s <= times_s) & (times_s < one.ends_s)
    return [float(count) for count in held]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBound:
    """The least that a month can cost, and hosts by step that would do with it."""

    cost: float
    hosts: FloatArray


def bound_of(case: Case, load: FloatArray) -> HostBound:
    """What hosts cost at least that process the share of the records that the objective asks for.

    With foresight, without boot, restarts or billed time that is not used, and every instance at
    the capacity of the model. Where a record may wait for a step or longer, work
    can be put off, and only all of it over the whole recording counts; else every step needs
    whole hosts, of which those go first that would process least, until the share is reached.
    """
    read, question = case.read, case.question
    each = case.job.most_per_s * question.conditions.instances_per_host
    share, carried = question.objective.share, question.objective.limit_s / read.step_s
    if carried >= 1:
        hosts = np.full(load.size, share * float(load.mean()) / each)
    else:
        hosts = whole_hosts(load, each, share, carried)
    lasted_s = load.size * read.step_s
    return HostBound(cost=_least_cost(hosts, question.book, read.step_s, lasted_s), hosts=hosts)


def whole_hosts(
    load_per_s: FloatArray, each_per_s: float, share: float, carried: float = 0.0
) -> FloatArray:
    """The fewest hosts by step that process ``share`` of the load in time, the last one in part.

    What arrives in a step may be processed within the share ``carried`` of the next one as well:
    with hosts k in a step and l in the next at most min(load, each * k) + carried * each * l. So
    every host adds ``carried * each`` in any case. The rest is the linear relaxation of a
    knapsack: the last host of a step processes what is left there, and leaving it away loses that;
    every further one loses ``each_per_s``.
    """
    hosts = np.ceil(load_per_s / each_per_s)
    last = load_per_s - np.maximum(0.0, hosts - 1) * each_per_s
    spare = (1 - share) * float(load_per_s.sum()) + carried * each_per_s * float(hosts.sum())
    order = np.argsort(last, kind="stable")
    order = order[hosts[order] > 0]
    loses = last[order] + carried * each_per_s
    lost = np.cumsum(loses)
    gone = int(np.searchsorted(lost, spare, side="right"))
    hosts[order[:gone]] -= 1
    rest = spare - (float(lost[gone - 1]) if gone else 0.0)
    if gone < order.size:
        hosts[order[gone]] -= rest / float(loses[gone])
        return hosts
    total = max(0.0, float(hosts.sum()) - rest / (each_per_s * (1 + carried)))
    return hosts * (total / float(hosts.sum())) if hosts.sum() else hosts


def _least_cost(hosts: FloatArray, book: PriceBook, step_s: float, lasted_s: float) -> float:
    """By the second, at most the cap; reserved hosts are paid in any case."""
    if isinstance(book, CloudPriceBook) and book.reserved:
        return book.fleet_cost(hosts.tolist(), step_s) * MONTH_S / lasted_s
    price_per_s = book.price_per_btu / book.btu_s
    if isinstance(book, CloudPriceBook) and book.cap_per_month is not None:
        price_per_s = min(price_per_s, book.cap_per_month / MONTH_S)
    return float(hosts.mean()) * price_per_s * MONTH_S
