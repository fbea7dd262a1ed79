"""The nouns of the field: frozen, unit in the name; standard library and msgspec only."""
