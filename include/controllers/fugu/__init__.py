"""What the three FUGU controllers share (Heinze et al., "Auto-scaling Techniques for Elastic Data
Stream Processing", 2014): they move running instances between hosts, lease and release hosts,
and start or stop nothing but the replacement of an operator that was lost.
"""
