"""Models, reached over the wire APIs of their vendors: one module a wire API."""
