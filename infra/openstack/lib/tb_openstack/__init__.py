"""Additions of the local control plane to OpenStack: launcher, server, faults, driver, seed.

Runs in the environment of the services, with the oldest Python that they support.
"""
