"""The search index of the PostgreSQL store: a table of numbers, filled behind the log.

A message that holds a word has a row in `words`: 8 bytes for each word, a digest of tenant and
word, under a GIN index. So the table says nothing to whoever does not know what to look for, and a
query finds rows of its own tenant alone: the same word of another tenant is another number. One
more number stands for the session.

Chinese, Japanese and Korean are cut into pairs, and a single character is found as the beginning of
one (see `stores.words`); numbers have no beginnings, so the first character of each pair is put in
as well, with a mark that no word can have.
"""

from typing import TYPE_CHECKING, Any

from holdfast.codec import read_record
from holdfast.errors import HoldfastError
from holdfast.messages import Message
from holdfast.stores import views, words
from holdfast.stores.head import Row
from holdfast.stores.postgresql.heads import Known
from holdfast.stores.postgresql.names import digest
from holdfast.stores.searchable import text_of

if TYPE_CHECKING:
    from holdfast.stores.shelf import Shelf

_CJK_FIRST = "\u1100"  # nothing below is written without spaces


def words_of(shelf: "Shelf", known: Known, row: Row) -> list[int]:
    """The numbers under which a message is found; none for what is erased or damaged."""
    if row.payload is None:
        return []
    try:
        entry = read_record(views.payload(shelf, known.head, row))
    except HoldfastError:
        return []  # damage is for `verify` to report
    found = set(words.words(text_of(entry))) if type(entry) is Message else set()
    if not found:
        return []
    found |= {_beginning(word[0]) for word in found if word[0] >= _CJK_FIRST}
    tenant = known.head.tenant
    return sorted({_number(tenant, word) for word in found} | {_session_mark(known.session)})


def query_of(tenant: str, query: str, session: Any = None) -> list[int]:
    """The numbers that a message must have all of; none if the query holds no word."""
    wanted = words.query(query)
    if not wanted:
        return []
    found = {
        _number(tenant, _beginning(word) if is_beginning else word) for word, is_beginning in wanted
    }
    return sorted(found | ({_session_mark(session)} if session is not None else set()))


def _beginning(character: str) -> str:
    return f"_{character}"


def _number(tenant: str, word: str) -> int:
    return int.from_bytes(digest("word", tenant, word)[:8], "big", signed=True)


def _session_mark(session: Any) -> int:
    return int.from_bytes(session.bytes[:8], "big", signed=True)
