"""Models: the table, the ways a name is spelled, and what is said of a model nobody knows."""

import json
import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Usage
from holdfast.errors import InvalidInput
from holdfast.providers import model_table
from holdfast.providers.models import CONTEXT_WITHOUT_PROVIDER, Model, model_of, table
from holdfast.providers.tokens import FRAMES, counter
from holdfast.usage import Prices

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"


# ---- names ----


@pytest.mark.parametrize(
    ("vendor", "spelled", "name"),
    [
        ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("anthropic", "claude-sonnet-4-0", "claude-sonnet-4"),
        ("anthropic", "claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("anthropic", "claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("openai", "anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
        ("openai", "anthropic/claude-sonnet-4.6:thinking", "claude-sonnet-4-6"),
        ("openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("openai", "openai/gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai", "gpt-5", "gpt-5"),
        ("openai", "gpt-5.6-sol", "gpt-5.6-sol"),
        ("openai", "gpt-4-0613", "gpt-4"),
        ("openai", "gpt-4-vision-preview", "gpt-4-vision"),
        ("azure", "gpt-35-turbo", "gpt-35-turbo"),
        ("google", "models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("google", "publishers/google/models/gemini-3-flash-preview", "gemini-3-flash"),
        ("google", "gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("google", "gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("google", " Gemini-2.5-Flash-Lite ", "gemini-2.5-flash-lite"),
    ],
)
def test_a_name_is_found_as_vendors_and_resellers_spell_it(vendor, spelled, name):
    model = model_of(vendor, spelled)

    assert (model.name, model.is_known) == (name, True)


@pytest.mark.parametrize(
    ("name", "context", "output"),
    [("gpt-3.5-turbo-0613", 4_096, 4_096), ("gpt-4o-2024-05-13", 128_000, 4_096)],
)
def test_a_snapshot_that_differs_has_its_own_row(name, context, output):
    model = model_of("openai", name)

    assert (model.name, model.context, model.output) == (name, context, output)


@pytest.mark.parametrize(
    ("vendor", "name", "context"),
    [
        ("anthropic", "claude-opus-9", 200_000),
        ("anthropic", "there-is-no-such-model", 200_000),
        ("openai", "gpt-5.2-proo", 128_000),
        ("azure", "our-deployment", 128_000),
        ("google", "gemini-3.6-flahs", 1_048_576),
        ("ollama", "llama3.2:3b", 32_768),
        ("", "", 32_768),
    ],
)
def test_an_unknown_model_is_a_cautious_guess_that_says_so(vendor, name, context):
    """A name that begins like a known one is not that one: its limits may differ."""
    model = model_of(vendor, name)

    assert not model.is_known
    assert (model.vendor, model.name, model.context) == (vendor, name, context)
    assert model.prices is None


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("claude-opus-9", "claude-4.7"),
        ("gpt-9", "o200k"),
        ("gpt-oss:120b", "o200k"),
        ("gemini-9-pro", "gemini"),
        ("gemma3:1b", "gemma"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen"),
        ("deepseek-ai/DeepSeek-R1", "deepseek"),
        ("mistral-small-latest", "mistral"),
        ("moonshotai/kimi-k2.5", "kimi"),
        ("zai/GLM-5.2", "glm"),
        ("sonar", "other"),
    ],
)
def test_the_family_of_an_unknown_model_is_told_by_its_name(name, family):
    assert model_of("somebody", name).family == family


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_name_has_an_answer(vendor, name):
    model = model_of(vendor, name)

    assert model.context > 0 and model.output > 0


# ---- facts ----


def test_the_table_is_dated_and_complete():
    models = table()

    assert date(2026, 1, 1) < model_table.AS_OF
    assert len(models) > 80
    for name, model in models.items():
        assert model.name == name and model.is_known
        assert model.output > 0
        # Google limits the prompt alone: an answer may be longer than it.
        assert model.output <= model.context or model.vendor == "google"
        assert model.prompt is None or model.prompt + model.output <= model.context
        assert model.family in FRAMES or model.family == "other"
        assert model_of(model.vendor, name) == model


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        table()["gpt-5"] = None


@pytest.mark.parametrize(
    ("name", "context", "output", "prices"),
    [
        ("claude-sonnet-4-5", 200_000, 64_000, ("3", "15", "0.30", "3.75")),
        ("claude-opus-5-5", 1_000_000, 128_000, ("4", "20", "0.20", "5")),
        ("gpt-5", 400_000, 128_000, ("1.25", "10", "0.125", None)),
        ("gpt-5.6-terra", 1_050_000, 128_000, ("2", "12", "0.20", "2.50")),
        ("gemini-2.5-pro", 1_048_576, 65_536, ("1.25", "10", "0.125", None)),
        ("gemini-1.5-pro", 2_097_152, 8_192, ("1.25", "5", None, None)),
    ],
)
def test_limits_and_prices_are_those_the_vendors_publish(name, context, output, prices):
    model = table()[name]
    amounts = [None if price is None else Decimal(price) for price in prices]
    found = model.prices

    assert (model.context, model.output) == (context, output)
    assert [found.input, found.output, found.cache_read, found.cache_write] == amounts
    assert found.currency == "USD"


@pytest.mark.parametrize(
    ("vendor", "name", "context"),
    [
        ("google", "gemini-2.0-flash-001", 1_048_576),
        ("google", "gemini-of-tomorrow", 1_048_576),
        ("google", "gemini-1.5-pro-002", 2_097_152),
        ("google", "gemini-1.0-pro", 32_760),
        ("anthropic", "claude-3-5-sonnet-latest", 200_000),
        ("anthropic", "claude-of-tomorrow", 200_000),
    ],
)
def test_the_window_of_a_model_by_its_vendor(vendor, name, context):
    """S2-84, S2-91: known or not."""
    assert model_of(vendor, name).context == context


def test_the_facts_of_caching_are_those_the_vendors_publish():
    least = {name: table()[name].cache_min_tokens for name in table()}

    assert least["claude-haiku-4-5"] == least["claude-opus-4-6"] == 4_096
    assert least["claude-opus-4-7"] == least["claude-3-5-haiku"] == 2_048
    assert least["claude-sonnet-4-6"] == least["claude-opus-4-8"] == 1_024
    assert least["claude-opus-5"] == least["claude-fable-5"] == 512
    assert table()["claude-sonnet-5"].cache_ttl_s == 300
    assert table()["gemini-2.5-pro"].cache_ttl_s is None  # not said


def test_a_cost_can_be_told_from_a_model():
    used = Usage(1_000_000, 100_000, 400_000, 0)

    assert used.cost(model_of("anthropic", "claude-sonnet-4-5").prices) == Decimal("3.42")


def test_a_reseller_has_prices_of_its_own_which_are_not_known():
    maker = model_of("anthropic", "claude-haiku-4-5")
    reseller = model_of("openai", "anthropic/claude-haiku-4.5")

    assert reseller.prices is None
    assert (reseller.context, reseller.family) == (maker.context, maker.family)
    assert model_of("azure", "gpt-5-mini").prices == model_of("openai", "gpt-5-mini").prices


def test_without_a_provider_the_limit_is_a_mebitoken():
    """S2-15."""
    assert CONTEXT_WITHOUT_PROVIDER == 1_048_576


# ---- what a caller knows better ----


def test_a_callers_models_come_first_by_name_and_then_by_the_longest_pattern():
    mini = table()["gpt-5-mini"]
    models = {
        "*": mini.replace(name="any"),
        "prod-*": mini.replace(name="prod"),
        "prod-chat": mini,
        "gpt-5": mini.replace(context=1),
    }

    assert model_of("azure", "prod-chat", models) is mini
    assert model_of("azure", "prod-else", models).name == "prod"
    assert model_of("azure", "gpt-5", models).context == 1
    assert model_of("azure", "other", models).name == "any"
    assert model_of("azure", "other", {}).is_known is False


def test_what_is_no_model_is_refused_by_its_name():
    with pytest.raises(InvalidInput, match=r"models\['prod-\*'\] is a Model, not dict"):
        model_of("azure", "prod-chat", {"prod-*": {"context": 8_192}})


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": 0},
        {"output": 0},
        {"context": -1},
        {"context": "many"},
        {"prompt": 1.5},
        {"prices": 3},
        {"name": None},
        {"is_known": 1},
    ],
)
def test_a_model_that_cannot_be_is_refused(wrong):
    good = {"vendor": "us", "name": "ours", "context": 8_192, "output": 1_024}
    assert Model(**good, prices=Prices(input=1, output=2)).is_known

    with pytest.raises(InvalidInput):
        Model(**(good | wrong))


# ---- the recorded traffic, and what importing costs ----


@pytest.mark.skipif(not TRAFFIC.is_dir(), reason=f"no corpus of traffic in {CORPUS}")
@pytest.mark.parametrize(
    ("folder", "vendor"),
    [
        ("anthropic", "anthropic"),
        ("openai-chat", "openai"),
        ("openai-responses", "openai"),
        ("azure-openai", "azure"),
        ("google", "google"),
    ],
)
def test_every_model_that_answered_in_the_recorded_traffic_is_known(folder, vendor):
    seen = set()
    for path in (TRAFFIC / folder).glob("*.json"):
        for exchange in json.loads(path.read_text(encoding="utf-8"))["exchanges"]:
            body, said = exchange["request"]["body"], exchange["request"]["path"]
            inside = re.search(r"models/([^:?]+)", said)
            name = (body or {}).get("model") or (inside and inside[1])
            if name and name != "MODEL" and exchange["response"]["status"] == 200:
                seen.add(name)

    assert len(seen) > 5
    assert [name for name in sorted(seen) if not model_of(vendor, name).is_known] == []


def test_importing_models_and_tokens_loads_no_tokeniser():
    code = (
        "import sys, holdfast.providers.models, holdfast.providers.tokens as t\n"
        "t.counter('o200k'), t.counter('claude-3')\n"
        "print([m for m in ('splintr', 'ctok', 'regex') if m in sys.modules])"
    )
    run = [sys.executable, "-c", code]

    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_family_in_the_table_has_a_counter():
    for family in {model.family for model in table().values()}:
        assert counter(family).count("Hello, world.") > 0
