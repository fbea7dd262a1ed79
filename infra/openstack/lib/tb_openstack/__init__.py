"""What the local control plane adds to OpenStack: launching, serving, faults, a driver, a seed.

Runs in the environment of the services, with the oldest Python that they support.
"""
