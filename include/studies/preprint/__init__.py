"""The preprint of PeerJ CS 141: its Table 3, and which reading its counts support."""
