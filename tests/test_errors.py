"""The errors: the tree as designed, facts in `args`, words that end with the way out."""

import copy
import inspect
import pickle
import re

import pytest

from holdfast import errors

# The tree, name by name.
TREE = {
    "HoldfastError": "Exception",
    "StoreError": "HoldfastError",
    "SessionNotFound": "StoreError",
    "SessionExpired": "StoreError",
    "DuplicateSession": "StoreError",
    "Conflict": "StoreError",
    "LeaseLost": "StoreError",
    "Busy": "StoreError",
    "OnceMismatch": "StoreError",
    "StoreFull": "StoreError",
    "StoreUnavailable": "StoreError",
    "StoreClosed": "StoreUnavailable",
    "Corrupt": "StoreError",
    "FormatTooNew": "StoreError",
    "Unsupported": "StoreError",
    "NotCopied": "StoreError",
    "ProviderError": "HoldfastError",
    "AuthError": "ProviderError",
    "RateLimited": "ProviderError",
    "Overloaded": "ProviderError",
    "ContextOverflow": "ProviderError",
    "OutputLimit": "ProviderError",
    "InvalidRequest": "ProviderError",
    "ContentBlocked": "ProviderError",
    "ConnectionFailed": "ProviderError",
    "ProtocolError": "ProviderError",
    "TurnError": "HoldfastError",
    "ToolUnavailable": "TurnError",
    "LimitReached": "TurnError",
    "DoesNotFit": "TurnError",
    "InvalidInput": "HoldfastError",
    "TooLarge": "HoldfastError",
    "Cancelled": "HoldfastError",
}

PROVIDER_FACTS = ("said-this", "acme-vendor", 418, "req-7731", 2.5)

# name -> all the facts, and what the end of the sentence has to say. The three classes in the
# middle of the tree are never raised by themselves; they take any words.
FACTS = {
    "HoldfastError": (("some words",), ""),
    "StoreError": (("some words",), ""),
    "TurnError": (("some words",), ""),
    "SessionNotFound": (("cli:direct",), r"create|check"),
    "SessionExpired": (("cli:direct", "2026-01-02T03:04:05Z"), r"renew|start anew"),
    "DuplicateSession": (("cli:direct",), r"load"),
    "Conflict": (("cli:direct", 41, 47, ""), r"refresh.*append"),
    "LeaseLost": (("cli:direct", "worker-9"), r"refresh|stop|wait"),
    "Busy": (("cli:direct", "worker-9"), r"wait|cancel"),
    "OnceMismatch": (("cli:direct", "order-66"), r"new|other"),
    "StoreFull": (("chats.db", "disk quota"), r"free|room|space"),
    "StoreUnavailable": (("chats.db", "locked by X"), r"again"),
    "StoreClosed": (("chats.db", "the store is closed"), r"async with"),
    "Corrupt": (("chats.db:12", "digest differs"), r"verify|restore"),
    "FormatTooNew": (("chats.db", 93, 7), r"update"),
    "Unsupported": (("search-by-word", "jsonl-store"), r"use|store"),
    "NotCopied": ((("session-one",), "copied-3"), r"copy again"),
    "ProviderError": (PROVIDER_FACTS, r"see what the service said"),
    "AuthError": (PROVIDER_FACTS, r"check the key"),
    "RateLimited": (PROVIDER_FACTS, r"wait|try again"),
    "Overloaded": (PROVIDER_FACTS, r"try again later"),
    "ContextOverflow": ((*PROVIDER_FACTS, 9001, 8192), r"send less|larger window"),
    "OutputLimit": (PROVIDER_FACTS, r"max_tokens|ask for less"),
    "InvalidRequest": (PROVIDER_FACTS, r"mend the request"),
    "ContentBlocked": (PROVIDER_FACTS, r"change the input"),
    "ConnectionFailed": (PROVIDER_FACTS, r"check the network|try again"),
    "ProtocolError": (PROVIDER_FACTS, r"check the address|something else"),
    "ToolUnavailable": (("search_web",), r"tools"),
    "LimitReached": (("rounds_max", 12, 13), r"raise|resume"),
    "DoesNotFit": (("the system prompt", 9001, 8192), r"shorten"),
    "InvalidInput": (("tool_calls", "holds no ToolCall"), ""),  # why it is bad says what is good
    "TooLarge": (("the key", 2048, 1024), r"split|raise|shorten|at most|limit"),
    "Cancelled": (("the user left",), ""),  # wanted, so there is nothing to get out of
}


def shown(name):
    """The facts that the sentence has to show."""
    if issubclass(getattr(errors, name), errors.ProviderError):
        return PROVIDER_FACTS[:4]  # the rest may stay in the attributes
    if name == "NotCopied":
        return FACTS[name][0][0]  # all that was copied is too much for a sentence
    return [fact for fact in FACTS[name][0] if fact != ""]


def build(name):
    return getattr(errors, name)(*FACTS[name][0])


def parameters(cls):
    names = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return [p for p in names if p.kind is p.POSITIONAL_OR_KEYWORD]


def descendants(cls):
    found = {cls}
    for child in cls.__subclasses__():
        found |= descendants(child)
    return found


def test_the_tree_is_the_one_that_was_designed():
    """Every designed class is there with its designed parent, and there is no other class."""
    ours = [c for c in descendants(errors.HoldfastError) if c.__module__.startswith("holdfast")]

    assert {c.__name__: c.__bases__[0].__name__ for c in ours} == TREE
    assert all(c is getattr(errors, c.__name__) for c in ours)


def test_the_module_exports_errors_and_nothing_else():
    """One obvious address each: a public name of holdfast.errors is an error of the tree."""
    assert {name for name in vars(errors) if not name.startswith("_")} == set(TREE)


def test_the_table_of_facts_covers_the_tree():
    """A control of this file: a class added later cannot go untested."""
    assert set(FACTS) == set(TREE)


@pytest.mark.parametrize("name", ["InvalidInput", "TooLarge"])
def test_errors_about_an_argument_are_value_errors_too(name):
    """Who writes plain Python catches ValueError, and finds these among them."""
    cls = getattr(errors, name)

    assert issubclass(cls, ValueError)
    assert {n for n in TREE if issubclass(getattr(errors, n), ValueError)} == {
        "InvalidInput",
        "TooLarge",
    }


def test_a_conflict_about_a_field_names_the_field_and_no_values():
    """What a record holds may be private; which field it was is enough to go on."""
    words = str(errors.Conflict("cli:direct", 0, 0, "metadata.colour"))

    assert "metadata.colour" in words and "cli:direct" in words
    assert "refresh" in words and "entry" not in words


@pytest.mark.parametrize("name", TREE)
def test_every_error_says_in_its_docstring_what_happened(name):
    """No class is without a docstring of its own."""
    own = vars(getattr(errors, name)).get("__doc__")

    assert own
    assert own.strip().endswith(".")


@pytest.mark.parametrize("name", TREE)
def test_facts_are_in_args_in_the_order_of_the_constructor(name):
    """Facts go into `args` as they were given, and each has an attribute of its name."""
    cls, facts = getattr(errors, name), FACTS[name][0]

    error = cls(*facts)

    assert error.args == facts
    if cls.__init__ is not Exception.__init__ and parameters(cls):
        assert len(parameters(cls)) == len(facts)
        for parameter, fact in zip(parameters(cls), facts, strict=True):
            assert getattr(error, parameter.name) == fact
        by_name = cls(**{p.name: f for p, f in zip(parameters(cls), facts, strict=True)})
        assert by_name.args == facts


@pytest.mark.parametrize("name", TREE)
@pytest.mark.parametrize("few", [False, True], ids=["all-facts", "only-the-needed"])
def test_every_error_pickles_and_copies(name, few):
    """A copy has the same class, args, attributes and words, whichever way it was made."""
    cls, facts = getattr(errors, name), FACTS[name][0]
    if few:
        facts = facts[: sum(p.default is p.empty for p in parameters(cls))]
    error = cls(*facts)
    copies = [pickle.loads(pickle.dumps(error, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]

    copies += [copy.copy(error), copy.deepcopy(error)]

    for twin in copies:
        assert type(twin) is cls
        assert twin.args == error.args
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("name", TREE)
def test_the_words_name_the_facts(name):
    """The sentence shows what it is about, so that a log line is enough to act on."""
    words = str(build(name))

    for fact in shown(name):
        assert str(fact) in words


@pytest.mark.parametrize("name", [name for name in TREE if FACTS[name][1]])
def test_the_words_end_with_the_way_out(name):
    """What follows the last fact tells the reader what can be done next."""
    words = str(build(name))

    start = max(words.rfind(str(fact)) + len(str(fact)) for fact in shown(name))
    assert re.search(FACTS[name][1], words[start:]), words
    assert not words.endswith((":", ";", ",", " ", "."))


def test_a_rate_limit_says_how_long_to_wait():
    """`retry_after_s` is a fact that the reader needs, so it is in the words."""
    words = str(errors.RateLimited("slow down", "acme", 429, "req-1", 2.5))

    assert "2.5" in words


@pytest.mark.parametrize("name", TREE)
@pytest.mark.parametrize(
    "hostile",
    ["%s %d", "{0.__class__}", "${jndi:x}", "{{7*7}}", "\ud800", "\0", "a\nb"],
    ids=["percent", "format", "jndi", "template", "surrogate", "nul", "newline"],
)
def test_facts_are_never_read_as_a_format(name, hostile):
    """Bad inputs 50: an error about hostile text is still an error, and shows it as text."""
    cls = getattr(errors, name)
    facts = [hostile if isinstance(f, str) else f for f in FACTS[name][0]]

    words = str(cls(*facts))

    assert isinstance(words, str)
    assert "49" not in words
    assert "<class" not in words


def test_an_error_without_its_optional_facts_still_reads_as_a_sentence():
    """Left out facts leave no holes: no None, no empty brackets, no doubled marks."""
    for name in TREE:
        cls = getattr(errors, name)
        count = sum(p.default is p.empty for p in parameters(cls))

        words = str(cls(*FACTS[name][0][:count]))

        assert "None" not in words, name
        assert not re.search(r"\(\s*\)|::|: :|;;|  |^[:;, ]|''", words), f"{name}: {words!r}"
