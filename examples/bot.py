"""A chat bot: updates in, answers out, a session for each chat.

    python examples/bot.py --db bot.db          then type:  ada: Hello, I am Ada.
                                                            bob: And I am Bob.
                                                            ada: /stop      stops the answer
                                                            ada: /new       forgets the chat

The messenger is a stand-in that has Telegram's two calls, on this terminal; the model is a small
one on this machine. What is worth copying is `Bot`:

* Each update is answered in a task of its own, and `sessions` keeps what belongs together: messages
  of one chat are answered one after the other, in order, those of different chats at once.
* A messenger delivers an update again when it is not sure that it arrived, after a crash for
  instance. With `once` it is asked once, and what was answered then is the answer now.
* The bot may be killed at any time. An update is confirmed when it is answered, and not before: one
  that was being answered, or waited behind another of its chat, is delivered again to the next bot.
"""

import argparse
import asyncio
import sys
from typing import Any

import holdfast
from holdfast import HoldfastError, Settings
from holdfast.errors import LeaseLost
from holdfast.events import Event, Outcome, TurnStarted

MODEL = "local:smollm2-135m"
SETTINGS = Settings(
    system="You are a friendly assistant. Answer in one or two short sentences.",
    max_tokens=200,
    limits={"continuations": 0},  # an answer that is cut off there is long enough for a chat
)

POLL_S = 0.2  # between two looks for updates while some are being answered


class Bot:
    """Answers the updates of a messenger."""

    def __init__(self, messenger: "Messenger", sessions: holdfast.SessionManager) -> None:
        self._messenger = messenger
        self._sessions = sessions

    async def run(self) -> None:
        """Ask for updates until there are none, and answer them as they come.

        Asking from `offset` on tells the messenger that all before it are done with.
        """
        offset = 0
        taken: dict[int, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as answering:
            while updates := await self._messenger.get_updates(offset):
                for update in updates:
                    if update["update_id"] not in taken:
                        task = answering.create_task(self._take(update))
                        taken[update["update_id"]] = task
                if open_ := [task for task in taken.values() if not task.done()]:
                    await asyncio.wait(open_, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
                while taken and taken[first := min(taken)].done():
                    del taken[first]
                    offset = first + 1

    async def _take(self, update: dict[str, Any]) -> None:
        chat, text = update["message"]["chat"]["id"], update["message"]["text"]
        session = await self._sessions.get_or_create(f"telegram:{chat}", settings=SETTINGS)
        try:
            match text:
                case "/stop":
                    if not session.cancel():
                        self._messenger.send_message(chat, "There is nothing to stop.")
                case "/new":
                    session.cancel()
                    await session.clear()
                    self._messenger.send_message(chat, "We begin anew.")
                case _:
                    await self._answer(session, chat, text, f"update-{update['update_id']}")
        except LeaseLost:
            pass  # the chat was begun anew while its last message was being answered
        except HoldfastError as error:
            self._messenger.send_message(chat, f"That did not work: {error}")

    async def _answer(self, session: holdfast.Session, chat: str, text: str, once: str) -> None:
        def on_event(event: Event) -> None:
            if isinstance(event, TurnStarted):
                self._messenger.send_typing(chat)

        result = await session.send(text, once=once, on_event=on_event)
        stopped = " [stopped]" if result.outcome is Outcome.CANCELLED else ""
        self._messenger.send_message(chat, f"{result}{stopped}")


class Messenger:
    """A stand-in for a messenger: each line of the input, `chat: text`, is an update."""

    def __init__(self) -> None:
        self._updates: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    async def get_updates(self, offset: int) -> list[dict[str, Any]]:
        """The updates from `offset` on, as soon as there is one; none when the input has ended."""
        while True:
            self._news.clear()
            found = [each for each in self._updates if each["update_id"] >= offset]
            if found or self._listening.done():
                return found
            await self._news.wait()

    async def _listen(self) -> None:
        while line := await asyncio.to_thread(sys.stdin.readline):
            chat, colon, text = line.partition(":")
            if colon and text.strip():
                message = {"chat": {"id": chat.strip()}, "text": text.strip()}
                update = {"update_id": len(self._updates) + 1, "message": message}
                self._updates.append(update)
                self._news.set()
            else:
                print("say who speaks:  ada: Hello", file=sys.stderr, flush=True)
        asyncio.get_running_loop().call_soon(self._news.set)  # when this task is done

    def send_message(self, chat: str, text: str) -> None:
        print(f"{chat} < {' '.join(text.split())}", flush=True)  # a line for each

    def send_typing(self, chat: str) -> None:
        print(f"{chat} ...", flush=True)


async def serve(db: str, model: str) -> None:
    async with holdfast.open(f"sqlite:{db}", model=model) as sessions:
        await Bot(Messenger(), sessions).run()


def main() -> int:
    parser = argparse.ArgumentParser(description="A chat bot with a memory for each chat.")
    parser.add_argument("--db", default="bot.db", help="the file that keeps the chats")
    parser.add_argument("--model", default=MODEL, help=f"vendor:model (default {MODEL})")
    options = parser.parse_args()
    try:
        asyncio.run(serve(options.db, options.model))
    except (HoldfastError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
