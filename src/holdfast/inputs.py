"""What callers of a session pass in, checked before anything is done."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.cancel import CancelToken
from holdfast.errors import InvalidInput
from holdfast.frozen import freeze
from holdfast.messages import Message
from holdfast.parts import Part
from holdfast.settings import Settings
from holdfast.steps.limits import Limits
from holdfast.window.budget import Budget
from holdfast.window.plan import Policy

_DEFAULT_BUDGET = Budget()
Input = str | Message | Sequence[Part | str]


def said(input: object) -> Message:
    """What a user says, as a message."""
    if isinstance(input, Message):
        if not input.starts_turn:
            raise InvalidInput("input", "is a user's message, without results of tools")
        return input
    if not isinstance(input, str | list | tuple):
        kind = type(input).__name__
        raise InvalidInput("input", f"is text, a user's Message, or parts, not {kind}")
    if not input:
        raise InvalidInput("input", "is empty: say something")
    return Message.user(input)


def sent(message: Message, once: str | None) -> Message:
    """The message that is sent under a name."""
    if once is None:
        return message
    if type(once) is not str or not once:
        raise InvalidInput("once", f"is a name for this input, not {once!r:.80}")
    return message.replace(extra={**message.extra, "once": once})


def messages_of(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages, and nothing else."""
    found = tuple(messages)
    for each in found:
        if not isinstance(each, Message):
            raise InvalidInput("messages", f"are of type Message, not {type(each).__name__}")
    return found


def token_under(cancel: object) -> CancelToken:
    """A token of the turn's own, under that of the caller."""
    if cancel is None:
        return CancelToken()
    if not isinstance(cancel, CancelToken):
        raise InvalidInput("cancel", f"is a CancelToken, not {type(cancel).__name__}")
    return cancel.child()


def seconds(wait: float | None) -> float | None:
    """How long somebody wants to wait; None is as long as it takes, within reason."""
    if wait is not None and (type(wait) not in (int, float) or not 0 <= wait < float("inf")):
        raise InvalidInput("wait", f"is seconds from 0 up, or None, not {wait!r}")
    return wait


def named_settings(settings: Settings | Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings by name. Budgets and limits that no turn could keep to are refused at once."""
    values = settings.values if isinstance(settings, Settings) else settings
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput("settings", f"is a Settings or a dict, not {type(values).__name__}")
    named = dict(values or {})
    for name, read in (("budget", Budget.of), ("limits", Limits.of)):
        if named.get(name) is not None:
            read(freeze(named[name], name))
    return named


def budget_of(budget: Budget | Mapping[str, Any] | None) -> Mapping[str, Any]:
    """How a window is to be filled, by names: what is given, and nothing that is the default."""
    if budget is None:
        return {}
    if not isinstance(budget, Budget):
        Budget.of(budget)
        return budget
    names = Budget.__struct_fields__
    values = ((name, getattr(budget, name)) for name in names)
    return {name: value for name, value in values if value != getattr(_DEFAULT_BUDGET, name)}


def policy_of(policy: Policy | None) -> Policy | None:
    """How a window is to be kept."""
    if policy is not None and not callable(getattr(policy, "plan", None)):
        raise InvalidInput("policy", f"is one such as Truncate(), not {policy!r:.80}")
    return policy
