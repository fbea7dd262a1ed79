"""The data provider: publishes what the sources of a live run emit, when they emit it.

One process per run, detached, because it must go on between the tasks of a run. How far it has
come stands in Redis (``<run>:sent:<source>``), so that it can be started again wherever it died:
what was sent and not yet noted is sent again under the same id.
"""
