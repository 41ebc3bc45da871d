"""What differs from one Claude to the next, and the schema of an answer."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.providers import anthropic_schema
from holdfast.providers.anthropic_models import BUDGETS, Traits
from holdfast.settings import Settings

ADAPTIVE = {"type": "adaptive"}


def thought(model, thinking, output_tokens_max=None, **settings):
    return Traits.of(model).thought(Settings(thinking=thinking, **settings), output_tokens_max)


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        # has_schema, is_adaptive, takes_budget, takes_temperature, thinks_unasked, always_thinks
        ("claude-3-7-sonnet-20250219", (0, 0, 1, 1, 0, 0)),
        ("claude-3-haiku-20240307", (0, 0, 1, 1, 0, 0)),
        ("claude-2.1", (0, 0, 1, 1, 0, 0)),
        ("claude-opus-4-20250514", (0, 0, 1, 1, 0, 0)),
        ("claude-opus-4-1-20250805", (0, 0, 1, 1, 0, 0)),
        ("claude-haiku-4-5-20251001", (1, 0, 1, 1, 0, 0)),
        ("anthropic/claude-sonnet-4.6", (1, 1, 1, 1, 0, 0)),
        ("claude-opus-4-7", (1, 1, 0, 0, 0, 0)),
        ("claude-sonnet-5", (1, 1, 0, 0, 1, 0)),
        ("claude-opus-5-20260901", (1, 1, 0, 0, 1, 0)),
        ("claude-fable-5-1", (1, 1, 0, 0, 1, 1)),
        ("claude-opus-5-5", (1, 1, 0, 0, 1, 1)),
        ("claude-mythos-preview", (1, 1, 0, 0, 1, 0)),
        ("qwen3:8b", (0, 0, 1, 1, 0, 0)),
    ],
)
def test_what_a_model_takes_follows_from_its_name(model, facts):
    assert tuple(Traits.of(model)) == tuple(map(bool, facts))


@pytest.mark.parametrize(
    ("model", "thinking", "fields", "effort"),
    [
        ("claude-sonnet-4-5", None, None, None),
        ("claude-sonnet-4-5", "off", None, None),
        ("claude-sonnet-4-5", 0, None, None),
        ("claude-sonnet-4-5", 5_000, {"type": "enabled", "budget_tokens": 5_000}, None),
        ("claude-sonnet-4-5", 10, {"type": "enabled", "budget_tokens": 1_024}, None),
        ("claude-sonnet-4-6", 5_000, {"type": "enabled", "budget_tokens": 5_000}, None),
        ("claude-sonnet-4-6", "low", ADAPTIVE, "low"),
        ("claude-sonnet-4-6", "xhigh", ADAPTIVE, "high"),
        ("claude-sonnet-4-6", "max", ADAPTIVE, "max"),
        ("claude-opus-4-8", "xhigh", ADAPTIVE, "xhigh"),
        ("claude-opus-4-8", "minimal", ADAPTIVE, "low"),
        ("claude-opus-4-8", "off", None, None),
        ("claude-opus-4-8", 3_000, ADAPTIVE, "low"),
        ("claude-opus-4-8", 10_000, ADAPTIVE, "medium"),
        ("claude-opus-4-8", 50_000, ADAPTIVE, "high"),
        ("claude-sonnet-5", None, None, None),
        ("claude-sonnet-5", "off", {"type": "disabled"}, None),
        ("claude-opus-5-5", "off", None, "low"),
        ("claude-opus-5-5", "high", ADAPTIVE, "high"),
    ],
)
def test_how_a_model_is_told_to_think(model, thinking, fields, effort):
    found = thought(model, thinking)

    assert (found.thinking, found.effort) == (fields, effort)


@pytest.mark.parametrize("level", BUDGETS)
def test_a_budget_leaves_room_for_an_answer(level):
    found = thought("claude-sonnet-4-5", level)

    assert found.tokens_max - found.thinking["budget_tokens"] >= 6_000


@pytest.mark.parametrize(
    ("tokens_max", "budget"), [(40_000, 34_000), (5_000, 3_750), (1_100, 1_024), (1_025, 1_024)]
)
def test_a_budget_leaves_a_part_of_what_the_caller_allows(tokens_max, budget):
    """ "`max_tokens` must be greater than `thinking.budget_tokens`": by enough to say something."""
    found = thought("claude-sonnet-4-5", 35_000, max_tokens=tokens_max)

    assert found.tokens_max == tokens_max
    assert found.thinking["budget_tokens"] == budget


def test_nobody_thinks_where_there_is_no_room():
    assert thought("claude-sonnet-4-5", "high", max_tokens=1_024).thinking is None


def test_no_more_is_asked_for_than_the_model_writes():
    assert thought("claude-3-haiku-20240307", None, output_tokens_max=4_096).tokens_max == 4_096
    assert thought("claude-sonnet-4-5", "max", 8_000).thinking["budget_tokens"] < 8_000


@pytest.mark.parametrize(
    ("model", "thinking", "tokens_max"),
    [
        ("claude-sonnet-4-5", None, 8_192),
        ("claude-sonnet-4-5", "medium", 16_000),
        ("claude-sonnet-5", None, 16_000),
        ("claude-sonnet-5", "off", 8_192),
        ("claude-opus-4-8", "high", 16_000),
    ],
)
def test_the_default_for_max_tokens(model, thinking, tokens_max):
    """The API needs one; more if the model thinks (S2-91)."""
    assert thought(model, thinking).tokens_max == tokens_max


def test_a_level_that_nobody_knows_is_refused():
    with pytest.raises(InvalidInput, match="off, minimal, low, medium, high, xhigh, max"):
        thought("claude-sonnet-4-5", "very much")


# The schema of an answer


def test_words_that_the_vendor_does_not_compile_are_told():
    schema = {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "minimum": 0, "description": "How many."},
            "when": {"type": "string", "format": "date"},
            "who": {"type": "string", "format": "phone"},
            "list": {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": 3},
            "one": {"oneOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["minimum"],
        "$defs": {"x": {"type": "object", "properties": {}}},
    }

    found = anthropic_schema.of_answer(schema)

    assert found == {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "description": 'How many.\n{"minimum":0}'},
            "when": {"type": "string", "format": "date"},
            "who": {"type": "string", "description": '{"format":"phone"}'},
            "list": {
                "type": "array",
                "items": {"type": "object", "additionalProperties": False},
                "minItems": 1,
                "description": '{"maxItems":3}',
            },
            "one": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]},
            "map": {
                "type": "object",
                "additionalProperties": False,
                "description": '{"additionalProperties":{"type":"string"}}',
            },
        },
        "required": ["minimum"],
        "$defs": {"x": {"type": "object", "properties": {}, "additionalProperties": False}},
        "additionalProperties": False,
    }
    assert anthropic_schema.of_answer(found) == found
