"""Lower bounds of cost: the cheapest leases with every arrival known in advance."""
