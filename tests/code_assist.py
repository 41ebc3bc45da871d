"""Code Assist and Google's token endpoint, as a server on the loopback interface plays them.

    async with Google(says("Hello.")) as google:
        provider = open_provider("antigravity:gemini-2.5-pro", **google.options(path))
    google.asked                        # (method, account, body) of each request, in order

An account is known by its refresh token, "refresh-ada"; its access tokens are "token-ada-1" and so
on. Answers of a model are given in turn, the last one again when they run out; an answer is bytes,
or a function of the account that gives bytes. Another method answers as `also` says.
"""

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from loopback import KEEP, Loopback, chunked, whole

SIGNED = "c2lnbmVk"


class Asked(NamedTuple):
    """`account` is None where nobody that is known asked."""

    method: str
    account: str | None
    body: Any
    headers: dict
    port: int

    @property
    def project(self):
        return self.body.get("project")


class Google:
    """`lives_s` is how long a token lives, `delay_s` how long a refresh takes."""

    def __init__(self, *answers, lives_s=3600, delay_s=0.0, also=None, token=None):
        self.answers = list(answers)
        self.asked = []
        self.tokens = {}  # access token: account
        self.refused = set()  # access tokens that are not taken any more
        self.also = also or {}
        self.lives_s = lives_s
        self.delay_s = delay_s
        self.token = token  # what the token endpoint answers instead
        self._server = Loopback(self._answer)

    async def __aenter__(self):
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self._server.__aexit__(*error)

    @property
    def url(self):
        return self._server.url

    @property
    def port(self):
        return self._server.port

    def options(self, path=None, **more):
        at = {"endpoints": [self.url], "token_url": f"{self.url}/token"}
        return at | ({} if path is None else {"accounts": path}) | more

    def of(self, *methods):
        """The requests of these methods."""
        return [each for each in self.asked if each.method in methods]

    @property
    def questions(self):
        return self.of("generateContent", "streamGenerateContent")

    @property
    def turns(self):
        """Who asked a model, in order."""
        return [each.account for each in self.questions]

    async def _answer(self, connection, asked):
        method = asked.path.rpartition(":")[2].partition("?")[0]
        method = "operation" if "/operations/" in asked.path else method.rpartition("/")[2]
        reply = await (self._token(asked) if method == "token" else self._method(method, asked))
        await connection.send(reply)
        return KEEP if b"content-length" in reply[:2000].lower() else None

    async def _token(self, asked):
        form = {name: value for name, (value,) in parse_qs(asked.body.decode()).items()}
        account = form["refresh_token"].removeprefix("refresh-")
        self.asked.append(Asked("token", account, form, asked.headers, self.port))
        await asyncio.sleep(self.delay_s)
        if self.token is not None:
            return self.token
        number = sum(each == account for each in self.tokens.values()) + 1
        access = f"token-{account}-{number}"
        self.tokens[access] = account
        return whole({"access_token": access, "expires_in": self.lives_s, "token_type": "Bearer"})

    async def _method(self, method, asked):
        access = asked.headers.get("authorization", "").removeprefix("Bearer ")
        account = None if access in self.refused else self.tokens.get(access)
        body = asked.json if asked.body else {}
        self.asked.append(Asked(method, account, body, asked.headers, self.port))
        if account is None:
            return refusal(
                401, "Request had invalid authentication credentials.", "UNAUTHENTICATED"
            )
        if method in ("generateContent", "streamGenerateContent"):
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        else:
            answer = self.also[method]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer(account) if callable(answer) else answer


def document(*parts, finish="STOP", **more):
    """An answer of Google's, without its envelope."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {"candidates": [candidate], "usageMetadata": usage, "responseId": "r1"} | more


def says(words, **more):
    return whole({"response": document({"text": words}, **more), "traceId": "trace-1"})


def streams(*documents):
    lines = [json.dumps({"response": each, "traceId": "trace-1"}) for each in documents]
    return chunked("".join(f"data: {line}\r\n\r\n" for line in lines).encode())


def refusal(status, message, kind="INVALID_ARGUMENT", details=(), **headers):
    error = {"code": status, "message": message, "status": kind, "details": list(details)}
    return whole({"error": error}, status=status, **headers)


def limited(delay=None, **headers):
    """The service's own words for an account that has asked too much."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    return refusal(
        429,
        "You have exhausted your capacity on this model.",
        "RESOURCE_EXHAUSTED",
        [info] if delay else [],
        **headers,
    )


def write(path, *accounts, mode=0o600, **fields):
    """An accounts file: names, or entries."""
    entries = [
        {"name": each, "refresh_token": f"refresh-{each}", "project": f"project-{each}"}
        if isinstance(each, str)
        else each
        for each in accounts
    ]
    held = {"client_id": "our-client", "client_secret": "hunter2-client", "accounts": entries}
    path.write_text(json.dumps(held | fields))
    path.chmod(mode)
    return path


def held(path):
    """What the file holds, account by account."""
    return {each["name"]: each for each in json.loads(path.read_text())["accounts"]}
