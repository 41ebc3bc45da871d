"""Recorded traffic, replayed on an adapter and judged.

    python -m holdfast.testing.replay FOLDER

| module       | what it does                                                                  |
|--------------|-------------------------------------------------------------------------------|
| `recordings` | reads a folder of recordings                                                  |
| `readings`   | reads an answer out of its bytes, simply, apart from what is judged           |
| `refused`    | says which error a refusal should become                                      |
| `history`    | reads a request into holdfast's messages                                      |
| `sequences`  | finds the next request of a conversation                                      |
| `meaning`    | says whether two requests mean the same                                       |
| `adapter`    | what is judged: `read` and `body` of one wire                                 |
| `answers`    | (a) the answer says what the bytes say                                        |
| `follow`     | (b) it is sendable again, (c) and the next request says what the recorded did |
| `cuts`       | a stream that breaks off is never an answer                                   |
| `check`      | judges a folder, and tells it in a table                                      |
| `server`     | answers as recorded, over HTTP, at any chunking, and breaks off where you say |
| `sdks`       | the same bytes through the vendors' own SDKs, where they are installed        |
"""

from holdfast.testing.replay.adapter import Adapter
from holdfast.testing.replay.check import Report, check_folder, table
from holdfast.testing.replay.recordings import Exchange, Recording, read_folder

__all__ = ["Adapter", "Exchange", "Recording", "Report", "check_folder", "read_folder", "table"]
