"""Staged tables to what people read: files, figures, the page, the results database."""
