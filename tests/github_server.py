"""GitHub, as far as `github:` speaks to it: GitHub Models, Copilot, and the exchange of tokens.

    async with asking(copilot, chat("Hello.")) as (provider, github):
        ...                                   # or models: a provider on that path of GitHub's

It gives its answers in turn, the last one again and again; one that is a document is told the
tokens of its prompt. A token for Copilot is good until it is revoked; a prompt that is longer than
the `window` is refused as on the free plan.
"""

import json
import time
from contextlib import asynccontextmanager

from holdfast.providers import open_provider
from loopback import KEEP, Loopback, chunked, whole

PAT = "github_pat_hunter2canary"
OAUTH = "gho_hunter2canary"
EXPIRED = b"IDE token expired: unauthorized: token expired\n"
CATALOGUE = [
    {
        "id": "openai/gpt-4.1",
        "name": "OpenAI GPT-4.1",
        "publisher": "OpenAI",
        "capabilities": ["streaming", "tool-calling"],
        "limits": {"max_input_tokens": 1_048_576, "max_output_tokens": 32_768},
        "rate_limit_tier": "high",
    },
    {
        "id": "microsoft/phi-4",
        "publisher": "Microsoft",
        "limits": {"max_input_tokens": 16_384, "max_output_tokens": 4_096},
    },
    {"id": "ada/no-limits"},
]


def _seat(id, window, prompt, output, **more):
    limits = {"max_context_window_tokens": window, "max_prompt_tokens": prompt}
    limits["max_output_tokens"] = output
    return {"id": id, "capabilities": {"type": "chat", "limits": limits}, **more}


SEATS = [
    _seat("gpt-4.1", 128_000, 111_424, 16_384, policy={"state": "enabled"}),
    _seat("claude-sonnet-4.5", 144_000, 128_000, 16_000),
    _seat("gemini-9-pro", 128_000, 109_000, 64_000, policy={"state": "disabled"}),
]


def document(words="Hello.", *calls, reason=None, **more):
    """A whole answer of Chat Completions. A call is its id, name and arguments."""
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": words} | ({"tool_calls": made} if made else {})
    choice = {"index": 0, "message": message, "finish_reason": reason or "stop"}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {"id": "chatcmpl-1", "model": "m", "choices": [choice], "usage": usage} | more


def chat(*args, **more):
    return whole(document(*args, **more))


def item(words="Hello."):
    """A whole answer of the Responses API."""
    said = {"type": "output_text", "text": words, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    return whole({"id": "resp_1", "status": "completed", "output": [message], "usage": usage})


def refusal(sentence, status=400, code=None, **headers):
    error = {"message": sentence, "details": sentence} | ({"code": code} if code else {})
    return whole({"error": error}, status=status, **headers)


def tokens(asked):
    """How many a request has, as GitHub counts them here."""
    return len(asked.body) // 4


class GitHub:
    """The answer of a `Loopback`, to whatever it is asked."""

    def __init__(self, *answers, window=None, document=None):
        self.answers = list(answers) or [chat()]
        self.window = window
        self.document = document or {}  # what the exchange says beside the token
        self.exchanges = 0
        self.valid = set()
        self.asked = []  # of models
        self.refused = []  # of those, for their length

    def revoke(self):
        self.valid.clear()

    async def __call__(self, connection, asked):
        answer = self._answer(asked)
        if callable(answer):
            return await answer(connection, asked)
        await connection.send(answer)
        return KEEP if b"content-length" in answer[:2000] else None

    def _answer(self, asked):
        path, token = asked.path.partition("?")[0], asked.headers.get("authorization", "")
        if path == "/token":
            return self._exchange(token)
        is_models = path.startswith(("/inference", "/catalog", "/orgs"))
        if is_models and token != f"Bearer {PAT}":
            return refusal("Bad credentials", 401, "unauthorized")
        if not is_models and token not in self.valid:
            return whole(EXPIRED, status=401, kind="text/plain")
        if asked.method == "GET":
            return whole(CATALOGUE if is_models else {"data": SEATS})
        self.asked.append(asked)
        if self.window is not None and tokens(asked) > self.window:
            self.refused.append(asked)
            said = f"Request body too large for gpt-4o model. Max size: {self.window} tokens."
            return refusal(said, 413, "tokens_limit_reached")
        count = len(self.asked) - len(self.refused)
        answer = self.answers[min(count, len(self.answers)) - 1]
        if not isinstance(answer, dict):
            return answer
        return whole(answer | {"usage": {"prompt_tokens": tokens(asked), "completion_tokens": 7}})

    def _exchange(self, token):
        if token != f"token {OAUTH}":
            return whole({"message": "Bad credentials", "status": "401"}, status=401)
        self.exchanges += 1
        secret = f"tid=7;n={self.exchanges};canary"
        self.valid.add(f"Bearer {secret}")
        said = {"token": secret, "expires_at": int(time.time()) + 1800, "refresh_in": 1500}
        return whole(said | self.document)


def models(server, model="openai/gpt-4.1", **options):
    """A provider on the path of GitHub Models."""
    given = {"base_url": f"{server.url}/inference", "api_key": PAT, "tries_max": 1} | options
    return open_provider(f"github:{model}", **given)


def copilot(server, model="openai/gpt-4.1", **options):
    """A provider on the path of Copilot."""
    given = {"path": "copilot", "base_url": server.url, "token_url": f"{server.url}/token"}
    given |= {"api_key": OAUTH, "tries_max": 1}
    return open_provider(f"github:{model}", **(given | options))


@asynccontextmanager
async def asking(opened, *answers, window=None, document=None, **options):
    """A provider on one of the paths, and GitHub, which it asks."""
    github = GitHub(*answers, window=window, document=document)
    async with Loopback(github) as server, opened(server, **options) as provider:
        github.server = server
        yield provider, github


def events(*deltas, reason="stop", usage=True, **more):
    """A stream of Chat Completions."""
    made = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    made.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if usage:
        counts = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        made.append({"choices": [], "usage": counts})
    lines = [f"data: {json.dumps({'id': 'c', 'model': 'm', **each, **more})}\n\n" for each in made]
    return chunked("".join([*lines, "data: [DONE]\n\n"]).encode())
