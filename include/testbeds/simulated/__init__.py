"""The embedded testbed: an exact, seeded, per-item simulation of operators on leased hosts."""
