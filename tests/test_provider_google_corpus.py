"""Google's recorded answers through the reader, and back into the next request.

The corpus is data of others and not part of the project: HOLDFAST_CORPUS names its folder, and
without it these tests are skipped. `code-assist` has the same documents inside an envelope.
"""

import base64
import itertools
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from holdfast.messages import Message, Stop
from holdfast.providers.google import GoogleWire
from holdfast.providers.google_parts import UNSIGNED
from holdfast.providers.stream import ArrayStream, EventStream
from holdfast.testing import validators

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
FOLDERS = [CORPUS / "traffic" / name for name in ("google", "code-assist")]

# Google's word for a call that nobody signed, as a client with bytes for it writes it.
SKIPPED = base64.b64encode(UNSIGNED.encode()).decode()

pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS),
    reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)",
)


class Recording(NamedTuple):
    """One recorded answer: its documents, in the order in which they came."""

    file: str
    number: int
    model: str
    is_vertex: bool
    is_stream: bool
    documents: list
    request: dict

    @property
    def wire(self):
        return GoogleWire(self.model, project="p" if self.is_vertex else None)

    def reader(self):
        wire = self.wire
        return wire.reader(wire.answer(wire.ask([Message.user("hi")])))

    def response(self):
        reader = self.reader()
        if not self.is_stream:
            reader.read(self.documents[0])
        else:
            for each in self.documents:
                reader.feed("message", json.dumps(each).encode())
        assert reader.is_complete
        return reader.answer.response()

    @property
    def parts(self):
        """Of the first candidate, as they came."""
        firsts = [document["candidates"][0] for document in self.documents]
        return [part for each in firsts for part in (each.get("content") or {}).get("parts") or []]


def documents_of(response):
    """The documents as the framing gives them, without their envelope."""
    if response.get("sse") is not None:
        stream = EventStream()
        found = [event.data for event in stream.feed(response["sse"].encode() + b"\n\n")]
    elif isinstance(response["body"], list):
        found = ArrayStream().feed(json.dumps(response["body"]).encode())
    else:
        found = [json.dumps(response["body"]).encode()]
    documents = [json.loads(data) for data in found]
    return [document.get("response", document) for document in documents]


def recordings():
    found = []
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.json")):
            for number, raw in enumerate(json.loads(path.read_text(encoding="utf-8"))["exchanges"]):
                request, response = raw["request"], raw["response"]
                is_other = raw["api"].startswith(("count", "chat"))
                if response["status"] >= 400 or is_other:
                    continue
                body = request["body"] or {}
                in_path = re.search(r"models/([^:]+):", request["path"])
                model = in_path[1] if in_path else body.get("model") or "gemini-2.5-pro"
                is_stream = not isinstance(response.get("body"), dict)
                found.append(
                    Recording(
                        *(path.name, number, model, "vertex" in raw["api"], is_stream),
                        *(documents_of(response), body.get("request", body)),
                    )
                )
    return found


@pytest.fixture(scope="module")
def recorded():
    return recordings()


def test_every_answer_is_read(recorded, subtests):
    """Text, thinking, calls and the reason are what stands in the raw documents."""
    for each in recorded:
        with subtests.test(file=each.file, number=each.number):
            response, parts = each.response(), each.parts
            texts = [part for part in parts if "text" in part]

            assert (response.text or "") == "".join(
                part["text"] for part in texts if not part.get("thought")
            )
            assert (response.thinking or "") == "".join(
                part["text"] for part in texts if part.get("thought")
            )
            called = [p["functionCall"] for p in parts if (p.get("functionCall") or {}).get("name")]
            assert [call.name for call in response.calls] == [call["name"] for call in called]
            if not any("willContinue" in call for call in called):
                arguments = [json.loads(call.arguments) for call in response.calls]
                assert arguments == [call.get("args", {}) for call in called]
            assert response.id == each.documents[0].get("responseId")
            reason = each.documents[-1]["candidates"][0]["finishReason"]
            if reason in ("STOP", 1):
                assert response.stop == (Stop.TOOL_USE if response.calls else Stop.STOP)
            else:
                assert response.stop in (Stop.MAX_TOKENS, Stop.SAFETY, Stop.ERROR)

    assert len(recorded) > 200


def test_every_count_of_tokens_adds_up(recorded, subtests):
    """Google's own total is what goes in and what comes out, where the last document has all."""
    counted = 0
    for each in recorded:
        usages = [document.get("usageMetadata") or {} for document in each.documents]
        usage = usages[-1]
        if "totalTokenCount" not in usage or any(u.keys() - usage.keys() for u in usages):
            continue
        counted += 1
        with subtests.test(file=each.file, number=each.number):
            found = each.response().usage
            assert found.total == usage["totalTokenCount"]
            assert found.cache_read == usage.get("cachedContentTokenCount")
            assert (found.reasoning or 0) == usage.get("thoughtsTokenCount", 0)

    assert counted > 150


def test_nothing_that_google_said_is_lost(recorded, subtests):
    """Every field of the first candidate and beside it is in the response."""
    known = {"candidates", "usageMetadata", "modelVersion", "responseId"}
    for each in recorded:
        with subtests.test(file=each.file, number=each.number):
            response = each.response()
            for document in each.documents:
                facts = {**document, **document["candidates"][0]}
                for name in facts.keys() - known - {"content", "index"}:
                    assert name in response.extra or not facts[name]


def test_an_answer_goes_back_as_it_came(recorded, subtests):
    """Part for part if it came whole; of a stream, the signatures in their order."""
    for each in recorded:
        with subtests.test(file=each.file, number=each.number):
            response = each.response()
            results = [Message.tool("ok", call.id) for call in response.calls]
            history = [Message.user("hi"), response.message, *results, Message.user("and?")]
            wire = each.wire

            body = json.loads(msgspec.json.encode(wire.to_wire(wire.ask(history))))

            assert validators.problems("google", body, model=each.model) == []
            said = [c["parts"] for c in body["contents"] if c["role"] == "model"]
            if each.is_stream:
                assert signatures(said) == signatures([each.parts])
            else:
                came = [whole(part) for part in each.parts if part != {"text": ""}]
                assert [part for parts in said for part in parts] == came


def signatures(contents):
    found = [part.get("thoughtSignature") for parts in contents for part in parts]
    return [each for each in found if each and each != UNSIGNED]


def whole(part):
    if "functionCall" in part:
        part = {**part, "functionCall": {"args": {}, **part["functionCall"]}}
    return part


def test_a_stream_that_breaks_off_is_never_complete(recorded, subtests):
    cut = 0
    for each in recorded:
        if not each.is_stream:
            continue
        with subtests.test(file=each.file, number=each.number):
            reader = each.reader()
            for document in each.documents[:-1]:
                reader.feed("message", json.dumps(document).encode())
                cut += 1
                assert not reader.is_complete
                assert reader.answer.partial() is not None

    assert cut > 100


def test_the_next_request_says_of_the_answer_what_was_recorded(recorded, subtests):
    """Calls, arguments and signatures; clients leave out thoughts, and make up ids."""
    compared = 0
    for each, after in itertools.pairwise(recorded):
        before, contents = (r.request.get("contents") or [] for r in (each, after))
        if each.file != after.file or contents[: len(before)] != before:
            continue
        if len(contents) <= len(before) or contents[len(before)].get("role") != "model":
            continue
        with subtests.test(file=each.file, number=each.number):
            response = each.response()
            results = [Message.tool("ok", call.id) for call in response.calls]
            wire = each.wire
            ask = wire.ask([Message.user("hi"), response.message, *results])
            ours = json.loads(msgspec.json.encode(wire.to_wire(ask)))["contents"][1]
            compared += 1
            theirs = calls_in(contents[len(before)])
            assert [call[:2] for call in calls_in(ours)] == [call[:2] for call in theirs]
            signed = {s for *_, s in theirs} - {"", SKIPPED}
            assert signed <= {s for *_, s in calls_in(ours)}

    assert compared > 15


def calls_in(content):
    """Name, arguments and signature of the calls, in either spelling and alphabet."""
    found = []
    for part in content["parts"]:
        said = part.get("functionCall") or part.get("function_call")
        if said:
            signature = part.get("thoughtSignature") or part.get("thought_signature") or ""
            plain = signature.replace("-", "+").replace("_", "/")
            found.append((said["name"], said.get("args") or {}, plain))
    return found
