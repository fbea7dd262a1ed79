"""Upstream's own tests, as rows that our rules are held against: two files per autoscaler."""
