"""OpenAI's Chat Completions, and every server that speaks them.

One message becomes one message of the wire, with two exceptions:

- A tool's message takes text alone. Media that a tool gave back goes, behind the last result of
  the group, into one message of the user, each behind a line that names its call.
- Where user and assistant have to take turns (`Dialect.alternates`), messages of the same one
  are put together.

The wire has no field for a result that is an error; the text says it. Thinking goes back to the
model that thought it in the field in which it came (`part.extra["field"]`), OpenRouter's
`reasoning_details` piece by piece (`part.extra["detail"]`), Copilot's `reasoning_text` with the
seal that came with it. What the model refused to say is
replayed as a refusal, what it said aloud as its transcript: the sound itself is kept by the
service for an hour only.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK
from holdfast.parts import Opaque, Part, Text, Thinking
from holdfast.providers import openai_shared as shared
from holdfast.providers.answer import Answer
from holdfast.providers.fields import Object
from holdfast.providers.names import Spelling
from holdfast.providers.openai_chat_dialect import HOSTS, Dialect, dialect_of
from holdfast.providers.openai_chat_media import part_of, taker
from holdfast.providers.openai_chat_reader import CHAT, REASONING, SEALED_REASONING, ChatReader
from holdfast.providers.prepare import Prepared, Rules
from holdfast.providers.wire import Ask, Wire, merge, wanted

__all__ = ["HOSTS", "Dialect", "OpenAIChatWire", "dialect_of"]

NO_INSTRUCTIONS = ("o1-mini", "o1-preview")  # these take neither a system nor a developer message
ATTACHED = "[What the call {id} gave back]"
SCHEMA = "Answer with JSON alone, which follows this JSON Schema:\n{schema}"
ANSWER = "answer"  # the schema's name, which the service wants and nobody sees
_PARTICIPANT = Spelling(re.compile(r"[\s<|\\/>]"), 64)
_SAID = {Role.USER: ("text", "image_url", "input_audio", "file")}  # the parts that are known
_encode = msgspec.json.Encoder().encode


class _Attached(NamedTuple):
    """A result whose media has to wait until the results behind it were told."""

    message: bytes
    parts: list[bytes]


class OpenAIChatWire(Wire):
    """Chat Completions of one model, at a server of one dialect."""

    vendor: ClassVar[str] = "openai"
    api: ClassVar[str] = "openai-chat"

    def __init__(
        self,
        model: str,
        *,
        vendor: str | None = None,
        base_url: str | None = None,
        dialect: Dialect | None = None,
        api_version: str | None = None,
    ) -> None:
        """`api_version` is for Azure, where `model` is the name of a deployment."""
        super().__init__(model, vendor=vendor)
        self.dialect = dialect = dialect or dialect_of(base_url)
        self.api_version = api_version
        self._vendor = vendor or self.vendor
        # Others who speak this wire have models of their own, and take what they do not know.
        self._reasons = shared.reasons(model) if dialect.is_openai else None
        self._max_tokens = "max_completion_tokens" if self._reasons else dialect.max_tokens
        self._system_role = "user" if model.startswith(NO_INSTRUCTIONS) else dialect.system_role
        self.rules = Rules(
            vendor=CHAT,
            tool_name=shared.TOOL_NAME,
            call_id=dialect.call_id,
            has_system_role=dialect.has_system_role,
            first_is_user=dialect.alternates,
            last_is_user=dialect.last_is_user,
            keeps_thinking=dialect.thinking != "never",
            takes=taker(dialect),
            has_any_arguments=True,
            detaches=lambda part: (part_of(part, dialect) or {}).get("type") != "text",
        )

    def path(self, ask: Ask) -> str:  # noqa: ARG002 - the same for all
        if self.api_version is None:
            return "/chat/completions"
        query = urlencode({"api-version": self.api_version})
        return f"/openai/deployments/{quote(self.model, safe='')}/chat/completions?{query}"

    def reader(self, answer: Answer) -> ChatReader:
        dialect = self.dialect
        return ChatReader(
            answer, vendor=self._vendor, ends=dialect.ends, joins_choices=dialect.joins_choices
        )

    # The body

    def to_wire(self, ask: Ask) -> Object:
        prepared = ask.prepared
        body: Object = {"model": self.model, "messages": None}
        told = [prepared.system] if prepared.system else []
        if prepared.tools:
            tools = {tool.name: tool for tool in prepared.tools}.values()
            body["tools"] = [{"type": "function", "function": shared.function(t)} for t in tools]
        if ask.schema is not None:
            body["response_format"] = self._format(ask.schema, told)
        if ask.stream:
            body["stream"] = True
            if self.dialect.has_usage_option:
                body["stream_options"] = {"include_usage": True}
        self._put_settings(body, ask)
        body["messages"] = msgspec.Raw(self._messages(prepared, "\n\n".join(told)))
        merge(body, wanted(ask, self._vendor))
        return body

    def _format(self, schema: Mapping[str, Any], told: list[str]) -> Object:
        if not self.dialect.has_schema:
            told.append(SCHEMA.format(schema=_encode(schema).decode()))
            return {"type": "json_object"}
        strict = shared.is_strict(schema)
        named = {"name": ANSWER, "schema": schema, "strict": strict}
        return {"type": "json_schema", "json_schema": named}

    def _put_settings(self, body: Object, ask: Ask) -> None:
        settings = ask.settings
        if settings.temperature is not None and self._reasons is not True:
            body["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            body[self._max_tokens] = settings.max_tokens
        if settings.thinking is not None and self._reasons is not False:
            body |= _thinking(self.dialect.effort, settings.thinking)
        if ask.conversation and self.dialect.has_cache_key:
            body["prompt_cache_key"] = shared.cache_key(ask.conversation)

    def _messages(self, prepared: Prepared, told: str) -> bytes:
        fragments = prepared.fragments
        if self.dialect.alternates:
            fragments = [self.fragment(each) for each in _in_turns(prepared.messages)]
        head = [_encode({"role": self._system_role, "content": told})] if told else []
        try:
            joined = b",".join([*head, *fragments])
        except TypeError:  # a tool gave back media
            joined = b",".join([*head, *_detached(fragments)])
        return b"[%b]" % joined

    # One message

    def fragment(self, message: Message) -> bytes | _Attached:
        role = message.role
        if role is Role.ASSISTANT:
            return _encode(self._assistant(message))
        if role is Role.TOOL:
            return self._result(message)
        made: Object = {"role": "user" if role is Role.USER else self._system_role}
        made["content"] = self._content(message.content, role) or BLANK
        self._put_name(made, message)
        return _encode(made)

    def _put_name(self, made: Object, message: Message) -> None:
        if message.name and self.dialect.has_names:
            made["name"] = _PARTICIPANT.fitted(message.name)

    def _content(self, content: Any, role: Role) -> str | list[Object]:
        """One text as it is, several parts as a list where the server takes one."""
        if not isinstance(content, tuple):
            return content or ""
        parts = [made for part in content if (made := self._part(part, role)) is not None]
        if len(parts) == 1 and parts[0]["type"] == "text":
            return str(parts[0]["text"])
        if not self.dialect.has_parts and all(part["type"] == "text" for part in parts):
            return "\n\n".join(str(part["text"]) for part in parts)
        return parts or ""

    def _part(self, part: Part, role: Role) -> Object | None:
        kind = type(part)
        if kind is Text:
            if role is Role.ASSISTANT and part.extra.get("refusal"):  # type: ignore[union-attr]
                return None  # has a field of its own
            return {"type": "text", "text": part.text}  # type: ignore[union-attr]
        if kind is Opaque:
            data: Object = part.data  # type: ignore[union-attr, assignment]
            return data if data.get("type") in _SAID.get(role, ()) else None
        return None if role is Role.ASSISTANT else part_of(part, self.dialect)

    # The assistant's

    def _assistant(self, message: Message) -> Object:
        made: Object = {"role": "assistant"}
        content, calls = message.content, message.tool_calls
        if isinstance(content, tuple):
            if refused := [p.text for p in content if type(p) is Text and p.extra.get("refusal")]:
                made["refusal"] = "".join(refused)
            if self.dialect.thinking == "always" or (calls and self.rules.keeps_thinking):
                _put_thinking(made, content)
            if (signature := _signature(content)) is not None:
                made["extra_content"] = {"google": {"thought_signature": signature}}
        said = self._content(content, Role.ASSISTANT)
        made["content"] = said if said or not (calls or "refusal" in made) else None
        if calls:
            made["tool_calls"] = [_call(call) for call in calls]
            if self.dialect.no_thinking is not None:
                made.setdefault("reasoning_content", self.dialect.no_thinking)
        self._put_name(made, message)
        return made

    # A tool's

    def _result(self, message: Message) -> bytes | _Attached:
        content, media = message.content, []
        if isinstance(content, tuple):
            shown = [(part, self._part(part, Role.TOOL)) for part in content]
            media = [made for _, made in shown if made is not None and made["type"] != "text"]
            said = [made["text"] for _, made in shown if made is not None and "text" in made]
            content = "\n\n".join(said)
        id = message.tool_call_id
        result = _encode({"role": "tool", "tool_call_id": id, "content": content or ""})
        if not media:
            return result
        title = {"type": "text", "text": ATTACHED.format(id=id)}
        return _Attached(result, [_encode(each) for each in (title, *media)])


def _call(call: ToolCall) -> Object:
    if call.extra.get("type") == "custom":
        custom = {"name": call.name, "input": shared.free_text(call.arguments)}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    made: Object = {"id": call.id, "type": "function", "function": function}
    if call.signature is not None:  # Google's: only there has a call one, and only it gets it back
        made["extra_content"] = {"google": {"thought_signature": call.signature}}
    return made


def _signature(content: Iterable[Part]) -> str | None:
    """Google's, of the whole message: on its words, or where there are none on an empty thought."""
    for part in content:
        if type(part) in (Text, Thinking) and part.extra.get("field") == "extra_content":  # type: ignore[union-attr]
            found = part.signature if type(part) is Thinking else part.extra.get("signature")  # type: ignore[union-attr]
            return found if isinstance(found, str) else None
    return None


def _put_thinking(made: Object, content: Iterable[Part]) -> None:
    details: list[Object] = []
    for part in content:
        if type(part) is Opaque and isinstance(
            given := part.data.get("reasoning_details"), Sequence
        ):
            details += given  # somebody kept them as they came
        if type(part) is not Thinking:
            continue
        field, detail = part.extra.get("field"), part.extra.get("detail")
        if isinstance(detail, dict):
            details.append(_detail(part, detail))
        elif field is None and part.text:
            field = "reasoning_content"  # it came from elsewhere: that is what most call it
        if field in REASONING:
            made[field] = made.get(field, "") + part.text
        if field == SEALED_REASONING and part.signature:
            made["reasoning_opaque"] = part.signature
    if "reasoning_opaque" not in made:  # the words alone are an "Invalid signature"
        made.pop(SEALED_REASONING, None)
    if details:
        made["reasoning_details"] = details


def _detail(part: Thinking, detail: Mapping[str, Any]) -> Object:
    """A block of `reasoning_details` as it came: its words and its seal are kept in the part."""
    made = dict(detail)
    if part.redacted:
        made["data"] = part.signature
        return made
    words = "summary" if detail.get("type") == "reasoning.summary" else "text"
    if part.text:
        made[words] = part.text
    if part.signature:
        made["signature"] = part.signature
    return made


def _thinking(field: str, thinking: str | int) -> Object:
    """How hard to think, in the words of the dialect."""
    word = shared.effort(thinking)
    is_off = word == "none"
    if field == "thinking":
        return {"thinking": {"type": "disabled" if is_off else "enabled"}}
    if field == "thinking_budget":
        return {} if is_off else {"thinking_budget": shared.budget(thinking)}
    if field == "enable_thinking":
        budget = {} if is_off or isinstance(thinking, str) else {"thinking_budget": thinking}
        return {"enable_thinking": not is_off, **budget}
    if field == "reasoning":
        if is_off:
            return {"reasoning": {"enabled": False}}
        known = {"effort": word} if isinstance(thinking, str) else {"max_tokens": thinking}
        return {"reasoning": known}
    return {"reasoning_effort": word}


def _detached(fragments: Iterable[bytes | _Attached]) -> Iterable[bytes]:
    """The messages, with a user's behind each group of results that has media."""
    waiting: list[bytes] = []
    for fragment in fragments:
        if waiting and not (type(fragment) is _Attached or fragment.startswith(_RESULT)):  # type: ignore[union-attr]
            yield _user(waiting)
            waiting = []
        if type(fragment) is _Attached:
            waiting += fragment.parts
            fragment = fragment.message
        yield fragment  # type: ignore[misc]
    if waiting:
        yield _user(waiting)


_RESULT = b'{"role":"tool",'


def _user(parts: list[bytes]) -> bytes:
    return b'{"role":"user","content":[%b]}' % b",".join(parts)


def _in_turns(messages: Sequence[Message]) -> list[Message]:
    """The messages, with those that the same one says in a row put together."""
    made: list[Message] = []
    for message in messages:
        last = made[-1] if made else None
        if last is None or last.role is not message.role or message.role is Role.TOOL:
            made.append(message)
            continue
        content = (*_parts(last), *_parts(message))
        made[-1] = last.replace(content=content, tool_calls=(*last.tool_calls, *message.tool_calls))
    return made


def _parts(message: Message) -> tuple[Part, ...]:
    content = message.content
    return content if isinstance(content, tuple) else (Text(content),) if content else ()
