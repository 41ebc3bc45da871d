"""Adapters to judge: one that is right because it is trivial, and one for each kind of fault.

The right one reads with the readings themselves and writes bodies in the plainest form. So it says
nothing about reading; what it shows is that the rest of the judge asks for nothing impossible.
"""

import base64
import json
from dataclasses import dataclass

from holdfast.errors import ContentBlocked, ProtocolError
from holdfast.frozen import thaw
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking
from holdfast.testing.replay import readings
from holdfast.testing.replay.recordings import WIRES
from holdfast.testing.replay.refused import expected

VENDOR = {
    "anthropic": "anthropic",
    "google": "google",
    "code-assist": "antigravity",
    "ollama": "ollama",
}


@dataclass
class Answer:
    message: Message
    usage: object


class Right:
    """Reads by the readings, writes the plainest body."""

    def __init__(self, wire):
        self.wire = wire

    def read(self, exchange):
        reading = readings.read(exchange)
        if reading.is_blocked:
            raise ContentBlocked()
        partial = self.answer(exchange, reading)
        if reading.error or not reading.is_complete:
            kind = expected(exchange.status, reading.error)[0] if reading.error else ProtocolError
            error = kind("it failed")
            error.partial = partial
            raise error
        return partial

    def answer(self, exchange, reading):
        vendor = VENDOR.get(self.wire, "openai")
        calls = [
            ToolCall(
                id=call.id or f"made_{number}",
                name=call.name,
                arguments=written(call.arguments),
                signature=call.signature,
            )
            for number, call in enumerate(reading.calls)
        ]
        message = Message.assistant(
            self.parts(reading, vendor) or None,
            calls,
            stop=reading.stop,
            model=f"{vendor}:{exchange.model}",
        )
        return Answer(message, reading.usage)

    def parts(self, reading, vendor):
        own = {call.signature for call in reading.calls}
        own |= {block.get("thoughtSignature") for block in reading.blocks}
        signatures = [s for s in reading.signatures if s not in own]
        parts = [Thinking("", data, redacted=True) for data in reading.redacted]
        if self.wire == "anthropic" and reading.thinking + "".join(signatures):
            first, *more = signatures or [None]
            parts.append(Thinking(reading.thinking, first))
            parts += [Thinking("", each) for each in more]
        elif self.wire in ("google", "code-assist"):
            first, *more = signatures or [None]
            if reading.thinking:
                parts.append(Thinking(reading.thinking))
            extra = {"signature": first} if first else {}
            if reading.text or extra:
                parts.append(Text(reading.text, extra))
            parts += [Text("", {"signature": each}) for each in more]
            parts += [Opaque(vendor, block) for block in reading.blocks]
            return parts
        elif reading.thinking or signatures:
            parts.append(Thinking(reading.thinking, extra={"signatures": signatures}))
        said = reading.text + reading.refusal
        if said:
            parts.append(Text(said))
        return parts + [Opaque(vendor, block) for block in reading.blocks]

    def body(self, conversation):
        return BODIES[self.wire](conversation)


def written(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def adapters(kind=Right):
    return {wire: kind(wire) for wire in WIRES}


# ---- bodies ----


def parts_of(message):
    content = message.content or ()
    said = [Text(content)] if isinstance(content, str) else list(content)
    placed = [part.id for part in said if isinstance(part, CallRef)]
    return said + [CallRef(call.id) for call in message.calls if call.id not in placed]


def model_of(conversation):
    return conversation.settings.model.partition(":")[2]


def b64(data):
    return base64.b64encode(data).decode()


def url_of(part):
    return part.url or f"data:{part.media_type or 'image/png'};base64,{b64(part.data)}"


def anthropic_body(conversation):
    messages = []
    for message in conversation.messages:
        role = "user" if message.role is Role.TOOL else message.role.value
        calls = {call.id: call for call in message.calls}
        blocks = [b for p in parts_of(message) if (b := anthropic_block(p, calls))]
        if message.role is Role.TOOL:
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": message.tool_call_id,
                    "content": blocks,
                    "is_error": message.is_error,
                }
            ]
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    body = {"model": model_of(conversation), "max_tokens": 1000, "messages": messages}
    if conversation.system:
        body["system"] = conversation.system
    if conversation.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": thaw(t.parameters)}
            for t in conversation.tools
        ]
    return body


def anthropic_block(part, calls):
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Thinking):
        if part.redacted:
            return {"type": "redacted_thinking", "data": part.signature}
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    if isinstance(part, CallRef):
        call = calls[part.id]
        value = readings.base.parsed(call.arguments)
        value = value if isinstance(value, dict) else {}
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": value}
    if isinstance(part, Opaque):
        return thaw(part.data) if part.data.get("type") != "fallback" else None
    kind = "image" if isinstance(part, Image) else "document"
    if part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": b64(part.data)}
    return {"type": kind, "source": source}


def chat_body(conversation):
    system = [{"role": "system", "content": conversation.system}] if conversation.system else []
    messages = system + [chat_message(message) for message in conversation.messages]
    body = {"model": model_of(conversation), "messages": messages}
    if conversation.tools:
        body["tools"] = [{"type": "function", "function": declared(t)} for t in conversation.tools]
    return body


def declared(tool):
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": thaw(tool.parameters),
    }


def chat_message(message):
    raw = {"role": message.role.value}
    if message.name and message.role is not Role.TOOL:
        raw["name"] = message.name
    blocks = [b for p in parts_of(message) if (b := chat_block(p))]
    raw["content"] = message.content if isinstance(message.content, str) else blocks or None
    if message.role is Role.FUNCTION:
        raw["name"] = message.name
    if message.tool_call_id:
        raw["tool_call_id"] = message.tool_call_id
        raw["content"] = raw["content"] or ""
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, Opaque) and "reasoning_details" in part.data:
            raw["reasoning_details"] = thaw(part.data["reasoning_details"])
        if isinstance(part, Thinking):
            raw["reasoning_content"] = part.text
            if part.extra.get("signatures"):
                raw["reasoning_details"] = [
                    {"type": "reasoning.text", "text": part.text if n == 0 else "", "signature": s}
                    for n, s in enumerate(part.extra["signatures"])
                ]
    if message.calls:
        raw["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    elif message.role is Role.ASSISTANT and raw["content"] is None:
        raw["content"] = ""
    return raw


def chat_block(part):
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": url_of(part)}}
    if isinstance(part, File):
        return {"type": "file", "file": {"file_data": url_of(part), "filename": part.name or "f"}}
    if isinstance(part, Audio):
        sound = {"data": b64(part.data), "format": part.media_type.partition("/")[2]}
        return {"type": "input_audio", "input_audio": sound}
    if isinstance(part, Opaque) and "type" in part.data:
        return thaw(part.data)
    return None


def responses_body(conversation):
    items = [item for message in conversation.messages for item in response_items(message)]
    body = {"model": model_of(conversation), "input": items, "store": False}
    if conversation.system:
        body["instructions"] = conversation.system
    if conversation.tools:
        body["tools"] = [{"type": "function", **declared(tool)} for tool in conversation.tools]
    return body


def response_items(message):
    if message.role is Role.TOOL:
        blocks = [response_block(part) for part in parts_of(message)]
        output = message.content if isinstance(message.content, str) else blocks
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": output}]
    if message.role is not Role.ASSISTANT:
        blocks = [response_block(part) for part in parts_of(message)]
        return [{"role": message.role.value, "content": blocks}] if blocks else []
    calls = {call.id: call for call in message.calls}
    return [item for part in parts_of(message) for item in answer_items(part, calls)]


def answer_items(part, calls):
    if isinstance(part, Text):
        text = {"type": "output_text", "text": part.text, "annotations": []}
        said = {"type": "message", "role": "assistant", "content": [text]}
        return [said] if part.text else []
    if isinstance(part, CallRef):
        call = calls[part.id]
        named = {"call_id": call.id, "name": call.name}
        return [{"type": "function_call", **named, "arguments": call.arguments or "{}"}]
    if isinstance(part, Thinking):
        sealed = part.extra.get("signatures") or [part.signature]
        return [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": part.text}] if number == 0 else [],
                "encrypted_content": each,
            }
            for number, each in enumerate(sealed)
        ]
    # Reasoning that names itself wants what follows to name itself too.
    is_reasoning = part.data.get("type") == "reasoning"
    return [{k: v for k, v in thaw(part.data).items() if not (is_reasoning and k == "id")}]


def response_block(part):
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": url_of(part)}
    if isinstance(part, File):
        if part.url:
            return {"type": "input_file", "file_url": part.url}
        return {"type": "input_file", "file_data": url_of(part), "filename": part.name or "f"}
    return thaw(part.data)


def google_body(conversation):
    contents = []
    for message in conversation.messages:
        role = "model" if message.role is Role.ASSISTANT else "user"
        calls = {call.id: call for call in message.calls}
        parts = [google_part(part, calls) for part in parts_of(message)]
        if message.role is Role.TOOL:
            texts = [p["text"] for p in parts if "text" in p]
            response = {"name": message.name, "response": {"result": "".join(texts)}}
            more = [p for p in parts if "text" not in p]
            parts = [{"functionResponse": response | ({"parts": more} if more else {})}]
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    body = {"contents": contents}
    if conversation.system:
        body["systemInstruction"] = {"parts": [{"text": conversation.system}]}
    if conversation.tools:
        body["tools"] = [{"functionDeclarations": [google_tool(t) for t in conversation.tools]}]
    return body


def code_assist_body(conversation):
    return {"model": model_of(conversation), "request": google_body(conversation)}


def google_tool(tool):
    raw = declared(tool)
    schema = raw.pop("parameters")
    return {**raw, "parametersJsonSchema": schema}


def google_part(part, calls):
    if isinstance(part, Text):
        signature = part.extra.get("signature")
        return {"text": part.text} | ({"thoughtSignature": signature} if signature else {})
    if isinstance(part, CallRef):
        call = calls[part.id]
        raw = {"functionCall": {"name": call.name, "args": json.loads(call.arguments or "{}")}}
        return raw | ({"thoughtSignature": call.signature} if call.signature else {})
    if isinstance(part, Thinking):
        raw = {"text": part.text, "thought": True}
        return raw | ({"thoughtSignature": part.signature} if part.signature else {})
    if isinstance(part, Opaque):
        return thaw(part.data)
    if part.url:
        file = {"fileUri": part.url, "mimeType": part.media_type}
        return {"fileData": {name: value for name, value in file.items() if value}}
    return {"inlineData": {"mimeType": part.media_type or "image/png", "data": b64(part.data)}}


def ollama_body(conversation):
    system = [{"role": "system", "content": conversation.system}] if conversation.system else []
    messages = system + [ollama_message(message) for message in conversation.messages]
    body = {"model": model_of(conversation), "messages": messages}
    if conversation.tools:
        body["tools"] = [{"type": "function", "function": declared(t)} for t in conversation.tools]
    return body


def ollama_message(message):
    parts = parts_of(message)
    raw = {"role": message.role.value, "content": message.text or ""}
    if thinking := "".join(part.text for part in parts if isinstance(part, Thinking)):
        raw["thinking"] = thinking
    if images := [b64(part.data) for part in parts if isinstance(part, Image) and part.data]:
        raw["images"] = images
    if message.tool_call_id:
        raw |= {"tool_call_id": message.tool_call_id, "tool_name": message.name}
    if message.calls:
        calls = [(call, readings.base.parsed(call.arguments)) for call in message.calls]
        raw["tool_calls"] = [
            {"id": c.id, "function": {"name": c.name, "arguments": a if type(a) is dict else {}}}
            for c, a in calls
        ]
    return raw


BODIES = {
    "anthropic": anthropic_body,
    "openai-chat": chat_body,
    "openai-responses": responses_body,
    "google": google_body,
    "code-assist": code_assist_body,
    "ollama": ollama_body,
}
