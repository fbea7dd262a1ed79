"""Loads of "Evaluating Stream Processing Autoscalers" (Siachamis et al., DEBS 2024)."""
