"""PVLDB 12(7) (Borkowski et al.): thresholds behind Kalman filters."""
