"""The testbed `flink`: a real Apache Flink on this machine, rescaled as it runs, by the wall clock.

A host is a TaskManager, an instance a subtask in a slot of its own operator. Everything that a run
holds is in one folder below ``<flink state>/runs``, processes by number and time of birth, so
whichever process comes next goes on from it, and whoever tidies up needs nothing else.
"""
