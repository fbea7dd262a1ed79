"""PeerJ CS 141 and its preprint: BTU-based provisioning against thresholds."""
