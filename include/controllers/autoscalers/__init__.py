"""Autoscalers that people use today, each a rule from signals to numbers (docs/autoscalers.md)."""
