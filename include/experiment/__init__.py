"""An experiment: its spec, the runs it unfolds into, and everything that can be wrong with it."""
