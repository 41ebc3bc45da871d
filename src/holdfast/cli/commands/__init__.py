"""The commands, one in each file; the underscore keeps `import` from being a word of Python."""
