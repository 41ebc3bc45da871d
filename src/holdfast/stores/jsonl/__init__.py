"""The JSONL store: a folder of nanobot's session files, which nanobot reads and writes too.

names     which file a session has
sidecar   our log beside it: everything that nanobot's format has no place for
page      nanobot's file itself: its lines, read and written
state     a session that is held in memory, and what it was made of
folder    the sessions of one tenant
writing   how a change of a session comes into its two files
adopting  what another program did to a file meanwhile
shelf     what requests and views are run on
store     lock, group commit, opening and closing
"""
