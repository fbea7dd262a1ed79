"""The live testbed: real containers on Docker hosts of this machine, a real broker, wall clock.

Everything it holds carries the id of its run: the vhost, the users of broker and Redis, Redis keys,
containers (label ``tidebench.run``), leases of hosts, and one folder below ``<live state>/runs``.
The folder is the only memory, so whichever process comes next goes on from it, and whoever tidies
up (``give_back.py``, ``reap.py``) needs nothing else.
"""
