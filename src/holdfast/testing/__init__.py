"""Tools for testing what is built on holdfast, and holdfast itself.

| module    | what it gives you                                                                |
|-----------|----------------------------------------------------------------------------------|
| `journal` | writes down what the clients of a run did                                    |
| `checker` | judges such a run: lost, doubled, reordered, stale, mixed up                     |
"""
