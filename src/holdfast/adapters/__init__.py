"""Faces of other session layers over the same sessions: their names and habits, our log."""
