"""The input of a request to OpenAI's Responses API: the items of all messages, put together.

Most messages were made into items before, so this only joins their JSON. Three things can be seen
only in the whole list, and are put right here:

- An id that stands twice ("Duplicate item found with id rs_1"): as when a message is in the
  history two times. The second goes without.
- The output of a call for a tool that takes free text has a type of its own.
- A call that a program has to answer and that is no function's (`shell_call`, `computer_call`, ...)
  is kept with its output, which the program put into a user's message as an Opaque part. One
  without the other is left out, because the service would refuse the whole request.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.notes import CONTINUE
from holdfast.providers.fields import Object

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode
_FUNCTION_OUTPUT = b'{"type":"function_call_output"'
_CUSTOM_OUTPUT = b'{"type":"custom_tool_call_output"'

# A call, and the item that answers it.
CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
ANSWERS = {answer: call for call, answer in CALLS.items()}
# Items without a form of ours that the service takes back as they came.
TAKEN = {
    *("file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response"),
    *("tool_search_call", "tool_search_output", "additional_tools", "program", "program_output"),
    *("compaction", *CALLS, *ANSWERS),
} - {"function_call", "function_call_output"}
_NAMED = ("function_call", "custom_tool_call", "reasoning")  # these do without their id


class Fragment(NamedTuple):
    """What one message becomes.

    items        JSON of its items, with commas between them
    is_special   anything of the following has to be looked at
    ids          of the items
    customs      ids of calls for tools that take free text
    answers      the id of the call to which this is the output
    is_loose     holds an id twice, or a call or an output that may lack the other
    """

    items: bytes
    is_special: bool = False
    ids: tuple[str, ...] = ()
    customs: tuple[str, ...] = ()
    answers: str | None = None
    is_loose: bool = False


def joined(
    fragments: Sequence[Fragment], tidy: Callable[[list[Object]], list[Object]], *, ends_turn: bool
) -> msgspec.Raw:
    """The whole input. `tidy` is for items of which others were left out.

    `ends_turn`: the assistant's words between a call and its output separate them for good.
    """
    pieces = [fragment[0] for fragment in fragments if fragment[0]]
    if any(fragment[1] for fragment in fragments):
        pieces, is_loose = _looked_at(fragments)
        if is_loose:
            items = tidy(_paired(_apart(_decode(_array(pieces))), ends_turn))
            pieces = [_encode(items)[1:-1]] if items else []
    if not pieces:
        pieces = [_encode({"role": "user", "content": CONTINUE})]
    return msgspec.Raw(_array(pieces))


def _array(pieces: list[bytes]) -> bytes:
    return b"[" + b",".join(pieces) + b"]"


def _looked_at(fragments: Sequence[Fragment]) -> tuple[list[bytes], bool]:
    """The pieces, with outputs of the right type; and whether they have to be looked at closely."""
    pieces: list[bytes] = []
    ids: set[str] = set()
    customs: set[str] = set()
    is_loose = False
    for items, is_special, own_ids, own_customs, answers, is_loose_too in fragments:
        if is_special:
            is_loose = is_loose or is_loose_too or not ids.isdisjoint(own_ids)
            ids.update(own_ids)
            customs.update(own_customs)
        elif answers is not None and answers in customs:
            pieces.append(_CUSTOM_OUTPUT + items[len(_FUNCTION_OUTPUT) :])
            continue
        if items:
            pieces.append(items)
    return pieces, is_loose


def _apart(items: list[Object]) -> list[Object]:
    """The items with each id only once."""
    seen: set[str] = set()
    kept: list[Object] = []
    for item in items:
        id = item.get("id")
        if id is not None and id in seen:
            if "role" not in item and item["type"] not in _NAMED:
                continue  # the very same item, of a server's tool
            del item["id"]
            item.pop("status", None)
        elif id is not None:
            seen.add(id)
        kept.append(item)
    return kept


def _paired(items: list[Object], ends_turn: bool) -> list[Object]:
    """The items without calls that lack their output, and outputs that lack their call."""
    calls: dict[str, Object] = {}
    kept: list[Object] = []
    answered: set[str] = set()
    cut_off: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        id = _call_id(item)
        if kind in CALLS:
            if id in calls:
                continue
            calls[id] = item
        elif kind in ANSWERS:
            is_open = id in calls and id not in answered and id not in cut_off
            if not is_open or calls[id]["type"] != ANSWERS[kind]:
                continue
            answered.add(id)
        elif kind == "message" and (ends_turn or item["role"] != "assistant"):
            cut_off.update(calls.keys() - answered)
        kept.append(item)
    return [item for item in kept if item.get("type") not in CALLS or _call_id(item) in answered]


def _call_id(item: Object) -> str:
    """Which call this is or answers; the output of a local shell calls it its own id."""
    return item.get("call_id") or item.get("id") or ""
