"""The control loop, and the stages that cut a run into windows."""
