"""Filters that a scaling rule can stand behind. To add one: write the file, add the line."""
