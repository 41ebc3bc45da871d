"""Sessions in one SQLite file: the default store.

| module     | what it holds                                                          |
|------------|------------------------------------------------------------------------|
| `store`    | `SQLiteStore`: who reads, and when the index is filled                 |
| `commits`  | who writes: batches of requests, each in one transaction               |
| `backup`   | a copy of the whole file                                               |
| `shelf`    | one transaction on one connection                                      |
| `tables`   | the tables, and every statement that is run on them, as written        |
| `statements`, `many` | the same as text; statements for many rows                   |
| `formats`  | the versions of the format, and how a file gets from one to the next   |
| `search`   | the search index                                                       |
| `wiping`   | leaving no byte of what was removed                                    |
| `pool`     | the connections that read                                              |
| `file`     | the file: making it, checking it, its lock, its WAL, forking           |
| `settings`, `header`, `wal`, `errors` | what `file` knows of SQLite                 |
"""
