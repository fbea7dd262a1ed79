"""The live testbed on servers of an OpenStack cloud: its own hosts, everything else as ``docker``.

Every server carries the tags ``tidebench``, run and site (this installation), and as metadata the
run and when it is due to end. So whoever comes next finds it, whatever has died in between.
"""
