"""Henge: intent-driven multi-tenant stream processing (Kalim et al.)."""
