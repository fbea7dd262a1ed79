"""Simulator against reality: a run on the live testbed beside its simulations."""
