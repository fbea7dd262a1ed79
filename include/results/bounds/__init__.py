"""What a run must cost at least: the cheapest leases of somebody who knows every arrival."""
