"""What a service says when it refuses, read out of whatever it sent.

Vendors put the same few facts in different places: a word for the kind of error (`code`), a
sentence, a request id, a time to wait. `read` collects them from headers and body and decides
nothing. It follows only the names below, so what a user or a model wrote, and a service repeats
beside its error, is not taken for the service's own word. Nothing here raises: a body that is
cut, broken, huge or no JSON at all says less, and that is all.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from holdfast import strict, text
from holdfast.errors import InvalidInput, TooLarge

BODY_BYTES_MAX = 256 * 1024  # what is longer is cut, and read as text
SENTENCE_LENGTH_MAX = 4_000
SENTENCES_MAX = 16
DETAIL_LENGTH_MAX = 400
DEPTH_MAX = 8
NODES_MAX = 200
VISITS_MAX = 1_000

_INSIDE = (
    *("message", "error", "errors", "detail", "details", "response", "innererror", "metadata"),
    *("raw", "incomplete_details", "promptFeedback", "base_resp"),
)
_CODES = ("type", "code", "status", "reason", "blockReason", "error_type", "error_code", "__type")
_SENTENCES = ("message", "error", "errors", "detail", "details", "msg", "raw", "error_message")
_STATUSES = ("code", "status", "status_code", "statusCode")
_DELAYS = ("retryDelay", "retry_after", "retry_after_seconds", "resets_in_seconds")
_BODY_IDS = ("request_id", "requestId", "request-id")
_HEADER_IDS = (
    *("request-id", "x-request-id", "apim-request-id", "x-ms-request-id", "x-goog-request-id"),
    *("x-github-request-id", "x-amzn-requestid", "x-cloud-trace-context", "cf-ray"),
)

_ID = re.compile(r"[\w.:/=+-]{1,128}")
_ID_IN_SENTENCE = re.compile(r"\breq_\w{8,64}\b")
_HTML = re.compile(r"\s*(?:<!doctype html|<html|<head|<body|<center)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]{0,100}>([^<]{0,300})", re.IGNORECASE)
_BROKEN = re.compile(r'"(\w{1,30})"\s{0,9}:\s{0,9}"((?:[^"\\]|\\.){0,4000})')

# Keys with a known beginning, words that announce one, and long words that can be nothing else.
_KEYS = re.compile(
    r"\b(?:sk|pk|rk|sess|gsk|xai|csk|pplx|nvapi|tgp_v1|fw|r8|hf|AIza|AKIA|ASIA|ya29|gh[opusr]|"
    r"github_pat|glpat|xox[a-z]|eyJ)(?:[-_.]|(?<=AIza|AKIA|ASIA)|(?<=eyJ))[\w.*=/+~-]+"
)
_ANNOUNCED = re.compile(
    r"(\b(?:x-(?:goog-)?api-key|api[-_ ]?key(?: provided)?|key|token|access[-_ ]token|secret|"
    r"client[-_ ]secret|authorization|password)\b[\"']?(?:\s*[:=]\s*[\"'<]?|\s+[\"'<])"
    r"(?:bearer\s+|basic\s+)?|\b(?:bearer|basic)\s+(?=\S{8}))"
    r"([^\s\"',;&]+)",
    re.IGNORECASE,
)
_OPAQUE = re.compile(
    r"\b(?!(?:req|resp|rs|msg|fc|call|toolu|file|org|proj)[_-])(?=\w{0,64}\d)(?=\w{0,64}[A-Za-z])\w{32,}\b"
)
MASK = "***"


class Refusal(NamedTuple):
    """What was said. `codes` are squeezed (see there), `statuses` are numbers inside the body."""

    sentences: tuple[str, ...] = ()
    codes: frozenset[str] = frozenset()
    statuses: tuple[int, ...] = ()
    delays: tuple[str, ...] = ()  # such as "48s", from Google's RetryInfo
    request_id: str | None = None
    is_html: bool = False
    is_empty: bool = False

    @property
    def detail(self) -> str:
        """The service's own sentence, short, and without anything that looks like a secret."""
        said = mask(self.sentences[0]) if self.sentences else ""
        return said if len(said) <= DETAIL_LENGTH_MAX else said[: DETAIL_LENGTH_MAX - 4] + " ..."


def read(headers: Mapping[str, str], body: object) -> Refusal:
    """The facts in an answer. `body` is bytes, text, parsed JSON, or None for nothing."""
    found = _found(body)
    ids = [headers.get(name) for name in _HEADER_IDS] + _ids(found.nodes)
    ids += [match.group() for match in map(_ID_IN_SENTENCE.search, found.sentences) if match]
    usable = (
        id for id in ids if isinstance(id, str) and _ID.fullmatch(id) and not _KEYS.search(id)
    )
    return Refusal(
        sentences=tuple(found.sentences),
        codes=frozenset(squeezed(code) for code in found.codes),
        statuses=tuple(_statuses(found.nodes)),
        delays=tuple(_delays(found.nodes)),
        request_id=next(usable, None),
        is_html=found.is_html,
        is_empty=found.is_empty,
    )


def squeezed(code: str) -> str:
    """RateLimitReached, rate_limit_reached and RATE-LIMIT-REACHED are one code."""
    return re.sub(r"[\W_]", "", code).lower()


def mask(words: str) -> str:
    """The words with every key, token and password in them as ***."""
    words = _KEYS.sub(MASK, words)
    words = _ANNOUNCED.sub(lambda match: match[1] + MASK + _stop(match[2]), words)
    return _OPAQUE.sub(MASK, words)


def _stop(secret: str) -> str:
    return "." if secret.endswith(".") else ""  # of the sentence that the secret ends


class _Found(NamedTuple):
    nodes: list[Mapping[Any, Any]]  # JSON objects in which a service speaks for itself
    sentences: list[str]
    codes: list[str]
    is_html: bool = False
    is_empty: bool = False


def _found(body: object) -> _Found:
    if isinstance(body, bytes | bytearray):
        body = text.decode(bytes(body[:BODY_BYTES_MAX]))[0]
    if isinstance(body, str):
        return _found_in_text(body[:BODY_BYTES_MAX].strip().removeprefix("\ufeff"))
    nodes, sentences = _walk(body)
    is_empty = not nodes and not sentences
    return _Found(nodes, sentences, list(_codes(nodes)), is_empty=is_empty)


def _found_in_text(said: str) -> _Found:
    if not said:
        return _Found([], [], [], is_empty=True)
    if _HTML.match(said):
        title = _TITLE.search(said)
        return _Found([], [_line(title[1])] if title else [], [], is_html=True)
    parsed = _parsed(said)
    if parsed is not None:
        return _found(parsed)
    if '{"' in said:  # cut or broken on its way
        pairs = _BROKEN.findall(said)
        sentences = [_line(value) for name, value in pairs if name in _SENTENCES]
        codes = [value for name, value in pairs if name in _CODES]
        return _Found([], sentences[:SENTENCES_MAX] or [_line(said)], codes[:NODES_MAX])
    return _Found([], [_line(said)], [])


def _parsed(said: str) -> Any:
    """The JSON in a text: all of it, or what follows words such as `API Error: 529`."""
    start = min((at for at in (said.find("{"), said.find("[{")) if at >= 0), default=-1)
    if start < 0:
        return None
    end = max(said.rfind("}"), said.rfind("]")) + 1
    try:
        return strict.parse(said[start:end], what="an error").value
    except (InvalidInput, TooLarge):
        return None


def _walk(body: object) -> tuple[list[Mapping[Any, Any]], list[str]]:
    """Every object that may speak of the error, outermost first, and every sentence in them."""
    nodes: list[Mapping[Any, Any]] = []
    sentences: dict[str, None] = {}  # each once, in order
    waiting: list[tuple[object, int]] = [(body, 0)]
    for value, depth in waiting:  # grows as it goes
        if depth > DEPTH_MAX or len(nodes) == NODES_MAX or len(waiting) > VISITS_MAX:
            break
        if isinstance(value, Mapping):
            nodes.append(value)
            names = [name for name in _INSIDE if name in value] + [
                "msg",
                "error_message",
                "status_msg",
            ]
            waiting += [(value[name], depth + 1) for name in names if value.get(name)]
        elif isinstance(value, list | tuple):
            waiting += [(item, depth + 1) for item in value[:NODES_MAX]]
        elif isinstance(value, str) and value.strip():
            # A gateway may pass on what it was told as text.
            is_json = value.lstrip()[0] in "{[" and len(value) < BODY_BYTES_MAX
            inner = _parsed(value) if is_json else None
            if inner is not None:
                waiting.append((inner, depth + 1))
            else:
                sentences[_line(value)] = None
    return nodes, list(sentences)[:SENTENCES_MAX]


def _codes(nodes: list[Mapping[Any, Any]]) -> Iterator[str]:
    for node in nodes:
        yield from (str(node[name])[:100] for name in _CODES if isinstance(node.get(name), str))


def _statuses(nodes: list[Mapping[Any, Any]]) -> Iterator[int]:
    for node in nodes:
        for value in (str(node[name])[:8] for name in _STATUSES if name in node):
            if re.fullmatch(r"[1-5][0-9]{2}", value):
                yield int(value)


def _delays(nodes: list[Mapping[Any, Any]]) -> Iterator[str]:
    for node in nodes:
        for value in (str(node[name])[:40] for name in _DELAYS if name in node):
            yield value if value[-1:].isalpha() else f"{value}s"


def _ids(nodes: list[Mapping[Any, Any]]) -> list[object]:
    return [node[name] for node in nodes for name in _BODY_IDS if name in node]


def _line(words: str) -> str:
    """One printable line, cut behind a whole word, so that no half of a key is left over."""
    if len(words) > SENTENCE_LENGTH_MAX:
        words = words[:SENTENCE_LENGTH_MAX].rpartition(" ")[0] or "(a long text without words)"
    mended = text.mend(words)[0]
    return " ".join("".join(c if c.isprintable() else " " for c in mended).split())
