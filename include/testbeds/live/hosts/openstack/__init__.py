"""The live testbed on servers of an OpenStack cloud: its own hosts, everything else as ``docker``.

Every server has the tags ``tidebench``, run and site (this installation), and as metadata the run
and its due end, so that it can be found whichever process dies.
"""
