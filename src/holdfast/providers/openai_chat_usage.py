"""Tokens as Chat Completions count them, in all the places where servers put them."""

from holdfast.providers.fields import Object, count_of


def counts(usage: Object) -> dict[str, int | None]:
    """The fields of a `Usage`: the whole prompt, and everything written, reasoning included."""
    prompt = _object(usage, "prompt_tokens_details")
    written = _object(usage, "completion_tokens_details")
    output = count_of(usage, "completion_tokens")
    reasoning = _first((written, "reasoning_tokens"), (usage, "reasoning_tokens"))
    input, total = count_of(usage, "prompt_tokens"), count_of(usage, "total_tokens")
    if (
        reasoning
        and input is not None
        and output is not None
        and total == input + output + reasoning
    ):
        output += reasoning  # xAI counts it apart
    return {
        "input": input,
        "output": output,
        "cache_read": _first(
            (prompt, "cached_tokens"),
            (usage, "prompt_cache_hit_tokens"),  # DeepSeek
            (usage, "cached_tokens"),  # Moonshot
            (usage, "cache_read_input_tokens"),
        ),
        "cache_write": _first(
            (prompt, "cache_write_tokens"), (usage, "cache_creation_input_tokens")
        ),
        "reasoning": reasoning,
    }


def _object(usage: Object, name: str) -> Object:
    value = usage.get(name)
    return value if type(value) is dict else {}


def _first(*places: tuple[Object, str]) -> int | None:
    found = (count_of(holder, name) for holder, name in places)
    return next((count for count in found if count is not None), None)
