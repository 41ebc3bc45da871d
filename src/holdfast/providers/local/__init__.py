"""A small model that runs on this machine: its weights, the process it runs in, and its calls."""
