"""Measured rows and where they are stored."""
