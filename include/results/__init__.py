"""From measured rows to published pages: tables, gates, bounds, reports."""
