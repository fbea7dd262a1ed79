"""The figures of the page, one file each: rows in, the text of an inline SVG out."""
