"""What a model is shown: the log as a view. Pure, synchronous, without a provider or a clock."""

from holdfast.window.budget import Budget, Room, answer_tokens, max_tokens
from holdfast.window.plan import Plan, Policy, Step, apply
from holdfast.window.situation import Situation
from holdfast.window.view import Group, Item, View

__all__ = [
    "Budget",
    "Group",
    "Item",
    "Plan",
    "Policy",
    "Room",
    "Situation",
    "Step",
    "View",
    "answer_tokens",
    "apply",
    "max_tokens",
]
