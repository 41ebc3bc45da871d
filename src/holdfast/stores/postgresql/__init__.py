"""Sessions in PostgreSQL: for many machines.

| module       | what it holds                                                            |
|--------------|--------------------------------------------------------------------------|
| `store`      | `PostgreSQLStore`: who reads, who watches, when the index is filled       |
| `lanes`      | the queue: what is asked of one session is done one after the other      |
| `commits`    | who writes: batches in one statement, all else in transactions           |
| `outcomes`   | what became of a write whose connection broke                            |
| `batch`      | the statement of group commit, and what is gathered for it               |
| `shelf`      | one transaction on one connection                                        |
| `heads`      | sessions as rows, and those that need not be read again                  |
| `search`     | the search index                                                         |
| `tables`, `statements`, `formats` | the tables, every statement, versions of the format |
| `server`, `pool`, `holder`, `errors` | the server, and connections to it                |
"""
