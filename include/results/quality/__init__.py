"""What must be true of the staged tables before anything is published."""
