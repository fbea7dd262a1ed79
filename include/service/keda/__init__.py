"""What a controller wants, as a metric that KEDA scales by on Kubernetes."""
