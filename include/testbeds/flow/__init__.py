"""The fluid testbed: amounts of items in fixed steps, for hundreds of operators and tenants.

Where the per-item testbed follows each item, this one moves amounts, so its cost does not grow
with the rate. A step (one second by default) goes like this:

1. Sources publish the integral of their rate. In flow order every operator takes what its
   parents let go in the same step; what it cannot process waits in one FIFO, none is lost.
   Amounts are whole micro-items, so they are conserved exactly, fan-outs such as 1/300 included.
2. Work is items times ``service_ms``; an instance uses at most one core. On a host with
   ``cpu_shared`` a busy instance takes a core; elsewhere it takes the cores it has reserved.
   Instances, background load and an overhead per instance share the CPU of their host: when
   they want more than there is, each gets at most the same fair share (max-min), as under the
   scheduler of an operating system. So at double demand, busy instances run at half the speed.
   When they want less they still meet on its cores, and are slower by what the mean field of
   processor sharing says.
3. Waiting comes from the FIFO, exactly as the two cumulative curves of arrivals and departures
   say, or from randomness below saturation, whichever is longer. The second is Sakasegawa's
   approximation for n servers, with variabilities propagated from operator to operator by
   Marshall's formula, bounded by what can build up within ``settle_s``.
4. Every amount knows mean and variance of its age. Latency of a tenant is the age at its sinks,
   weighted by flow, network included; its 95th percentile is that of the gamma distribution
   with this mean and variance (Wilson and Hilferty's approximation).

What a job does beyond that is off by default, and a setting of the calibration each:

- ``restart``: the whole job is down when instances come or go, once for each decision, and then is
  slow for a while. What the decision stops works until all that it starts is ready. ``restarts``
  among the faults come by themselves.
- ``key_groups``: items come in parts (of a keyed operator by its keys), an instance takes whole
  ones, and the operator is as slow as its fullest instance. Hosts are counted at the mean of the
  instances.
- ``rest_s``: how long an item waits for an operator even when that is idle, ``pass_s``: how long it
  is in it on no core. Both are in its age; the next operator has it in the same step nevertheless.
- ``cpu_at_rest`` and ``cpu_when_busy``: what an idle and a busy instance show; of ``cpu_window_s``
  the mean is shown, once in that time.
- ``cpu_residuals``: readings of CPU are away from the model as recorded ones were, in blocks drawn
  by the seed, on top of ``cpu_noise``; hosts and instances are all alike. On ``simulated``, too.
- ``input_items``: what may wait for an operator; what feeds a full one is slowed, to the source.
  What waits there is outside, and counts for nobody.

A stateless instance migrates without a gap: the old one serves until the new one is ready.
That of a stateful operator does too, and then its operator pauses while the state moves
(``migration_pause_s`` + ``state_mb`` / ``state_mb_per_s``); arriving items wait.

Everything is a function of spec and seed: neither windows, snapshots nor how often somebody
observes change a result.
"""
