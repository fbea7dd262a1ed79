"""How true the simulator is: runs on an engine beside the same runs simulated."""
