"""Stores: where records and entries are kept. What they share comes first:

| module  | what it holds                                                    |
|---------|------------------------------------------------------------------|
| `chain` | the links that make a flipped bit in a log show                  |
| `words` | the words of a text, as search finds them again                  |
"""
