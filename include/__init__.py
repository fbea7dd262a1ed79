"""Tidebench: experiments on elastic stream processing, from a spec to published tables."""
