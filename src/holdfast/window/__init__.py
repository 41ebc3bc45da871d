"""What a model is shown: the log as a view. Pure, synchronous, without a provider or a clock."""

from holdfast.window.accounts import ContextUsage, TurnUsage
from holdfast.window.budget import Budget, Room, answer_tokens, max_tokens, result_limit
from holdfast.window.known import Estimate
from holdfast.window.ledger import Ledger
from holdfast.window.plan import Plan, Policy, Step, apply
from holdfast.window.situation import Situation
from holdfast.window.view import Group, Item, View

__all__ = [
    "Budget",
    "ContextUsage",
    "Estimate",
    "Group",
    "Item",
    "Ledger",
    "Plan",
    "Policy",
    "Room",
    "Situation",
    "Step",
    "TurnUsage",
    "View",
    "answer_tokens",
    "apply",
    "max_tokens",
    "result_limit",
]
