"""How the program is started: what stands on its command line, and in its environment.

A command line can be read by every user of the machine, so nothing that is said stands on it: the
system prompt is in a file, messages go to the standard input. What can be seen is which model is
asked, in which mode, the id of the program's own session, and the names of two folders.

Values are joined to their options (`--model=NAME`): a value that begins with a dash is no option.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.providers.anthropic_models import Thought, Traits
from holdfast.providers.claude_cli.wire import Mode
from holdfast.providers.credentials import Secret
from holdfast.providers.options import checked_count
from holdfast.settings import Settings

BASE = (
    *("--print", "--output-format=stream-json", "--verbose", "--include-partial-messages"),
    "--input-format=stream-json",
)
# Ours are described in the system prompt; the program has none, and loads nobody's settings.
PASSTHROUGH = ("--tools=", "--strict-mcp-config", "--max-turns=1")
SESSION_ID = re.compile(r"[\w-]{1,128}")
SOURCES = ("user", "project", "local")
# A program that believes it was started by itself refuses to work.
NOT_INHERITED = ("CLAUDECODE",)
PRIVATE = re.compile(r"key|token|secret|password|auth|credential", re.IGNORECASE)
# Of the environment that is handed on: what may not stand in an error.
SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


class Options(NamedTuple):
    """What a provider was opened with, as far as the program is told."""

    mode: Mode = "passthrough"
    permission_mode: str | None = None
    max_turns: int | None = None
    setting_sources: tuple[str, ...] | None = None
    env: Mapping[str, Secret] = {}
    arguments: tuple[str, ...] = ()

    @property
    def is_delegated(self) -> bool:
        return self.mode == "delegated"

    def checked(self) -> "Options":
        """Themselves, if they go together."""
        if not self.is_delegated:
            for name in ("permission_mode", "max_turns"):
                if getattr(self, name) is not None:
                    raise InvalidInput(name, 'is for mode="delegated", where the program has tools')
        if self.max_turns is not None:
            checked_count("max_turns", self.max_turns)
        for source in self.setting_sources or ():
            if source not in SOURCES:
                raise InvalidInput("setting_sources", f"are of {', '.join(SOURCES)}")
        return self


def arguments(
    options: Options,
    model: str,
    settings: Settings,
    *,
    system: str | None,
    session: str | None,
    is_kept: bool,
) -> list[str]:
    """The command line behind the program's name.

    system   the file with the system prompt, if there is one
    session  the id of the session to go on with
    is_kept  whether the program is to keep this session
    """
    line = [*BASE, f"--model={model}"]
    if options.is_delegated:
        line += [f"--append-system-prompt-file={system}"] if system else []
        line += [f"--permission-mode={options.permission_mode}"] if options.permission_mode else []
        line += [f"--max-turns={options.max_turns}"] if options.max_turns else []
    else:
        line += [*PASSTHROUGH, f"--system-prompt-file={system}"]
    sources = options.setting_sources
    if sources is not None or not options.is_delegated:
        line.append(f"--setting-sources={','.join(sources or ())}")
    if effort := _thought(model, settings).effort:
        line.append(f"--effort={effort}")
    line += [f"--resume={session}"] if session else []
    line += [] if is_kept else ["--no-session-persistence"]
    return [*line, *options.arguments]


def environment(
    options: Options, model: str, settings: Settings, key: Secret | None = None
) -> dict[str, str]:
    """The environment of the program: that of this process, and what is told there alone."""
    told = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    told["CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"] = "1"  # words would be said twice
    if not options.is_delegated:
        told["CLAUDE_CODE_DISABLE_ATTACHMENTS"] = "1"
        told["CLAUDE_CODE_MAX_RETRIES"] = "0"  # we try again, and tell of it
    if settings.max_tokens is not None:
        told["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(max(settings.max_tokens, 1))
    if settings.thinking is not None:
        thought = _thought(model, settings)
        budget = (thought.thinking or {}).get("budget_tokens")
        if budget is not None or thought.effort is None:  # off, or there is no room for it
            told["MAX_THINKING_TOKENS"] = str(budget or 0)
    if key is not None:
        told["ANTHROPIC_API_KEY"] = key.reveal()
    return told | {name: value.reveal() for name, value in options.env.items()}


def _thought(model: str, settings: Settings) -> Thought:
    """As the Messages API would be asked: a budget, or an effort. `sonnet` is a new Claude."""
    name = model if "claude" in model.lower() else f"claude-{model}"
    return Traits.of(name).thought(settings, None)


def checked_env(env: Any) -> dict[str, Secret]:
    """Variables for the program; none of their values is shown anywhere."""
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise InvalidInput("env", "is a dict of names and values")
    for name, value in env.items():
        is_name = isinstance(name, str) and name and not set("=\0") & set(name)
        if not is_name or not isinstance(value, str | Secret) or "\0" in _bare(value):
            raise InvalidInput(f"env {name!r:.80}", "is a name, and a text without NUL")
    return {name: Secret(_bare(value)) for name, value in env.items()}


def checked_texts(name: str, given: Any) -> tuple[str, ...]:
    """Several texts that a command line can hold."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput(name, "is a list of texts")
    for each in given:
        if not isinstance(each, str) or "\0" in each:
            raise InvalidInput(name, "is a list of texts without NUL")
    return tuple(given)


def _bare(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value
