"""A wire of our own, as small as one can be, for tests of what is around wires.

A stream is events {"think"|"text": words}, {"call": {"id", "name", "arguments"}}, {"usage":
counts}, {"error": object}, {"end": why}; a document is one object with all of them.
"""

import re
from typing import ClassVar

from holdfast.providers.address import Address
from holdfast.providers.failures import failure
from holdfast.providers.fields import decode_object, object_of, text_of
from holdfast.providers.http_provider import HttpProvider
from holdfast.providers.names import Spelling
from holdfast.providers.prepare import Rules
from holdfast.providers.wire import Reader, Wire

SPELLING = Spelling(re.compile(r"[^\w-]"), 64)


class SimpleReader(Reader):
    def feed(self, name, data):
        if data == b"[DONE]":
            self.is_complete = True
            return
        self.read(decode_object(data))

    def read(self, body):
        if body.get("error"):
            raise failure("simple", None, {}, body["error"], in_stream=True)
        if words := text_of(body, "think"):
            self.answer.add_thinking(words)
        if words := text_of(body, "text"):
            self.answer.add_text(words)
        if call := object_of(body, "call"):
            self.answer.begin_call(call["id"], id=call["id"], name=call["name"])
            self.answer.end_call(call["id"], arguments=call.get("arguments", "{}"))
        if usage := object_of(body, "usage"):
            self.answer.used(**usage)
        if why := text_of(body, "end"):
            self.answer.stopped(why)
            self.is_complete = True


class SimpleWire(Wire):
    vendor: ClassVar = "simple"
    api: ClassVar = "simple"
    rules = Rules(vendor="simple", tool_name=SPELLING, call_id=SPELLING)
    made = 0

    def fragment(self, message):
        return {"role": str(message.role), "text": message.text}

    def to_wire(self, ask):
        self.made += 1
        return {"messages": list(ask.prepared.fragments), "stream": ask.stream}

    def path(self, ask):
        return "/v1/answer"

    def reader(self, answer):
        return SimpleReader(answer)


class SimpleProvider(HttpProvider):
    vendor = "simple"
    key_variables = ("SIMPLE_API_KEY",)


def simple(url, model="small", framing="events", **options):
    wire = SimpleWire(model)
    wire.framing = framing
    return SimpleProvider(wire, Address(url), **options)
