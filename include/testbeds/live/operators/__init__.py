"""What runs inside the containers of a live topology, and nothing else of the project.

The images copy this folder only, so it imports the standard library, pika and redis, and inside
functions what single operators need. One container is one instance: it takes items from the queue
of its operator, does the operator's work and sends what comes out to the queues of the targets.

Environment of a container (``settings.py`` reads it):

* ``TB_OPERATOR``, ``TB_INSTANCE``, ``TB_RUN``: names; the run is also the prefix of its Redis keys
* ``TB_AMQP_URL``, ``TB_REDIS_URL``: with the credentials of the run. Rather than here they stand
  in the JSON file that ``TB_SECRETS`` names (/run/tidebench/secrets.json unless given), as an
  object with these two names; a value in the environment wins
* ``TB_TARGETS``: JSON list of ``{"operator", "out", "in"}``, ``out`` items per ``in`` items
* ``TB_SAMPLE_EVERY``: report every so many-th item to the queue ``monitor``, 0 for none
* ``TB_TIMESTAMP_RESOLUTION_S``: cut of the publication time in reported durations, 0 for none
* ``TB_PREFETCH``: items the broker hands out before one is acknowledged
* ``TB_SLO_MS``: o_slo, which the health page compares the last duration with
* ``TB_SERVICE_MS``: CPU time per item of the operator ``relay``
* ``TB_HEALTH_PORT``: port of ``/health``, 0 for none
* ``TB_HEARTBEAT_S``: a silent peer is given up after about twice this
* ``TB_CODE``: which code of ``codes.py`` runs, when it is not that of the operator's name
"""
