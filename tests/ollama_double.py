"""A server that behaves as Ollama does, on loopback: both of its APIs, and its silent cut.

    async with Ollama(window=4096).served() as server:
        ...                                  # at server.url; server.paths is what was asked

It does what Ollama's source does and what was measured of it: a prompt that is longer than the
window is cut at its front, to half of it since version 0.30 and to all of it before; from 0.12 on
`truncate: false` makes that an error in its own API; a path that it does not have is answered with
`404 page not found`; some versions do not count what they had in their cache. Its recorded answers
are read elsewhere: here it is what the server does that counts.
"""

import json
import re
from contextlib import asynccontextmanager

from loopback import KEEP, Loopback, chunked, whole

LINES = "application/x-ndjson"


class Ollama:
    """`window` is the server's own; `num_ctx` what the model's Modelfile says, if it does.

    counts      whether tokens that were in the cache are counted
    tells       whether it says how large the window of a loaded model is
    has         which paths there are, beside those of its version: None for all
    """

    def __init__(
        self,
        version="0.33.2",
        *,
        models=("qwen3:8b", "llama3.2:latest"),
        window=4096,
        num_ctx=None,
        trained=40_960,
        counts=True,
        tells=True,
        has=None,
        says="Fine.",
    ):
        self.version = version
        self.models = models
        self.window = window
        self.num_ctx = num_ctx
        self.trained = trained
        self.counts = counts
        self.tells = tells
        self.has = has
        self.says = says
        self.loaded = {}  # the models, and the windows that they were loaded with
        self.asked = []  # path and body of each request
        self.prompts = []  # what the model was given to read, as words
        self._cached = []

    @asynccontextmanager
    async def served(self):
        async with Loopback(self.answer) as server:
            self.url = server.url
            self.requests = server.requests
            yield self

    @property
    def paths(self):
        return [path for path, _ in self.asked]

    def bodies(self, path):
        return [body for asked, body in self.asked if asked == path]

    async def answer(self, connection, asked):
        body = asked.json if asked.body else None
        self.asked.append((asked.path, body))
        await connection.send(self._answered(asked.path, body))
        return KEEP

    def _answered(self, path, body):
        routes = {
            "/api/version": lambda: {"version": self.version},
            "/api/tags": lambda: {"models": [{"name": n, "model": n} for n in self.models]},
            "/api/ps": self._ps,
            "/api/show": lambda: self._of_model(body, self._card),
            "/api/generate": lambda: self._of_model(body, self._load),
            "/api/chat": lambda: self._of_model(body, self._chat),
        }
        if self._number >= (0, 14):
            routes["/v1/messages"] = lambda: self._of_model(body, self._messages)
        if path not in routes or (self.has is not None and path not in self.has):
            return whole(b"404 page not found", status=404, kind="text/plain")
        said = routes[path]()
        return said if isinstance(said, bytes) else whole(said)

    @property
    def _number(self):
        return tuple(int(each) for each in re.findall(r"\d+", self.version)[:2])

    def _of_model(self, body, then):
        name = body["model"] if ":" in body["model"] else f"{body['model']}:latest"
        if name in self.models:
            return then(name, body)
        return self._error(404, f"model '{body['model']}' not found", body)

    def _error(self, status, sentence, body):
        if "max_tokens" not in body:
            return whole({"error": sentence}, status=status)
        kind = {404: "not_found_error", 400: "invalid_request_error"}.get(status, "api_error")
        return whole({"type": "error", "error": {"type": kind, "message": sentence}}, status=status)

    def _card(self, _name, _body):
        told = "" if self.num_ctx is None else f"num_ctx                        {self.num_ctx}\n"
        return {
            "parameters": f'stop                           "<|im_end|>"\n{told}temperature    0.6',
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": self.trained},
        }

    def _ps(self):
        told = [
            {"name": name, "model": name} | ({"context_length": window} if self.tells else {})
            for name, window in self.loaded.items()
        ]
        return {"models": told}

    def _load(self, name, body):
        asked = (body.get("options") or {}).get("num_ctx")
        self.loaded[name] = min(asked or self.num_ctx or self.window, self.trained)
        return {"model": name, "done": True, "done_reason": "load", "response": ""}

    # Answers

    def _chat(self, name, body):
        self._load(name, body)
        words = [word for m in body["messages"] for word in (m.get("content") or "").split()]
        is_refusing = body.get("truncate") is False and self._number >= (0, 12)
        return self._said(name, body, words, is_refusing, self._lines)

    def _messages(self, name, body):
        self._load(name, body)
        told = [block["text"] for block in body.get("system") or ()]
        for message in body["messages"]:
            told += [
                block.get("text") or block.get("content") or "" for block in message["content"]
            ]
        return self._said(name, body, " ".join(told).split(), False, self._events)

    def _said(self, name, body, words, is_refusing, written):
        """A word is a token here."""
        window = self.loaded[name]
        if len(words) >= window and is_refusing:
            return self._error(400, self._refusal(len(words), window), body)
        if len(words) >= window:
            left = window - (window - 4) // 2 if self._number >= (0, 30) else window
            words = words[:4] + words[len(words) - left + 4 :]
        self.prompts.append(words)
        same = 0
        if not self.counts:
            pairs = zip(words, self._cached, strict=False)
            same = next((n for n, (a, b) in enumerate(pairs) if a != b), len(self._cached))
        self._cached = words
        return written(name, body, max(1, len(words) - same))  # the last is always read again

    def _refusal(self, tokens, window):
        inner = {
            "code": 400,
            "message": f"request ({tokens} tokens) exceeds the available context size ({window} "
            "tokens), try increasing it",
            "type": "exceed_context_size_error",
        }
        return json.dumps({"error": inner})

    def _lines(self, name, body, counted):
        first, *others = self.says.split(" ")
        pieces = [first, *(f" {word}" for word in others)]
        head = {"model": name, "created_at": "2026-10-01T10:00:00Z"}
        said = [
            {**head, "message": {"role": "assistant", "content": piece}, "done": False}
            for piece in pieces
        ]
        last = {**head, "message": {"role": "assistant", "content": ""}, "done": True}
        last |= {"done_reason": "stop", "prompt_eval_count": counted, "eval_count": len(pieces)}
        if not body.get("stream", True):
            return {**last, "message": {"role": "assistant", "content": self.says}}
        lines = "".join(json.dumps(each) + "\n" for each in [*said, last])
        return chunked(lines.encode(), kind=LINES)

    def _events(self, name, body, counted):
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": name}
        usage = {"input_tokens": counted, "output_tokens": 3}
        text = {"type": "text", "text": self.says}
        if not body.get("stream"):
            return {**message, "content": [text], "stop_reason": "end_turn", "usage": usage}
        guess = {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": 0}
        events = [
            {"type": "message_start", "message": {**message, "content": [], "usage": guess}},
            {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": self.says},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        ]
        lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]
        return chunked("".join(lines).encode())
