"""Whether a request says what the log says, to a vendor that has come into it, or back to it.

Requests are read back apart from what makes them (`Vendor.shown`), and calls are paired with their
results in a way of its own. What may be missing is what the pages say: thoughts, proofs and blocks
of another model, and media that the vendor does not take, of which a word remains.
"""

import json
import re
from typing import NamedTuple

from holdfast.messages import Message, Role
from holdfast.notes import BLANK, CONTINUE, NOT_SHOWN, ORPHAN, UNANSWERED
from holdfast.parts import Audio, CallRef, File, Image
from holdfast.testing.replay import meaning

_NAMED = re.compile(re.escape(NOT_SHOWN.format(kind="KIND")).replace("KIND", r"\w+"))
_ADDED = (CONTINUE, BLANK)
_COMPARED = ("text", "call", "result")
# What makes a difference between words, and words in a piece of JSON, and that once more.
_DRESS = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+.?|[\s\"\x00-\x1f]", re.DOTALL)


class Mark(NamedTuple):
    """Words that only their owner, a "vendor:model", may be shown, and has to be.

    `head` is how many system messages there were then: see `is_bound`.
    """

    owner: str
    what: str
    words: str
    head: int = 0


def wrongs(vendor, name, body, log, marks, names, *, is_bound=False):
    """All that is wrong with the request `body` to `vendor`, whose model is `name`.

    `names` has our name for each tool whose name the request has otherwise. With `is_bound` the
    model signs a thought together with what stood before it, the system's words first of all: when
    there are others now, it cannot check the thought, and is not shown it.
    """
    text, head = json.dumps(body, ensure_ascii=False), heads(log)
    if is_bound:
        marks = [_owned_by_none(mark) if _is_behind(mark, head) else mark for mark in marks]
    found = [str(problem) for problem in vendor.problems(body)]
    found += [wrong for mark in marks if (wrong := _misplaced(mark, name, text))]
    for message in log:
        if message.role is Role.SYSTEM:
            found += _missing(vendor, body, [message.text or ""])
    found += _lost_media(vendor, body, log, text)
    if vendor.has_calls and not any(map(_media, log)):
        return found + _differences(vendor, body, paired(log), names)
    return found + _missing(vendor, body, _words(paired(log), _theirs(names)))


def heads(log):
    """How many system messages there are."""
    return sum(message.role is Role.SYSTEM for message in log)


def _is_behind(mark, head):
    return mark.head != head and mark.what != "search"


def _owned_by_none(mark):
    return mark._replace(owner=f"{mark.owner}, under another head")


def _misplaced(mark, name, text):
    is_shown = mark.words in text
    if mark.owner == name and not is_shown:
        return f"{name} is not given back its {mark.what} {mark.words[:40]}"
    if mark.owner != name and is_shown:
        return f"{name} is shown the {mark.what} of {mark.owner}, {mark.words[:40]}"
    return None


# Calls and their results


def paired(log):
    """The log with each result behind its call, every call answered, and no two ids the same."""
    rows, waiting = [], {}
    for message in log:
        if message.tool_call_id is None:
            rows.append(row := _row(message, len(rows)))
            for place, call in enumerate(message.calls):
                waiting[call.id] = row, place + 1
        elif (found := waiting.pop(message.tool_call_id, None)) is not None:
            row, place = found
            row[place] = message.replace(tool_call_id=row[place].tool_call_id)
        else:
            title = ORPHAN.format(name=message.name or "a tool")
            rows.append([Message.user(f"{title}\n{message.text}")])
    return [each for row in rows for each in row]


def _row(message, number):
    """The message under ids of its own, and behind it what is said of each call until it is."""
    ids = {call.id: f"{number}.{place}" for place, call in enumerate(message.calls)}
    calls = [call.replace(id=ids[call.id]) for call in message.calls]
    content = message.content
    if isinstance(content, tuple):
        content = [CallRef(ids.get(p.id, p.id)) if type(p) is CallRef else p for p in content]
    results = [Message.tool(UNANSWERED, call.id, name=call.name) for call in calls]
    return [message.replace(content=content, tool_calls=calls), *results]


# Thing by thing


def _differences(vendor, body, said, names):
    ours, theirs = _things(vendor.shown(body), names), _things(said, {})
    for our, their in zip(ours, theirs, strict=False):
        if our != their:
            return [f"{vendor.name}: the request says {our!s:.300}, the log {their!s:.300}"]
    if len(ours) != len(theirs):
        more = (ours[len(theirs) :] or theirs[len(ours) :])[0]
        return [f"{vendor.name}: {len(ours)} things are said, not {len(theirs)}: {more!s:.300}"]
    return []


def _things(messages, names):
    """(who, what it is, what it says) of all that is said; words next to each other are one."""
    things = []
    for item in meaning.items(messages):
        value = item.value
        if item.kind == "call":
            value = (item.number, names.get(value[0], value[0]), _arguments(value[1]))
        elif item.kind == "result":
            value = (item.number, _result(value[0]))
        elif item.kind == "text":
            value = "".join("".join(p.split()) for p in value if p.strip() not in _ADDED)
            if things and things[-1][:2] == (item.role, "text"):
                value = things.pop()[2] + value
        if item.kind in _COMPARED and value != "":
            things.append((item.role, item.kind, value))
    return things


def _result(value):
    """What failed is told in a field of its own, or in a word where nothing was said of it."""
    if isinstance(value, dict) and set(value) == {"error"}:
        value = "".join(str(value["error"]).split())
    return "" if value in ("Error", {}) else value


def _arguments(value):
    """What is no object stands in one, where the vendor wants that."""
    if isinstance(value, dict) and set(value) in ({"arguments"}, {"input"}):
        (value,) = value.values()
    try:
        return json.loads(value or "{}") if isinstance(value, str) else value
    except ValueError:
        return value


# Word by word


def _theirs(names):
    return {ours: theirs for theirs, ours in names.items()}


def _words(said, names):
    """All that is said, in order: words, and of a call the tool and what it is given."""
    for message in said:
        for item in meaning.items([message]):
            if item.kind == "text":
                yield from item.value
            elif item.kind == "call":
                yield names.get(item.value[0], item.value[0])
                yield from _leaves(item.value[1])
        if message.tool_call_id is not None:
            yield message.text or ""


def _leaves(value):
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value


def _bare(text):
    """The text without its dress, so that it is the same however often it was put into JSON."""
    plain = _DRESS.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", text)
    plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _DRESS.sub("", plain)


def _missing(vendor, body, words):
    """The first words that do not stand in the request, in their place."""
    text, at = _bare(json.dumps(body, ensure_ascii=False)), 0
    for piece in words:
        bare = _bare(piece)
        place = text.find(bare, at)
        if place < 0:
            return [f"{vendor.name}: the request does not say {piece[:200]!r} in its place"]
        at = place + len(bare)
    return []


# Media


def _media(message):
    content = message.content if isinstance(message.content, tuple) else ()
    return [part for part in content if isinstance(part, Image | Audio | File)]


def _lost_media(vendor, body, log, text):
    """Each is there, or a word in its place; a document that is words may be there as words."""
    media = [part for message in log for part in _media(message)]
    wanted = sum("text" not in (part.media_type or "") for part in media)
    there = sum(item.kind == "media" for item in meaning.items(vendor.shown(body)))
    there += len(_NAMED.findall(text))
    return [f"{vendor.name}: of {wanted} media {there} are there"] if there < wanted else []
