"""Code Assist: Google's answers, each in an envelope, which may be missing."""

from typing import Any

from holdfast.testing.replay.readings import google
from holdfast.testing.replay.readings.base import Reading, loads, sse_objects


def read(data: bytes, is_sse: bool) -> Reading:
    """The answer in a body or a stream."""
    if is_sse:
        chunks = [_inside(chunk) for chunk in sse_objects(data)[0]]
        return google.of_chunks(chunks, is_whole=False)
    body = loads(data)
    return google.of_chunks(
        [_inside(body)] if isinstance(body, dict) else [], is_whole=body is not None
    )


def _inside(chunk: dict[str, Any]) -> dict[str, Any]:
    inside = chunk.get("response")
    return inside if isinstance(inside, dict) else chunk
