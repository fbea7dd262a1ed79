"""The BTU-based controller and its threshold baseline: PeerJ CS 141, and its preprint."""
