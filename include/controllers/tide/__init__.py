"""Our own controller: places by what they save, leases by what they cost (docs/tide.md)."""
