"""Names on disk and on the wire.

| address                        | JSON                                                          |
|--------------------------------|---------------------------------------------------------------|
| codec.plain, read_plain        | what a model or another program reads                         |
| codec.record, read_record      | everything, versioned: our own rows                           |
| codec.read_foreign_record      | the same from elsewhere, read strictly                        |
| codec.kernel                   | canonical messages of the tau kernel (Go)                     |
| codec.lango                    | messages and sessions of lango's store (Go)                   |
| codec.jaato, jaato_state       | messages in parts of jaato (Python), and its session files    |
| codec.shepherd                 | shepherd's to_json (C++)                                      |
| codec.nanobot                  | lines of nanobot's session files (Python), and of its Go port |

All readers of foreign JSON go by the same rules (`holdfast.strict`, `codec.foreign`): nothing that
cannot be kept gets in, and nothing that gets in is lost.
"""

from holdfast.codec.plain import plain, plain_dict, read_plain
from holdfast.codec.record import (
    VERSION,
    read_foreign_record,
    read_record,
    read_records,
    record,
)
from holdfast.strict import LIMITS, Limits

__all__ = [
    "LIMITS",
    "VERSION",
    "Limits",
    "plain",
    "plain_dict",
    "read_foreign_record",
    "read_plain",
    "read_record",
    "read_records",
    "record",
]
