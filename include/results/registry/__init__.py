"""Rows of published experiments as files that people exchange, keep and lay side by side."""
