"""What things are called in the database: the schema, settings, and whatever a caller can name."""

from hashlib import blake2b

SCHEMA = "holdfast"
SETTING = "holdfast.tenants"  # whose rows a connection may see: digests, as an array
CENSUS = "holdfast.census"  # whether it may see the names of all tenants


def digest(*parts: str) -> bytes:
    """16 bytes of some texts; no two different lists of texts are the same bytes here."""
    whole = b"".join(len(data).to_bytes(8, "big") + data for data in map(str.encode, parts))
    return blake2b(whole, digest_size=16, person=b"holdfast.pg").digest()
