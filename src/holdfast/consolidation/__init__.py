"""Consolidation: what older messages came to, kept in MEMORY.md and HISTORY.md."""
