"""How servers that speak Chat Completions differ: pure data, chosen by the host of the base URL.

The wire is OpenAI's, and dozens of services speak it with an accent. A `Dialect` has what our
requests and the end of a stream depend on; `dialect_of` finds the one of a server, and whoever
knows better passes another. A server that nobody here knows is spoken to in the form that most
of them take.
"""

import hashlib
import re
from typing import Literal, NamedTuple

from holdfast.providers.hosts import by_host
from holdfast.providers.names import Spelling

_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")
_NINE = re.compile(r"[a-zA-Z0-9]{9}")


class _NineLetters(Spelling):
    """Mistral: "Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9."."""

    def fitted_apart(self, name: str) -> str:
        if _NINE.fullmatch(name):
            return name
        return hashlib.blake2b(name.encode(), digest_size=5).hexdigest()[:9]


SHORT_ID = Spelling(_UNPRINTABLE, 40)  # "string too long. Expected a string with maximum length 40"
LONG_ID = Spelling(_UNPRINTABLE, 128)
NINE_LETTERS = _NineLetters(re.compile(r"[^a-zA-Z0-9]"), 9)


class Dialect(NamedTuple):
    """How a server speaks.

    max_tokens        the field for the most that may be written
    system_role       who gives instructions: system, developer, or user where there is neither
    call_id           how the id of a call may be spelled
    thinking          when thinking goes back to the model that thought it, in the field in which
                      it came: never, with calls (in a tool loop), or always
    no_thinking       what stands in `reasoning_content` of a message with calls that has none,
                      where the server refuses it otherwise
    effort            how to say how hard to think: `reasoning_effort` (a word), `reasoning` (an
                      object), `thinking` (on or off), `enable_thinking` (on or off, and a budget),
                      `thinking_budget` (tokens)
    is_openai         OpenAI's models are there under their names, which tell what they take
    has_usage_option  takes `stream_options`; others always tell the tokens, or refuse the field
    has_schema        takes a JSON Schema for the answer; others take only "some JSON", and are
                      told the schema in words
    has_parts         takes a list of texts; others take one text
    has_images        takes pictures
    has_files         takes documents and sound
    has_file_urls     takes the address of a document
    has_names         takes the names of participants
    has_cache_key     takes `prompt_cache_key`
    has_system_role   takes system messages behind the first one
    last_is_user      refuses a conversation that ends with the assistant, or answers it anew:
                      only some servers go on with the words that are there
    alternates        user and assistant take turns, and the user begins
    joins_choices     one answer may come in several choices: the words in one, each call in another
    ends              what ends a stream (see `openai_chat_reader`)
    """

    max_tokens: str = "max_tokens"
    system_role: str = "system"
    call_id: Spelling = LONG_ID
    thinking: Literal["never", "calls", "always"] = "always"
    no_thinking: str | None = None
    effort: Literal[
        "reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget"
    ] = "reasoning_effort"
    is_openai: bool = False
    has_usage_option: bool = True
    has_schema: bool = True
    has_parts: bool = True
    has_images: bool = True
    has_files: bool = False
    has_file_urls: bool = False
    has_names: bool = False
    has_cache_key: bool = False
    has_system_role: bool = True
    last_is_user: bool = False
    alternates: bool = False
    joins_choices: bool = False
    ends: Literal["done", "usage", "finish"] = "done"


# Nobody's in particular: chat templates want the system's words first, and not every server
# writes [DONE].
UNKNOWN = Dialect(has_system_role=False, ends="usage", call_id=SHORT_ID)
AZURE = Dialect(
    max_tokens="max_completion_tokens",
    call_id=SHORT_ID,
    thinking="never",
    is_openai=True,
    has_files=True,
    has_names=True,
    last_is_user=True,
)
OPENAI = AZURE._replace(has_cache_key=True)
# Models of many makers: of the limit on tokens, OpenAI's that reason know only the newer name.
GITHUB = AZURE._replace(max_tokens="max_tokens", has_parts=False, has_files=False, has_names=False)
COPILOT = GITHUB._replace(thinking="always", joins_choices=True)
ROUTER = Dialect(effort="reasoning", has_files=True, has_names=True)
OPENROUTER = ROUTER._replace(has_file_urls=True)
DEEPSEEK = Dialect(
    thinking="calls",  # its older models refuse it elsewhere, its newer ones miss it there
    no_thinking="",
    effort="thinking",
    has_schema=False,
    has_parts=False,
    has_images=False,
)
# An empty text counts as missing there, so a space says that there was no thought.
MOONSHOT = Dialect(no_thinking=" ", effort="thinking", has_schema=False)
MISTRAL = Dialect(
    call_id=NINE_LETTERS,
    thinking="never",  # it is a block of the content there, and the history may do without
    has_usage_option=False,
    last_is_user=True,
)
PERPLEXITY = Dialect(
    thinking="never",
    has_usage_option=False,
    has_system_role=False,
    last_is_user=True,
    alternates=True,
    ends="usage",
)

# By the end of the host's name.
HOSTS: dict[str, Dialect] = {
    "api.openai.com": OPENAI,
    "openai.azure.com": AZURE,
    "cognitiveservices.azure.com": AZURE,
    "services.ai.azure.com": AZURE,
    "models.github.ai": GITHUB,
    "models.inference.ai.azure.com": GITHUB,
    "githubcopilot.com": COPILOT,
    "openrouter.ai": OPENROUTER,
    "ai-gateway.vercel.sh": ROUTER,
    "snowflakecomputing.com": ROUTER._replace(has_files=False, ends="usage"),
    "api.deepseek.com": DEEPSEEK,
    "api.moonshot.ai": MOONSHOT,
    "api.moonshot.cn": MOONSHOT,
    "api.z.ai": Dialect(effort="thinking", has_schema=False),
    "open.bigmodel.cn": Dialect(effort="thinking", has_schema=False),
    "aliyuncs.com": Dialect(effort="enable_thinking"),
    "api.mistral.ai": MISTRAL,
    "api.perplexity.ai": PERPLEXITY,
    "api.groq.com": Dialect(max_tokens="max_completion_tokens"),
    "api.cerebras.ai": Dialect(max_tokens="max_completion_tokens", ends="usage"),
    "api.x.ai": Dialect(),
    "api.together.xyz": Dialect(),
    "api.fireworks.ai": Dialect(),
}


def dialect_of(base_url: str | None) -> Dialect:
    """The dialect of the server at this address; OpenAI's where none is given."""
    return OPENAI if base_url is None else by_host(HOSTS, base_url, UNKNOWN)
