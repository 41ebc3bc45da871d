"""The judge judged: the right adapter passes, and every kind of fault that is planted is found."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import replay_fakes
import replay_recordings as ours
from holdfast.errors import InvalidRequest, Overloaded, ProtocolError, RateLimited
from holdfast.frozen import thaw
from holdfast.parts import Opaque, Text, Thinking
from holdfast.testing.replay import check_folder, cuts, readings, table
from holdfast.testing.replay.__main__ import main
from holdfast.testing.replay.check import Report, check_recording
from holdfast.testing.replay.ours import adapters as our_adapters
from holdfast.testing.replay.recordings import Unreadable, read_file
from holdfast.testing.replay.recordings import recording as read_recording

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
needs_traffic = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)"
)
KEYS = [*ours.ALL, *(f"{name} stream" for name in ours.STREAMS)]


def recording_of(key):
    name, _, stream = key.partition(" ")
    return ours.STREAMS[name]() if stream else ours.ALL[name]()


def wrong_of(recording, kind, **options):
    found = {}
    for verdict in check_recording(recording, replay_fakes.adapters(kind), **options):
        found |= verdict.wrong
    return found


@pytest.mark.parametrize("key", KEYS)
def test_the_right_adapter_passes(key):
    verdicts = list(check_recording(recording_of(key), replay_fakes.adapters()))

    assert [verdict.wrong for verdict in verdicts] == [{}, {}]
    assert [verdict.made for verdict in verdicts] == [("a", "b", "c"), ("a", "b")]
    assert [verdict.explained for verdict in verdicts] == [(), ()]


def test_a_recording_that_the_judge_cannot_read_is_told_and_the_others_are_judged(monkeypatch):
    def read(exchange):
        raise AttributeError("no such thing")

    recording = recording_of(KEYS[0])
    monkeypatch.setattr(readings, "read", read)

    verdicts = list(check_recording(recording, replay_fakes.adapters()))

    assert [verdict.made for verdict in verdicts] == [("a",), ("a",)]
    assert all("the judge cannot read it" in verdict.wrong["a"] for verdict in verdicts)


def test_a_call_without_a_name_is_judged_like_any_other():
    """A model may say so; no tool of such a name can be offered."""
    message = {"role": "assistant", "content": "so", "tool_calls": [{"id": "c", "function": {}}]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    made = ours.exchange("chat-completions", "/v1/chat/completions", {"model": "m"}, body)
    made["request"]["body"] = None
    recording = read_recording(ours.raw_file("openai-compatible", made), "ours.json")

    (verdict,) = check_recording(recording, our_adapters())

    assert (verdict.made, verdict.wrong) == (("a", "b"), {})


# ---- faults ----


class Fault(replay_fakes.Right):
    """Right but for what `change` does to the message it read."""

    def read(self, exchange):
        answer = super().read(exchange)
        return dataclasses.replace(answer, message=self.change(answer.message))


def without(kind):
    def change(self, message):
        content = message.content if isinstance(message.content, tuple) else ()
        return message.replace(content=[part for part in content if not isinstance(part, kind)])

    return type("Without", (Fault,), {"change": change})


def changed(**fields):
    def change(self, message):
        return message.replace(**{name: of(message) for name, of in fields.items()})

    return type("Changed", (Fault,), {"change": change})


def calls(**fields):
    return changed(tool_calls=lambda m: [call.replace(**fields) for call in m.tool_calls])


def usage(**fields):
    class Off(replay_fakes.Right):
        def read(self, exchange):
            answer = super().read(exchange)
            return dataclasses.replace(answer, usage=answer.usage.replace(**fields))

    return Off


def text_cut(message):
    content = message.content if isinstance(message.content, tuple) else (Text(message.content),)
    return [
        Text(p.text[:-1], thaw(p.extra)) if isinstance(p, Text) and p.text else p for p in content
    ]


EVERYWHERE = {
    "text lost": without(Text),
    "text changed": changed(content=text_cut),
    "call lost": changed(tool_calls=lambda m: m.tool_calls[1:]),
    "call doubled": changed(tool_calls=lambda m: m.tool_calls * 2),
    "arguments altered": calls(arguments='{"city": "Tunis", "unit": "c"}'),
    "arguments cut": calls(arguments='{"city": "Tur'),
    "name altered": calls(name="wether"),
    "stop wrong": changed(stop=lambda m: "stop" if m.stop == "tool_use" else "tool_use"),
    "stop missing": changed(stop=lambda m: None),
    "input off": usage(input=12),
    "output off": usage(output=5),
    "cache read lost": usage(cache_read=None),
    "cache write invented": usage(cache_write=9),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("fault", EVERYWHERE)
def test_a_planted_fault_is_found(key, fault):
    assert "a" in wrong_of(recording_of(key), EVERYWHERE[fault])


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("anthropic", without(Thinking)),
        ("anthropic stream", without(Opaque)),
        ("anthropic", calls(id="toolu_2")),
        ("openai-chat stream", calls(id="call_2")),
        ("openai-responses", without(Thinking)),
        ("google", calls(signature=None)),
        ("google stream", without(Thinking)),
        ("openai-chat", usage(reasoning=None)),
    ],
)
def test_a_fault_of_one_wire_is_found(key, fault):
    assert "a" in wrong_of(recording_of(key), fault)


def test_a_signature_that_is_lost_is_found():
    def unsigned(message):
        parts = message.content
        return [p.replace(signature=None) if type(p) is Thinking and p.text else p for p in parts]

    class Unsigned(Fault):
        def change(self, message):
            return message.replace(content=unsigned(message)) if message.calls else message

    assert wrong_of(ours.anthropic(), Unsigned)["a"].startswith("signature lost")


@pytest.mark.parametrize("raised", [ProtocolError("no"), ValueError("a bug of ours")])
def test_an_error_for_a_good_answer_is_found(raised):
    class Raises(replay_fakes.Right):
        def read(self, exchange):
            raise raised

    found = wrong_of(ours.google(), Raises)

    assert type(raised).__name__ in found["a"]


def refused(kind):
    class Refuses(replay_fakes.Right):
        def read(self, exchange):
            if exchange.status >= 400:
                raise kind("no")
            return super().read(exchange)

    return Refuses


def test_the_wrong_error_is_found():
    said = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    recording = ours.made(
        "anthropic", ours.exchange("messages", "/", ours.ANTHROPIC_ASKED, said, status=529)
    )

    assert wrong_of(recording, refused(Overloaded)) == {}
    assert "not Overloaded" in wrong_of(recording, refused(RateLimited))["a"]
    assert "not Overloaded" in wrong_of(recording, refused(InvalidRequest))["a"]


def test_an_error_taken_for_an_answer_is_found():
    class Deaf(replay_fakes.Right):
        def read(self, exchange):
            return self.answer(exchange, readings.read(exchange))

    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    start = ours.anthropic_stream().partition("event: message_delta")[0]
    raw = ours.exchange("messages", "/", ours.ANTHROPIC_ASKED, start + ours.sse(error))

    assert "an error is due" in wrong_of(ours.made("anthropic", raw), Deaf)["a"]


def body_fault(change):
    class Writes(replay_fakes.Right):
        def body(self, conversation):
            body = super().body(conversation)
            change(body)
            return body

    return Writes


def drop_results(body):
    body["messages"] = [m for m in body["messages"] if m["role"] != "tool"]


def rename_ids(body):
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            call["id"] = "x" + call["id"]
        if "tool_call_id" in message:
            message["tool_call_id"] = "x" + message["tool_call_id"]


def drop_text(body):
    for message in body["messages"]:
        if message["role"] == "assistant":
            message["content"] = None


def drop_system(body):
    body["messages"] = [m for m in body["messages"] if m["role"] != "system"]


def test_a_request_that_the_vendor_would_refuse_is_found():
    found = wrong_of(ours.openai_chat(), body_fault(drop_results))

    assert "tool-call-without-result" in found["b"]
    assert "c" in found


@pytest.mark.parametrize("change", [rename_ids, drop_text, drop_system])
def test_a_next_request_that_says_something_else_is_found(change):
    found = wrong_of(ours.openai_chat(), body_fault(change))

    assert "c" in found
    assert "a" not in found


def test_a_body_that_cannot_be_made_is_found():
    def refuse(body):
        raise KeyError("a bug of ours")

    found = wrong_of(ours.anthropic(), body_fault(refuse))

    assert "KeyError" in found["b"] and "KeyError" in found["c"]


def test_what_the_client_changed_is_explained():
    """Ours sends back what was given; the recorded client had left out the thinking."""
    body = json.loads(json.dumps(ours.ANTHROPIC_NEXT))
    del body["messages"][1]["content"][0]
    recording = ours.made(
        "anthropic",
        ours.exchange("messages", "/", ours.ANTHROPIC_ASKED, ours.ANTHROPIC_ANSWER),
        ours.exchange("messages", "/", body, ours.ANTHROPIC_ANSWER),
    )

    first = next(iter(check_recording(recording, replay_fakes.adapters())))

    assert first.wrong == {}
    assert first.explained == (
        "the client changed or left out the thinking of the answer",
        "the client changed or left out the signature of the answer",
    )


def test_a_request_that_the_judge_cannot_read_is_told():
    raw = ours.exchange("messages", "/", {"model": "x", "messages": 1}, ours.ANTHROPIC_ANSWER)

    found = wrong_of(ours.made("anthropic", raw), replay_fakes.Right)

    assert "the judge cannot read" in found["c"]


# ---- cuts ----


@pytest.mark.parametrize("name", ours.STREAMS)
def test_a_stream_cut_anywhere_is_an_error_with_what_had_come(name):
    exchange = ours.STREAMS[name]().exchanges[0]
    adapter = replay_fakes.Right(exchange.wire)

    assert list(cuts.judge(exchange, adapter)) == []
    assert len(cuts.places(exchange)) == min(len(exchange.data), len(cuts.places(exchange)))


class Trusting(replay_fakes.Right):
    """Takes the end of the bytes for the end of the answer."""

    def read(self, exchange):
        return self.answer(exchange, readings.read(exchange))


class Forgetful(replay_fakes.Right):
    """Raises as it should, and loses what had come."""

    def read(self, exchange):
        try:
            return super().read(exchange)
        except ProtocolError as error:
            error.partial = None
            raise


class Late(replay_fakes.Right):
    """Keeps nothing of the text but its first half."""

    def read(self, exchange):
        try:
            return super().read(exchange)
        except ProtocolError as error:
            text = (error.partial.message.text or "")[:2]
            error.partial = replay_fakes.Answer(error.partial.message.replace(content=text), None)
            raise


@pytest.mark.parametrize("name", ours.STREAMS)
@pytest.mark.parametrize("kind", [Trusting, Forgetful, Late])
def test_a_cut_that_is_mistaken_is_found(name, kind):
    exchange = ours.STREAMS[name]().exchanges[0]

    assert next(cuts.judge(exchange, kind(exchange.wire)), None)


def test_a_long_stream_is_cut_at_its_events_and_in_its_end():
    chunks = [ours.chat_chunk({"content": "x" * 100}) for _ in range(100)]
    raw = ours.exchange("chat-completions", "/", {}, ours.sse(*chunks, done=True))
    exchange = ours.made("openai-chat", raw).exchanges[0]

    places = cuts.places(exchange)

    assert len(places) < len(exchange.data) / 2
    assert set(range(len(exchange.data) - cuts.END, len(exchange.data))) <= set(places)
    assert sum(place < len(exchange.data) - cuts.END for place in places) >= 80


def test_cuts_are_part_of_the_check_when_asked_for():
    found = wrong_of(ours.anthropic(stream=True), Trusting, cut_step=7)

    assert "taken for a complete answer" in found["cut"]


# ---- the table and the command ----


def write(folder, *recordings):
    for number, raw in enumerate(recordings):
        (folder / f"{number}.json").write_text(json.dumps(raw))
    return folder


def anthropic_file():
    return ours.raw_file(
        "anthropic",
        ours.exchange("messages", "/v1/messages", ours.ANTHROPIC_ASKED, ours.ANTHROPIC_ANSWER),
        ours.exchange("messages", "/v1/messages", ours.ANTHROPIC_NEXT, LAST),
    )


LAST = {
    **ours.ANTHROPIC_ANSWER,
    "content": [{"type": "text", "text": "Sun."}],
    "stop_reason": "end_turn",
}


def unbuilt_file():
    return ours.raw_file("nobody", ours.exchange("chat-completions", "nobody", {}, {}))


def count_file():
    return ours.raw_file("anthropic", ours.exchange("count-tokens", "/count", {}, {"n": 1}))


def test_the_table_tells_by_vendor_and_tag_and_ends_in_the_share(tmp_path):
    write(tmp_path, anthropic_file(), unbuilt_file(), count_file())

    report = check_folder(tmp_path, replay_fakes.adapters())
    lines = list(table(report))

    assert report.is_good
    rows = [line.split() for line in lines[:4]]
    assert rows[0] == ["vendor", "tag", "files", "exchanges", "(a)", "(b)", "(c)", "(cut)"]
    assert rows[1] == ["anthropic", "all", "1", "2", "2/2", "2/2", "1/1", "-"]
    assert [row[1] for row in rows[2:]] == ["text", "tools"]
    assert "nobody: 1 exchanges not judged: not built yet" in lines
    assert "anthropic: 1 exchanges not judged: not a model call" in lines
    assert lines[-1].startswith("passed 100 % of 5 checks; (a)")


def test_a_failure_is_told_with_its_place_and_never_rounded_away(tmp_path):
    write(tmp_path, anthropic_file())

    report = check_folder(tmp_path, replay_fakes.adapters(EVERYWHERE["input off"]))
    lines = list(table(report))

    assert not report.is_good
    assert "FAILED (a) anthropic/0.json#0: usage.input: 12, not 15" in lines
    assert lines[-1].startswith("passed 60 % of 5 checks; (a) answers read as they are 0 %")


def test_a_file_that_is_no_recording_is_told(tmp_path):
    write(tmp_path, anthropic_file())
    (tmp_path / "x.json").write_text('{"exchanges": 1}')

    report = check_folder(tmp_path, replay_fakes.adapters())

    assert isinstance(read_file(tmp_path / "x.json"), Unreadable)
    assert not report.is_good
    assert any(line.startswith("unreadable: x.json") for line in table(report))


def test_nothing_judged_is_nothing_good():
    assert not Report().is_good
    assert list(table(Report()))[-1] == "nothing was judged"


def run(folder, adapters, *more):
    """The command, as a user runs it."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    return subprocess.run(
        [sys.executable, "-m", "holdfast.testing.replay", folder, "--adapters", adapters, *more],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )


def test_the_command_exits_by_what_it_found(tmp_path):
    write(tmp_path, anthropic_file())

    good = run(tmp_path, "replay_fakes:adapters")
    bad = run(tmp_path, "test_replay_check:faulty")

    assert (good.returncode, bad.returncode) == (0, 1), good.stderr + bad.stderr
    assert good.stdout.splitlines()[-1].startswith("passed 100 %")
    assert "FAILED (a)" in bad.stdout


def faulty():
    return replay_fakes.adapters(EVERYWHERE["text lost"])


@pytest.mark.parametrize(
    "arguments",
    [["nowhere"], [".", "--adapters", "replay_fakes:none"], [".", "--adapters", "nothing:x"]],
)
def test_the_command_says_when_there_is_nothing_to_judge(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(arguments) == 2
    assert capsys.readouterr().err


# ---- recorded traffic ----


@needs_traffic
def test_the_judge_asks_for_nothing_impossible_of_recorded_traffic():
    """
    The right adapter reads by the judge's own readings, so (a) is no news but for what a message
    cannot hold by a digest alone; that (c) is met shows that requests and answers are read to the
    same meaning.
    """
    report = check_folder(TRAFFIC, replay_fakes.adapters())
    wrong = [(v.exchange.file, name) for v in report.verdicts for name in v.wrong]

    assert report.unreadable == []
    assert report.share("a")[1] > 900
    assert report.share("c")[1] > 200
    assert [file for file, name in wrong if name == "a" and "can_speak" not in file] == []
    assert [file for file, name in wrong if name == "c"] == []


@needs_traffic
def test_a_faulty_adapter_is_found_out_on_recorded_traffic():
    report = check_folder(TRAFFIC / "anthropic", replay_fakes.adapters(EVERYWHERE["text changed"]))
    passed, made = report.share("a")

    assert passed < made / 2
