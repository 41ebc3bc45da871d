"""The window: what a call would be given, its digest, and what does not fit."""

import pytest

from holdfast.entries import Fold
from holdfast.errors import DoesNotFit
from holdfast.messages import Message, ToolCall
from holdfast.tools import Tool
from holdfast.window.situation import Situation
from holdfast.window.view import View
from holdfast.window.window import digest, window

LOOK = Tool("look", "Looks.", {"type": "object", "properties": {}})
CALL = ToolCall(id="c1", name="look", arguments="{}")
SAID = (
    Message.user("I am Ada."),
    Message.assistant("Let me look.", tool_calls=[CALL]),
    Message.tool("a long account", tool_call_id="c1", name="look"),
    Message.assistant("You are."),
)


def count(message):
    return len(message.text or "")


def view_of(*entries):
    view = View(count)
    for seq, entry in enumerate(entries, start=1):
        view.add(seq, entry)
    return view


def test_a_window_tells_all_that_the_model_is_given():
    fold = Fold(first=2, last=3, by="somebody", why="it is long")
    view = view_of(*SAID, fold)

    found = window(view, Situation(limit=100, used=30, margin=5), system="Be brief.", tools=[LOOK])

    assert found.system == "Be brief." and found.tools == (LOOK,)
    assert found.messages == (SAID[0], SAID[3]) and found.tokens == (9, 8)
    assert (found.used, found.margin, found.limit) == (30, 5, 100)
    assert found.folds == (fold,) and found.repairs == ()
    assert found.digest == digest(view, "Be brief.", [LOOK])
    assert found.manifest == {
        "messages": 2,
        "used": 30,
        "limit": 100,
        "folds": ({"first": 2, "last": 3, "by": "somebody", "why": "it is long"},),
        "repairs": 0,
    }


def test_the_digest_goes_on_as_the_conversation_does():
    """It is the one that a view made at once would have, at every step."""
    log = (*SAID, Fold(first=2, last=3), Message.user("Good."))
    view = View(count)

    for seq, entry in enumerate(log, start=1):
        view.add(seq, entry)
        assert digest(view, None, ()) == digest(view_of(*log[:seq]), None, ())


def test_a_result_that_comes_after_a_look_changes_the_digest():
    """What was said of the missing result is in it no more."""
    view = view_of(*SAID[:2])
    before = digest(view, None, ())

    view.add(3, SAID[2])

    assert digest(view, None, ()) not in (before, digest(view_of(*SAID[:2]), None, ()))


@pytest.mark.parametrize(
    "other",
    [
        lambda: digest(view_of(*SAID[:3]), "s", [LOOK]),
        lambda: digest(view_of(*reversed(SAID)), "s", [LOOK]),
        lambda: digest(view_of(*SAID), "t", [LOOK]),
        lambda: digest(view_of(*SAID), None, [LOOK]),
        lambda: digest(view_of(*SAID), "s", []),
        lambda: digest(view_of(*SAID), "s", [LOOK.replace(description="Sees.")]),
        lambda: digest(view_of(*SAID[:3], SAID[3].replace(content="You are!")), "s", [LOOK]),
        lambda: digest(view_of(*SAID, Fold(first=2, last=3)), "s", [LOOK]),
    ],
    ids=["shorter", "order", "system", "no system", "no tools", "other tool", "words", "folded"],
)
def test_whatever_is_shown_is_in_the_digest(other):
    assert digest(view_of(*SAID), "s", [LOOK]) == digest(view_of(*SAID), "s", [LOOK])

    assert other() != digest(view_of(*SAID), "s", [LOOK])


def test_what_does_not_fit_is_named():
    """The largest part of it, with its tokens and how many of them would fit."""
    view = view_of(*SAID[:3], Message.user("x" * 500))

    with pytest.raises(DoesNotFit) as raised:
        window(view, Situation(limit=400, used=540, base=20))

    assert "the user's message has 500 tokens and 360 fit" in str(raised.value)


def test_a_system_prompt_that_is_too_long_is_named():
    with pytest.raises(DoesNotFit, match="the system prompt with the tools has 900 tokens"):
        window(view_of(*SAID), Situation(limit=500, used=940, base=900))


def test_a_tool_whose_result_is_too_long_is_named():
    with pytest.raises(DoesNotFit, match="the result of look has 14 tokens"):
        window(view_of(*SAID), Situation(limit=10, used=43))


@pytest.mark.parametrize("margin", [0, 8, 10_000])
def test_what_only_may_not_fit_is_not_refused(margin):
    """A margin is how uncertain the estimate is. It is planned by, and refuses nothing: a model
    whose tokens are hard to estimate could not be talked to any more."""
    window(view_of(*SAID), Situation(limit=43, used=43, margin=margin))

    with pytest.raises(DoesNotFit):
        window(view_of(*SAID), Situation(limit=42, used=43, margin=margin))
