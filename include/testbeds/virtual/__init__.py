"""What testbeds on virtual time share: hosts and instances that exist in memory only.

``simulated`` follows every item through its queues, ``flow`` moves amounts; either has its own
kernel and everything around it from here.
"""
