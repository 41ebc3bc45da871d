"""What a model is shown: the log as a view. Pure, synchronous, without a provider or a clock.

    ledger, view = Ledger(), View(count)          # tokens; the log with its folds applied
    situation = Situation(limit=..., used=...)    # how full, how dear
    plan = fitting(CacheAware(), view, situation) # what to fold, and why; or DoesNotFit
    folds = apply(plan)                           # entries for the log
    view.rendered().messages                      # what can be sent

Names are loaded when they are first used: a provider needs `render` alone.
"""

TYPE_CHECKING = False  # type checkers take it for true, and `typing` need not be imported

if TYPE_CHECKING:
    from holdfast.window.accounts import ContextUsage, TurnUsage
    from holdfast.window.budget import Budget, Room, answer_tokens, max_tokens, result_limit
    from holdfast.window.budget_policy import BudgetPolicy
    from holdfast.window.cache_aware import CacheAware
    from holdfast.window.evict import Evict
    from holdfast.window.fit import fitting
    from holdfast.window.hybrid import Hybrid
    from holdfast.window.known import Estimate
    from holdfast.window.ledger import Ledger
    from holdfast.window.observe import Observe
    from holdfast.window.overflow import recover
    from holdfast.window.plan import Plan, Policy, Step, apply
    from holdfast.window.situation import Situation
    from holdfast.window.summarize import Summarize
    from holdfast.window.truncate import Truncate
    from holdfast.window.view import Group, Item, View
    from holdfast.window.window import Window

__all__ = [
    "Budget",
    "BudgetPolicy",
    "CacheAware",
    "ContextUsage",
    "Estimate",
    "Evict",
    "Group",
    "Hybrid",
    "Item",
    "Ledger",
    "Observe",
    "Plan",
    "Policy",
    "Room",
    "Situation",
    "Step",
    "Summarize",
    "Truncate",
    "TurnUsage",
    "View",
    "Window",
    "answer_tokens",
    "apply",
    "fitting",
    "max_tokens",
    "recover",
    "result_limit",
]

_HOMES = {
    "Budget": "budget",
    "BudgetPolicy": "budget_policy",
    "CacheAware": "cache_aware",
    "ContextUsage": "accounts",
    "Estimate": "known",
    "Evict": "evict",
    "Group": "view",
    "Hybrid": "hybrid",
    "Item": "view",
    "Ledger": "ledger",
    "Observe": "observe",
    "Plan": "plan",
    "Policy": "plan",
    "Room": "budget",
    "Situation": "situation",
    "Step": "plan",
    "Summarize": "summarize",
    "Truncate": "truncate",
    "TurnUsage": "accounts",
    "View": "view",
    "Window": "window",
    "answer_tokens": "budget",
    "apply": "plan",
    "fitting": "fit",
    "max_tokens": "budget",
    "recover": "overflow",
    "result_limit": "budget",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast.window' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"holdfast.window.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
