"""The Messages API of Anthropic, and of whoever speaks it.

`to_wire` puts a request together from what was made of each message (`anthropic_blocks.py`). The
prompt stays the same from one request to the next as far as it can: tools are sorted by name,
arguments go out as they were written, breakpoints follow from the messages (`anthropic_cache.py`).

What the model takes is in `anthropic_models.py`. Where two wishes do not go together:

- With thinking there is no temperature, and newer models take none at all. Above 1 it is 1.
- A budget for thinking stays below `max_tokens`; where there is no room for one, nobody thinks.
- While tools run, thinking needs the thought that the turn began with. If that had to be
  stripped, this request goes without thinking.
- A model that knows no schema is told it in the system instruction.

`settings.extra["anthropic"]` goes into the body as it is: objects are merged into ours, `tools`
stand behind ours, and `betas` become a header. A breakpoint that it holds counts as one of the
four.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

import msgspec

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.notes import CONTINUE
from holdfast.providers import anthropic_blocks, anthropic_cache, anthropic_schema
from holdfast.providers.answer import Answer
from holdfast.providers.anthropic_dialect import CLAUDE, AnthropicDialect
from holdfast.providers.anthropic_fragments import Fragment, joined, without_halves
from holdfast.providers.anthropic_models import Thought, Traits
from holdfast.providers.anthropic_reader import AnthropicReader
from holdfast.providers.fields import Object, encode
from holdfast.providers.names import Spelling
from holdfast.providers.prepare import Rules, takes_no_media
from holdfast.providers.wire import Ask, Reader, Wire, merge, wanted

VERSION = "2023-06-01"
BETA_OF_HOUR = "extended-cache-ttl-2025-04-11"
# "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
TOOL_NAME = Spelling(re.compile(r"[^a-zA-Z0-9_-]"), 128)
CALL_ID = Spelling(re.compile(r"[^a-zA-Z0-9_-]"), 512)  # no limit is published; ids are short
BY_SCHEMA = "Answer with JSON alone, without any other words, that follows this JSON Schema:\n"
# What a request for the number of its tokens takes of the other.
_COUNTED = frozenset(
    (
        *("model", "messages", "system", "tools", "tool_choice", "thinking", "mcp_servers"),
        *("context_management", "cache_control", "output_config"),
    )
)


class AnthropicWire(Wire):
    """The Messages API, for one model.

    cache              whether breakpoints are set, else as the service takes them; `ttl` is how
                       long: "5m", or "1h" at twice the price for writing
    thinking           whether the server knows thinking at all
    output_tokens_max  the most that the model writes, if that is less than we would ask for
    betas              names of what the vendor lets try (the header anthropic-beta)
    dialect            how the service differs from Anthropic's own
    """

    vendor = "anthropic"
    api = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        vendor: str | None = None,
        cache: bool | None = None,
        ttl: str = "5m",
        thinking: bool = True,
        output_tokens_max: int | None = None,
        betas: Sequence[str] = (),
        dialect: AnthropicDialect = CLAUDE,
    ) -> None:
        super().__init__(model, vendor=vendor)
        if ttl not in anthropic_cache.TTLS:
            known = " or ".join(anthropic_cache.TTLS)
            raise InvalidInput("ttl", f"is {known}, not {ttl!r}")
        self._vendor = vendor or self.vendor
        self.dialect = dialect
        self._cache = cache = dialect.has_cache if cache is None else cache
        self._ttl = ttl
        self._thinks = thinking
        self._output_tokens_max = output_tokens_max
        self._betas = (*betas, *([BETA_OF_HOUR] if cache and ttl == "1h" else []))
        self._traits = self.traits_of(model)
        self.rules = Rules(
            vendor=self._vendor,
            tool_name=TOOL_NAME,
            call_id=CALL_ID,
            first_is_user=True,
            last_is_user=True,
            has_blank_text=False,
            keeps_blank_between=True,
            keeps_thinking=thinking,
            binds_prefix=self._traits.binds_prefix,
            takes=anthropic_blocks.takes if dialect.has_media else takes_no_media,
            takes_in_failure=False,
        )

    @staticmethod
    def traits_of(model: str) -> Traits:
        """What the model of this name takes."""
        return Traits.of(model)

    def path(self, ask: Ask) -> str:  # noqa: ARG002 - others look at it
        return "/v1/messages"

    def headers(self, ask: Ask) -> dict[str, str]:
        headers = {"anthropic-version": VERSION}
        betas = (*self._betas, *wanted(ask, self._vendor).get("betas", ()))
        if betas:
            headers["anthropic-beta"] = ",".join(dict.fromkeys(map(str, betas)))
        return headers

    def reader(self, answer: Answer) -> Reader:
        return AnthropicReader(answer, self._vendor)

    def fragment(self, message: Message) -> Fragment:
        signs = self.dialect.signs
        return anthropic_blocks.fragment(message, self.name, self._vendor, signs=signs)

    def to_wire(self, ask: Ask) -> Object:
        fragments = _ended(list(ask.prepared.fragments))
        thought = self._thought(ask, fragments)
        body: Object = {"model": self.model, "max_tokens": thought.tokens_max, "messages": None}
        if tools := sorted(ask.prepared.tools, key=lambda tool: tool.name):
            body["tools"] = [anthropic_schema.of_tool(tool) for tool in tools]
        if system := self._system(ask):
            body["system"] = [{"type": "text", "text": system}]
        if thought.thinking is not None:
            body["thinking"] = thought.thinking
        if output := self._output(ask, thought):
            body["output_config"] = output
        temperature = ask.settings.temperature
        if temperature is not None and self._takes_temperature(thought):
            body["temperature"] = min(temperature, 1.0)
        if ask.stream:
            body["stream"] = True
        merge(
            body,
            {name: value for name, value in wanted(ask, self._vendor).items() if name != "betas"},
        )
        if body["messages"] is None:
            body["messages"] = msgspec.Raw(joined(self._marked(body, fragments)))
        return body

    def to_count(self, ask: Ask) -> Object:
        """The body of a request for the number of tokens (`/v1/messages/count_tokens`)."""
        return {name: value for name, value in self.to_wire(ask).items() if name in _COUNTED}

    # What goes into the body

    def _thought(self, ask: Ask, fragments: Sequence[Fragment]) -> Thought:
        if not self._thinks:
            off = ask.settings.replace(thinking=None)
            return Traits.of("").thought(off, self._output_tokens_max)
        thought = self._traits.thought(ask.settings, self._output_tokens_max)
        is_budgeted = thought.thinking is not None and thought.thinking["type"] == "enabled"
        if is_budgeted and not _began_with_thinking(fragments):
            return thought._replace(thinking=None)
        return thought

    def _system(self, ask: Ask) -> str | None:
        system = ask.prepared.system
        if system is not None and not system.strip():
            system = None
        if ask.schema is None or self._has_schema:
            return system
        told = BY_SCHEMA + encode(ask.schema)
        return f"{system}\n\n{told}" if system else told

    def _output(self, ask: Ask, thought: Thought) -> Object:
        output: Object = {}
        if thought.effort is not None:
            output["effort"] = thought.effort
        if ask.schema is not None and self._has_schema:
            schema = anthropic_schema.of_answer(ask.schema)
            output["format"] = {"type": "json_schema", "schema": schema}
        return output

    @property
    def _has_schema(self) -> bool:
        return self._traits.has_schema

    def _takes_temperature(self, thought: Thought) -> bool:
        is_thinking = thought.thinking is not None and thought.thinking["type"] != "disabled"
        return self._traits.takes_temperature and not is_thinking

    def _marked(self, body: Object, fragments: Sequence[Fragment]) -> Sequence[Fragment]:
        """Set the breakpoints: one behind tools and system, the others in the messages."""
        if not self._cache:
            return fragments
        count = anthropic_cache.MARKS_MAX - _marks_in(body)
        head = body.get("system") or body.get("tools")
        if isinstance(head, list) and head and count > 0 and "cache_control" not in head[-1]:
            head[-1] = {**head[-1], "cache_control": anthropic_cache.control(self._ttl)}
            count -= 1
        return anthropic_cache.marked(fragments, self._ttl, max(count, 0))


def _ended(fragments: list[Fragment]) -> list[Fragment]:
    """The user has the last word, unless a server's tool is still at work."""
    fragments = without_halves(fragments)
    last = next((each for each in reversed(fragments) if each.blocks), None)
    if last is not None and (last.role == "user" or _is_paused(last)):
        return fragments
    said = msgspec.json.encode({"type": "text", "text": CONTINUE})
    return without_halves([*fragments, Fragment.of("user", (said,), "x", is_firm=False)])


def _is_paused(last: Fragment) -> bool:
    """Whether an answer can go on from here: words that it goes on from end in no white space."""
    if "s" not in last.kinds or last.kinds[-1] == "b":
        return False
    words: str = msgspec.json.decode(last.blocks[-1]).get("text", "")
    return words == words.rstrip()


def _began_with_thinking(fragments: Sequence[Fragment]) -> bool:
    """Whether the turn whose tools are running, if one is, began with a thought.

    "When `thinking` is enabled, a final `assistant` message must start with a thinking block
    (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    """
    first = ""
    spoken = (each for each in reversed(fragments) if each.blocks)
    for role, group in groupby(spoken, key=lambda each: each.role):
        kinds = "".join(each.kinds for each in reversed(list(group)))
        if role == "assistant":
            first = kinds
        elif "r" not in kinds:
            break
    return "c" not in first or first.startswith("t")


def _marks_in(body: Object) -> int:
    """How many breakpoints the caller has set."""
    holders = [body, *(body.get("tools") or ()), *(body.get("system") or ())]
    return sum(isinstance(each, Mapping) and "cache_control" in each for each in holders)
