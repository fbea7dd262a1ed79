"""What somebody's own recording says: a model of the job, and which policy would have done best."""
