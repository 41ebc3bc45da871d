"""A tool that somebody has to agree to, with the question and the answer in two processes.

    python examples/approval.py ask shop.db          the model wants to refund; nothing is done yet
    python examples/approval.py answer shop.db yes   it is done, and the model goes on
    python examples/approval.py answer shop.db no    or it is not, and the model is told

Hours and restarts may lie between them: the turn waits in the file. The model is scripted, so that
this runs without a key; with `model="anthropic:claude-sonnet-4-5"` nothing else changes.
"""

import argparse
import asyncio
import sys

import holdfast
from holdfast import HoldfastError, tool
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import Request, calls

KEY = "shop:order-17"


@tool(approval=True)
def refund(order: str, amount: int) -> str:
    """Give a customer the money back.

    Args:
        order: The number of the order.
        amount: In euros.
    """
    # `running().key` is the same if this call is ever run again: a bank that is given it pays once.
    print(f"-- the bank pays {amount} euros for order {order}")
    return f"refunded {amount} euros"


async def ask(db: str) -> None:
    model = FakeProvider(
        calls("refund", "I would like to.", order="17", amount=25), name="shop:bot"
    )
    async with holdfast.open(f"sqlite:{db}", model=model, tools=[refund]) as sessions:
        session = await sessions.get_or_create(KEY)
        result = await session.send("My order 17 came broken. Please refund it.")
        print(f"assistant: {result}")
        for call in result.pending:
            print(f"-- waits for an answer: {call.name} {call.arguments}")


async def answer(db: str, agrees: bool) -> None:
    model = FakeProvider(told, name="shop:bot")
    async with holdfast.open(f"sqlite:{db}", model=model, tools=[refund]) as sessions:
        session = await sessions.get(KEY)
        result = await session.resume()  # nothing is answered yet: it tells what waits
        result = await session.resume({call.id: agrees for call in result.pending})
        print(f"assistant: {result}")


def told(request: Request) -> str:
    """What the scripted model makes of the tool's result."""
    result = request.messages[-1]
    return "I am sorry, I may not." if result.is_error else f"Done: {result.text}."


def main() -> int:
    parser = argparse.ArgumentParser(description="A tool that somebody has to agree to.")
    steps = parser.add_subparsers(dest="step", required=True)
    asking = steps.add_parser("ask", help="let the model ask")
    answering = steps.add_parser("answer", help="answer it")
    for each in (asking, answering):
        each.add_argument("db", help="the file that keeps the conversation")
    answering.add_argument("agrees", choices=["yes", "no"])
    options = parser.parse_args()
    try:
        if options.step == "ask":
            asyncio.run(ask(options.db))
        else:
            asyncio.run(answer(options.db, options.agrees == "yes"))
    except (HoldfastError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
