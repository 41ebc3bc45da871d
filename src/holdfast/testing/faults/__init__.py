"""Faults on purpose: kill, fail, cut, fill, flip, cancel, at every place where it can happen.

| module   | the fault                                              | what it needs                |
|----------|--------------------------------------------------------|------------------------------|
| `forks`  | none: the program under test, imported once, run often | fork                         |
| `strace` | a kill or an error at the n-th system call on a store  | Linux, strace                |
| `lines`  | a kill at the n-th Python line                         | fork                         |
| `power`  | the power goes out: what was not synced is gone        | Linux, root, loop devices    |
| `disk`   | a disk that fills up; a write that stops half-way      | Linux, root (for the disk)   |
| `damage` | flipped bits, cut and blanked files                    | nothing                      |
| `loops`  | another order of tasks; a cancel at the n-th await     | nothing                      |

Each module has `missing()`: one sentence on why it cannot run here, or "" when it can.
Import the one you need; nothing here is imported by `holdfast.testing`.
"""
