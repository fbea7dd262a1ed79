"""Published results, to hold measured ones against."""
