"""FUGU (Heinze et al.): local and global thresholds, and reinforcement learning."""
