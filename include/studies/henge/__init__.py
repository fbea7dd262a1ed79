"""Henge (Kalim et al.): intents of many tenants on one cluster."""
