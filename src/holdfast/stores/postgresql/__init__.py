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
| `tables`, `queries` | the tables and every statement, as written                         |
| `statements` | the same as text                                                         |
| `formats`, `names` | versions of the format; what things are called in the database     |
| `server`, `pool`, `holder`, `errors` | the server, and connections to it                |
"""
