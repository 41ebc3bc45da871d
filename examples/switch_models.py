"""One conversation with two models of different vendors, there and back again.

    python examples/switch_models.py

Three messages: Claude answers the first, GPT the second, Claude the third. Two small servers on
this machine stand in for the vendors and answer as these do, so what is printed is what each model
is really shown: GPT reads what Claude said, but not what it thought, which only Claude can verify;
and when Claude comes back, its own thoughts are there, signature and all.
"""

import argparse
import asyncio
import json
import sys
from typing import Any

import holdfast
from holdfast import HoldfastError, Settings
from holdfast.testing.replay.server import Answer, Server

JSON = {"content-type": "application/json"}


def claude(thought: str, text: str) -> Answer:
    """An answer of Anthropic's Messages API."""
    content = [
        {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"},
        {"type": "text", "text": text},
    ]
    return _answer(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 30, "output_tokens": 20},
        }
    )


def gpt(text: str) -> Answer:
    """An answer of OpenAI's Responses API."""
    message = {
        "id": "msg_2",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    return _answer(
        {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "model": "gpt-4.1",
            "output": [message],
            "usage": {"input_tokens": 40, "output_tokens": 10, "total_tokens": 50},
        }
    )


def _answer(body: dict[str, Any]) -> Answer:
    return Answer(headers=JSON, data=json.dumps(body).encode(), is_chunked=False)


async def talk() -> None:
    answers = [claude("She is Ada.", "Hello, Ada."), claude("As before.", "You said Ada.")]
    async with Server(*answers) as anthropic, Server(gpt("You are Ada.")) as openai:
        models = [
            holdfast.open_provider(
                "anthropic:claude-sonnet-4-5", base_url=anthropic.url, api_key="none"
            ),
            holdfast.open_provider(
                "openai:gpt-4.1", base_url=openai.url, api_key="none", api="responses"
            ),
        ]
        async with holdfast.open("memory:", model=models[0], providers=models) as sessions:
            session = await sessions.get_or_create(
                "cli:switch", settings=Settings(thinking=1024, max_tokens=2048)
            )
            print(f"claude: {await session.send('I am Ada.')}")

            # For one turn only; `session.update(model=...)` is for all that follow.
            print(f"gpt:    {await session.send('Who am I?', model='openai:gpt-4.1')}")

            print(f"claude: {await session.send('What did I say first?')}")
        for model in models:
            await model.close()
        print("\nwhat they were shown:")
        first, third = (shown(request.body["messages"]) for request in anthropic.requests)
        (second,) = (shown(request.body["input"]) for request in openai.requests)
        for name, lines in (("claude", first), ("gpt", second), ("claude", third)):
            print(f"  {name}")
            print("\n".join(f"    {line}" for line in lines))


def shown(messages: list[dict[str, Any]]) -> list[str]:
    """What a request has of the conversation, a line for each thing said."""
    lines = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            said = part.get("text") or f"(thought, signed) {part.get('thinking')}"
            lines.append(f"{message['role']}: {said}")
    return lines


def main() -> int:
    argparse.ArgumentParser(description="Two models in one conversation.").parse_args()
    try:
        asyncio.run(talk())
    except (HoldfastError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
