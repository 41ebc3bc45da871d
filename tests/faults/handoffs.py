"""A conversation that moves from one vendor to another, again and again.

    journey = Journey(Random(seed), VENDORS, tools)
    await journey.travel(messages)
    assert journey.wrongs == []

Each of the assistant's messages is said by the vendor whose turn it is, in the vendor's real wire
form: with thoughts and proofs, blocks of its own and ids of its own. Its reader makes the message
that goes into the log. Every request that is looked at is judged (`handoff_judge.py`), and begins
with all of the one before to the same vendor, to the letter.
"""

import base64
import json
from collections import defaultdict
from dataclasses import replace
from itertools import count

import msgspec

from faults import handoff_judge as judge
from faults.handoff_judge import Mark
from holdfast import Message, Role, Settings, Tool, ToolCall, codec
from holdfast.errors import ProtocolError, ProviderError
from holdfast.notes import CONTINUE
from holdfast.parts import Text, Thinking
from holdfast.providers.claude_cli.sessions import Sessions
from holdfast.providers.replies import read_reply
from holdfast.testing.replay.history import conversation
from holdfast.testing.replay.ours import Ours, RecordedReply, wire_for
from holdfast.window.render import render
from recorded_turns import recordings
from vendor_wires import PROGRAM, SECOND_WIRES, VENDORS

SCHEMA = {"type": "object", "properties": {}}
WHERE = "http://127.0.0.1:9"  # where nobody is asked anything
THINKS = Settings(thinking=1024)
_WIRES = {}
_NAMED = {vendor.name: vendor for vendor in VENDORS}
PARTIES = (
    *VENDORS,
    *SECOND_WIRES,
    PROGRAM,
    # Models that differ from the others of their vendor in what they take back.
    replace(_NAMED["anthropic"], name="anthropic, bound", model="claude-opus-5-1"),
    replace(_NAMED["google"], name="google, unsigned", model="gemini-2.5-pro"),
)


def wire_of(vendor):
    """The wire of the vendor's provider."""
    if vendor.name not in _WIRES:
        _WIRES[vendor.name] = vendor.opened(vendor.model, WHERE, {**vendor.options}).wire
    return _WIRES[vendor.name]


def tools_for(messages):
    """A declaration for each tool that is called."""
    names = dict.fromkeys(call.name for message in messages for call in message.calls)
    return tuple(Tool(name, "", SCHEMA) for name in names)


class Journey:
    """One conversation on its way. `wrongs` is what was found, with the step it was found at."""

    def __init__(self, random, vendors, tools=(), log=(), marks=()):
        self.random = random
        self.vendors = list(vendors)
        self.tools = tuple(tools)
        self.log = list(log)
        self.marks = list(marks)
        self.wrongs = []
        self.requests = 0
        self._numbers = count(random.randrange(1000))
        self._ids = {}
        self._rows = defaultdict(list)
        self._shown = None
        self.program = Program()

    # The way

    async def travel(self, messages):
        """Say these messages, from vendor to vendor; in the end each of them goes on with it."""
        legs = self._legs(sum(message.role is Role.ASSISTANT for message in messages))
        answers = iter(zip([None, *legs], legs, [*legs[1:], None], strict=False))
        for message in messages:
            if message.role is Role.ASSISTANT:
                await self._say(message, *next(answers))
            else:
                id = self._ids.get(message.tool_call_id, message.tool_call_id)
                self.log.append(message.replace(tool_call_id=id))
        self.log.append(Message.user("And now?"))
        for vendor in self._shuffled():
            self.look(vendor)

    async def leave_and_come_back(self, own, wire, stops):
        """Go on where it was recorded, then at so many others, then where it was recorded."""
        self.log.append(Message.user("Go on."))
        self.look(own, wire)
        for vendor in self._shuffled()[:stops]:
            self.look(vendor)
            tool = self.random.choice((None, *self.tools))
            calls = [] if tool is None else [ToolCall(id="", name=tool.name, arguments="{}")]
            said = await self.answer(vendor, "So it is.", calls)
            self.log += [Message.tool("Done.", call.id, name=call.name) for call in said.calls]
            self.log.append(Message.user("And then?"))
        self.look(own, wire)

    def _shuffled(self):
        return self.random.sample(self.vendors, len(self.vendors))

    def _legs(self, answers):
        """Who gives each answer: the vendors in any order, each for a while, and some again.

        None gives the first few of some conversations: they come from elsewhere.
        """
        order = [None] * (self.random.random() < 0.3) + self._shuffled() + self._shuffled()[:2]
        order = order[:answers]
        cuts = sorted(self.random.sample(range(1, answers), max(0, len(order) - 1)))
        edges = [0, *cuts, answers]
        return [who for at, who in enumerate(order) for _ in range(edges[at], edges[at + 1])]

    async def _say(self, message, before, vendor, after):
        """The message as this vendor says it; it is judged where it comes and where it leaves."""
        if vendor is None or not (message.calls or (message.text or "").strip()):
            self.log.append(message)
            self._ids |= {call.id: call.id for call in message.calls}
            return
        if vendor is not before or vendor is not after:
            self.look(vendor)
        said = await self.answer(vendor, message.text or "", message.calls)
        pairs = zip(message.calls, said.calls, strict=True)
        self._ids |= {old.id: new.id for old, new in pairs}

    # A request

    def look(self, vendor, wire=None):
        """Judge the request that this vendor would be sent now."""
        wire = wire or wire_of(vendor)
        ask = self._ask(wire, settings=self.random.choice((None, THINKS)))
        body = json.loads(msgspec.json.encode(wire.to_wire(ask)))
        is_bound = wire.rules.binds_prefix
        found = []
        for each in (body, self.program.shown(wire, ask)):
            if each is not None:
                marks, names = self._marks_for(wire), ask.prepared.names
                about = (vendor, wire.name, each, self.log, marks, names)
                found += judge.wrongs(*about, is_bound=is_bound)
        rows = _rows(vendor, body)
        key = (vendor.name, wire.name, judge.heads(self.log) if is_bound else 0)
        before = self._rows[key]
        if rows[: len(before)] != before:
            at = next(i for i, row in enumerate(before) if rows[i : i + 1] != [row])
            found.append(f"{wire.name} was sent otherwise: {before[at]:.200}")
        if ask.prepared.messages[-1].content != CONTINUE:
            self._rows[key] = rows
        self.requests += 1
        self.wrongs += [f"message {len(self.log)}: {each}" for each in found]
        return body

    def _ask(self, wire, **more):
        self._shown = render(self.log, last=self._shown).messages
        return wire.ask(self._shown, None, self.tools, **more)

    def _marks_for(self, wire):
        if wire.rules.keeps_thinking:
            return self.marks
        return [mark for mark in self.marks if mark.owner != wire.name]

    # An answer

    async def answer(self, vendor, text, calls=()):
        """The message of a vendor that says this, and calls these, in the log."""
        number = next(self._numbers)
        wire = wire_of(vendor)
        ask = self._ask(wire, stream=True)
        names = {ours: theirs for theirs, ours in ask.prepared.names.items()}
        secrets = _secrets(vendor, number, self.random)
        said = None
        for call in calls or (None,):
            more = {"number": number}
            if call is not None:
                more |= {"call": names.get(call.name, call.name), "arguments": call.arguments}
            if said is None:
                more |= {"text": text, **secrets}
            one = await self._read(vendor, wire, ask, more)
            said = one if said is None else _together(said, one)
            number = next(self._numbers)
        kept = codec.record(said).decode()
        head = judge.heads(self.log)
        self.marks += [
            Mark(wire.name, *secret, head) for secret in secrets.items() if secret[1] in kept
        ]
        self.log.append(said)
        self.program.has_said(wire, ask, said)
        return said

    async def _read(self, vendor, wire, ask, more):
        """What the vendor's reader makes of an answer that says this."""
        try:
            return await _heard(vendor.says(**more), wire, ask)
        except (ValueError, ProtocolError):  # it cannot say arguments that are no object
            more["arguments"] = json.dumps({"arguments": more["arguments"]})
            return await _heard(vendor.says(**more), wire, ask)


class Program:
    """What the sessions of a program have seen: it is told the news alone where one has seen the
    rest."""

    def __init__(self):
        self.resumed = 0
        self._sessions = Sessions()
        self._seen = None

    def shown(self, wire, ask):
        """What its model would be shown in a session that it goes on with, if there is one."""
        told = self._told(wire, ask)
        if told is None:
            return None
        self.resumed += 1
        return {"system": wire.system(ask), "message": {"role": "user", "content": told}}

    def has_said(self, wire, ask, said):
        """Its answer to what it was told: both are in the session from now on."""
        if wire.api != PROGRAM.api:
            return
        fragments = ask.prepared.fragments
        told = self._told(wire, ask) or _content(wire, fragments)
        reply = wire.fragment(said)
        words = [{"type": "text", "text": part} for part in reply.parts if part]
        self._seen = [*told, *words]
        self._sessions.keep("it", "the session", [*fragments, reply])

    def _told(self, wire, ask):
        if wire.api != PROGRAM.api:
            return None
        fragments = ask.prepared.fragments
        seen = self._sessions.take("it", fragments)
        if seen is None:
            return None
        self._sessions.keep("it", seen.id, fragments[: seen.messages])
        return [*self._seen, *_content(wire, fragments[seen.messages :])]


def _content(wire, fragments):
    return json.loads(msgspec.json.encode(wire.message(fragments)))["content"]


def _rows(vendor, body):
    """The conversation in a request, to the letter. The system's words may move into its head."""
    rows = vendor.blocks({vendor.at: body.get("request", body)[vendor.at]})
    return [row for row in rows if not row.startswith('{"role": "system"')]


async def _heard(reply, wire, ask):
    answer = wire.answer(ask)
    reader = wire.reader(answer)
    status = None if wire.api == PROGRAM.api else reply.status
    recorded = RecordedReply(status, reply.headers, reply.data)
    await read_reply(recorded, reader, wire.framing, wire.vendor)
    return answer.response().message


def _secrets(vendor, number, random):
    """What only this vendor may see again: perhaps a thought, a proof, a search."""
    owner = f"{vendor.name} {number:06}"
    secrets = {"proof": base64.b64encode(f"signed by {owner}".encode()).decode()}
    if random.random() < 0.6:
        secrets["thought"] = f"a thought of {owner}"
    if random.random() < 0.3:
        secrets["search"] = f"a search of {owner}"
    return secrets


def _together(one, other):
    """An answer with more calls than one: in pieces, as a vendor can be made to say them."""
    content = (*_parts(one), *_parts(other))
    return one.replace(content=content or None, tool_calls=(*one.calls, *other.calls))


def _parts(message):
    content = message.content
    return (Text(content),) if isinstance(content, str) else content or ()


# Where a recording leaves off


def recorded_exchanges():
    """What was recorded of the vendors here."""
    apis = {vendor.api for vendor in PARTIES}
    all = (each for recording in recordings() for each in recording.exchanges)
    return [each for each in all if each.why_not is None and each.wire in apis]


def own_vendor(exchange):
    """Whoever was asked in a recording, with the rules that it goes by."""
    alike = next(vendor for vendor in PARTIES if vendor.api == exchange.wire)
    return replace(alike, model=exchange.model, is_lenient=exchange.is_lenient)


def journey_from(exchange, random, vendors):
    """The journey that begins with a recorded answer; None where there is none to go on with."""
    before, wire = conversation(exchange), wire_for(exchange)
    if before is None:
        return None
    try:
        answer = Ours(lambda *_: wire).read(exchange).message
    except ProviderError:
        return None
    said = [*before.messages, answer]
    tools = {tool.name: tool for tool in (*tools_for(said), *before.tools)}
    log = [Message.system(before.system)] if before.system else []
    log += [*said, *(Message.tool("done", call.id, name=call.name) for call in answer.calls)]
    marks = [Mark(wire.name, *each, judge.heads(log)) for each in sealed(said)]
    return Journey(random, vendors, tools.values(), log, marks)


def sealed(messages):
    """(what, words) of all that was signed, and that nobody else can check."""
    for message in messages:
        for part in message.content if isinstance(message.content, tuple) else ():
            if isinstance(part, Thinking) and part.signature:
                yield "signature of a thought", part.signature
            elif isinstance(part, Text) and isinstance(part.extra.get("signature"), str):
                yield "signature of words", part.extra["signature"]
        for call in message.calls:
            if call.signature:
                yield "signature of a call", call.signature
