"""Made by tests/sqlite_statements.py of `tables.py`. Do not edit.

Every statement that the SQLite store runs on its tables, as text. Values are bound in the order in
which the statement speaks of them.
"""

TABLES = (
    (
        "\nCREATE TABLE clocks (\n"
        "\ttenant TEXT NOT NULL, \n"
        "\tseen BIGINT NOT NULL, \n"
        "\tPRIMARY KEY (tenant)\n"
        ")\n"
        " WITHOUT ROWID\n"
        "\n"
    ),
    (
        "\nCREATE TABLE sessions (\n"
        "\tnumber INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, \n"
        "\ttenant TEXT NOT NULL, \n"
        "\tid TEXT NOT NULL, \n"
        '\t"key" TEXT NOT NULL, \n'
        "\tagent TEXT NOT NULL, \n"
        "\tcreated BIGINT NOT NULL, \n"
        "\tupdated BIGINT NOT NULL, \n"
        "\tttl BIGINT, \n"
        "\tmarked BIGINT, \n"
        "\tseq BIGINT NOT NULL, \n"
        "\tbranch INTEGER NOT NULL, \n"
        "\tbranches INTEGER NOT NULL, \n"
        "\ttoken BIGINT NOT NULL, \n"
        "\towner TEXT, \n"
        "\tprocess TEXT NOT NULL, \n"
        "\tboot TEXT NOT NULL, \n"
        "\tuntil BIGINT NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        '\tUNIQUE (tenant, "key"), \n'
        "\tUNIQUE (id, tenant)\n"
        ")\n"
        "\n"
    ),
    "CREATE INDEX sessions_mortal ON sessions (tenant) WHERE ttl IS NOT NULL",
    "CREATE INDEX sessions_newest ON sessions (tenant, updated, number, agent)",
    (
        "\nCREATE TABLE blobs (\n"
        "\tsession INTEGER NOT NULL, \n"
        "\tdigest BLOB NOT NULL, \n"
        "\tcount BIGINT NOT NULL, \n"
        "\tsalt BLOB NOT NULL, \n"
        "\tdata BLOB NOT NULL, \n"
        "\tPRIMARY KEY (session, digest), \n"
        "\tFOREIGN KEY(session) REFERENCES sessions (number) ON DELETE CASCADE\n"
        ")\n"
        "\n"
    ),
    (
        "\nCREATE TABLE branches (\n"
        "\tsession INTEGER NOT NULL, \n"
        "\tnumber INTEGER NOT NULL, \n"
        "\tname TEXT NOT NULL, \n"
        "\tparent INTEGER, \n"
        "\tfork BIGINT NOT NULL, \n"
        "\tbase BIGINT NOT NULL, \n"
        "\thead BIGINT NOT NULL, \n"
        "\tcount BIGINT NOT NULL, \n"
        "\tlink BLOB NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tPRIMARY KEY (session, number), \n"
        "\tUNIQUE (session, name), \n"
        "\tFOREIGN KEY(session) REFERENCES sessions (number) ON DELETE CASCADE\n"
        ")\n"
        " WITHOUT ROWID\n"
        "\n"
    ),
    (
        "\nCREATE TABLE documents (\n"
        "\tsession INTEGER NOT NULL, \n"
        "\tbody BLOB NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tdigest BLOB NOT NULL, \n"
        "\tPRIMARY KEY (session), \n"
        "\tFOREIGN KEY(session) REFERENCES sessions (number) ON DELETE CASCADE\n"
        ")\n"
        "\n"
    ),
    (
        "\nCREATE TABLE drafts (\n"
        "\tsession INTEGER NOT NULL, \n"
        "\tnumber INTEGER NOT NULL, \n"
        "\tdigest BLOB NOT NULL, \n"
        "\tdata BLOB NOT NULL, \n"
        "\tPRIMARY KEY (session, number), \n"
        "\tFOREIGN KEY(session) REFERENCES sessions (number) ON DELETE CASCADE\n"
        ")\n"
        " WITHOUT ROWID\n"
        "\n"
    ),
    (
        "\nCREATE TABLE entries (\n"
        "\trid INTEGER NOT NULL, \n"
        "\tsession INTEGER NOT NULL, \n"
        "\tseq BIGINT NOT NULL, \n"
        "\tbranch INTEGER NOT NULL, \n"
        "\tposition BIGINT NOT NULL, \n"
        "\tkind TEXT NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tlink BLOB NOT NULL, \n"
        "\tsalt BLOB, \n"
        "\tpayload BLOB, \n"
        "\tholes BLOB, \n"
        "\tseal BLOB, \n"
        "\tPRIMARY KEY (rid), \n"
        "\tUNIQUE (session, seq), \n"
        "\tFOREIGN KEY(session) REFERENCES sessions (number) ON DELETE CASCADE\n"
        ")\n"
        "\n"
    ),
    "CREATE INDEX entries_folds ON entries (session, seq) WHERE kind = 'fold'",
    (
        "CREATE INDEX entries_placed ON entries (session, branch, position) WHERE position % 64 = "
        "0 AND kind = 'message'"
    ),
    (
        "\nCREATE TABLE once (\n"
        "\tsession INTEGER NOT NULL, \n"
        "\tname TEXT NOT NULL, \n"
        "\tsalt BLOB, \n"
        "\tdigest BLOB, \n"
        "\tfirst BIGINT NOT NULL, \n"
        "\tlast BIGINT NOT NULL, \n"
        "\tbranch TEXT NOT NULL, \n"
        "\tmessages BIGINT NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tPRIMARY KEY (session, name), \n"
        "\tFOREIGN KEY(session) REFERENCES sessions (number) ON DELETE CASCADE\n"
        ")\n"
        " WITHOUT ROWID\n"
        "\n"
    ),
)
FIND_KEY = (
    'SELECT sessions.number, sessions.tenant, sessions.id, sessions."key", sessions.agent, '
    "sessions.created, sessions.updated, sessions.ttl, sessions.marked, sessions.seq, "
    "sessions.branch, sessions.branches, sessions.token, sessions.owner, sessions.process, "
    'sessions.boot, sessions.until, sessions."check" \n'
    "FROM sessions \n"
    'WHERE sessions.tenant = ? AND sessions."key" = ?'
)
INSERT_SESSION = (
    'INSERT INTO sessions (tenant, id, "key", agent, created, updated, ttl, marked, seq, branch, '
    'branches, token, owner, process, boot, until, "check") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '
    "?, ?, ?, ?, ?, ?, ?)"
)
UPDATE_SESSION = (
    "UPDATE sessions SET agent=?, updated=?, ttl=?, marked=?, seq=?, branch=?, branches=?, "
    'token=?, owner=?, process=?, boot=?, until=?, "check"=? WHERE sessions.number = ?'
)
MOVE_SESSION = 'UPDATE sessions SET updated=?, seq=?, "check"=? WHERE sessions.number = ?'
FIND_NAMES = (
    'SELECT sessions.id, sessions."key", sessions.agent \nFROM sessions \nWHERE sessions.number = ?'
)
DELETE_SESSION = "DELETE FROM sessions WHERE sessions.number = ?"
FIND_DOCUMENT = (
    "SELECT documents.body, documents.digest \nFROM documents \nWHERE documents.session = ?"
)
INSERT_DOCUMENT = 'INSERT INTO documents (session, body, "check", digest) VALUES (?, ?, ?, ?)'
UPDATE_DOCUMENT = 'UPDATE documents SET body=?, "check"=?, digest=? WHERE documents.session = ?'
FIND_HEADS = (
    'SELECT sessions.number, sessions.tenant, sessions.id, sessions."key", sessions.agent, '
    "sessions.created, sessions.updated, sessions.ttl, sessions.marked, sessions.seq, "
    "sessions.branch, sessions.branches, sessions.token, sessions.owner, sessions.process, "
    'sessions.boot, sessions.until, sessions."check", branches.number AS number_1, branches.name, '
    "branches.parent, branches.fork, branches.base, branches.head, branches.count, branches.link, "
    'branches."check" AS check_1 \n'
    "FROM sessions LEFT OUTER JOIN branches ON branches.session = sessions.number AND "
    "branches.number = sessions.branch \n"
    "WHERE sessions.id IN (?)"
)
NEWEST = {
    (False, False): (
        "SELECT sessions.number, sessions.id, sessions.updated, documents.body, "
        'documents."check" \n'
        "FROM sessions JOIN documents ON documents.session = sessions.number \n"
        "WHERE sessions.tenant = ? AND (sessions.updated, sessions.number) < (?, ?) ORDER BY "
        "sessions.updated DESC, sessions.number DESC\n"
        " LIMIT ? OFFSET 0"
    ),
    (False, True): (
        "SELECT sessions.number, sessions.id, sessions.updated, documents.body, "
        'documents."check" \n'
        "FROM sessions JOIN documents ON documents.session = sessions.number \n"
        "WHERE sessions.tenant = ? AND sessions.updated >= ? AND sessions.updated < ? AND "
        "(sessions.updated, sessions.number) < (?, ?) ORDER BY sessions.updated DESC, "
        "sessions.number DESC\n"
        " LIMIT ? OFFSET 0"
    ),
    (True, False): (
        "SELECT sessions.number, sessions.id, sessions.updated, documents.body, "
        'documents."check" \n'
        "FROM sessions JOIN documents ON documents.session = sessions.number \n"
        "WHERE sessions.tenant = ? AND sessions.agent = ? AND (sessions.updated, sessions.number) "
        "< (?, ?) ORDER BY sessions.updated DESC, sessions.number DESC\n"
        " LIMIT ? OFFSET 0"
    ),
    (True, True): (
        "SELECT sessions.number, sessions.id, sessions.updated, documents.body, "
        'documents."check" \n'
        "FROM sessions JOIN documents ON documents.session = sessions.number \n"
        "WHERE sessions.tenant = ? AND sessions.agent = ? AND sessions.updated >= ? AND "
        "sessions.updated < ? AND (sessions.updated, sessions.number) < (?, ?) ORDER BY "
        "sessions.updated DESC, sessions.number DESC\n"
        " LIMIT ? OFFSET 0"
    ),
}
FIND_TENANTS = "SELECT DISTINCT sessions.tenant \nFROM sessions ORDER BY sessions.tenant"
OVERDUE = (
    'SELECT sessions.number, sessions.tenant, sessions.id, sessions."key", sessions.agent, '
    "sessions.created, sessions.updated, sessions.ttl, sessions.marked, sessions.seq, "
    "sessions.branch, sessions.branches, sessions.token, sessions.owner, sessions.process, "
    'sessions.boot, sessions.until, sessions."check" \n'
    "FROM sessions \n"
    "WHERE sessions.tenant = ? AND sessions.ttl IS NOT NULL AND sessions.updated + sessions.ttl < "
    "? AND (sessions.marked IS NULL OR sessions.marked < ? OR sessions.marked > ?)\n"
    " LIMIT ? OFFSET 0"
)
FIND_LINE = (
    "SELECT branches.number, branches.name, branches.parent, branches.fork, branches.base, "
    'branches.head, branches.count, branches.link, branches."check" \n'
    "FROM branches \n"
    "WHERE branches.session = ? AND branches.name = ?"
)
FIND_LINES = (
    "SELECT branches.number, branches.name, branches.parent, branches.fork, branches.base, "
    'branches.head, branches.count, branches.link, branches."check" \n'
    "FROM branches \n"
    "WHERE branches.session = ?"
)
INSERT_LINE = (
    'INSERT INTO branches (session, number, name, parent, fork, base, head, count, link, "check") '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
UPDATE_LINE = (
    'UPDATE branches SET head=?, count=?, link=?, "check"=? WHERE branches.session = ? AND '
    "branches.number = ?"
)
DELETE_LINES = "DELETE FROM branches WHERE branches.session = ?"
INSERT_ROW = (
    'INSERT INTO entries (session, seq, branch, position, kind, "check", link, salt, payload, '
    "holes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_PLAIN_ROW = (
    'INSERT INTO entries (session, seq, branch, position, kind, "check", link, salt, payload) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FIND_ROW = (
    'SELECT entries.seq, entries.branch, entries.position, entries.kind, entries."check", '
    "entries.link, entries.salt, entries.payload, entries.holes, entries.seal \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.seq = ?"
)
FIND_FIELDS = (
    'SELECT entries.seq, entries."check", CASE WHEN (entries.holes IS NULL) THEN entries.payload '
    "END AS anon_1 \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.branch = ? AND entries.seq > ? AND entries.seq <= ? AND "
    "entries.position >= ? ORDER BY entries.seq"
)
FIND_ALL_FIELDS = (
    'SELECT entries.seq, entries."check", CASE WHEN (entries.holes IS NULL) THEN entries.payload '
    "END AS anon_1 \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.seq > ? AND entries.seq <= ? ORDER BY entries.seq"
)
FIND_ROWS = (
    'SELECT entries.seq, entries.branch, entries.position, entries.kind, entries."check", '
    "entries.link, entries.salt, entries.payload, entries.holes, entries.seal \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.branch = ? AND entries.seq > ? AND entries.seq <= ? "
    "ORDER BY entries.seq"
)
FIND_FOLDS = (
    'SELECT entries.seq, entries.branch, entries.position, entries.kind, entries."check", '
    "entries.link, entries.salt, entries.payload, entries.holes, entries.seal \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.branch = ? AND entries.seq > ? AND entries.seq <= ? AND "
    "entries.kind = 'fold' ORDER BY entries.seq"
)
FIND_NEWS = (
    'SELECT entries.seq, entries.branch, entries.position, entries.kind, entries."check", '
    "entries.link, entries.salt, entries.payload, entries.holes, entries.seal \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.seq > ? ORDER BY entries.seq\n"
    " LIMIT ? OFFSET 0"
)
FIND_PLACE = (
    "SELECT entries.seq \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.branch = ? AND entries.position < ? AND "
    "entries.position % 64 = 0 AND entries.kind = 'message' ORDER BY entries.position DESC\n"
    " LIMIT 1 OFFSET 0"
)
FIND_RID = "SELECT entries.rid \nFROM entries \nWHERE entries.session = ? AND entries.seq = ?"
FIND_BY_RID = (
    'SELECT sessions.number, sessions.tenant, sessions.id, sessions."key", sessions.agent, '
    "sessions.created, sessions.updated, sessions.ttl, sessions.marked, sessions.seq, "
    "sessions.branch, sessions.branches, sessions.token, sessions.owner, sessions.process, "
    'sessions.boot, sessions.until, sessions."check", entries.seq AS seq_1, entries.branch AS '
    'branch_1, entries.position, entries.kind, entries."check" AS check_1, entries.link, '
    "entries.salt, entries.payload, entries.holes, entries.seal \n"
    "FROM entries JOIN sessions ON sessions.number = entries.session \n"
    "WHERE entries.rid = ?"
)
FIND_HOLES = "SELECT entries.holes, entries.session \nFROM entries \nWHERE entries.rid = ?"
SOME_SALTS = (
    "SELECT entries.salt \n"
    "FROM entries \n"
    "WHERE entries.session = ? AND entries.salt IS NOT NULL\n"
    " LIMIT 64 OFFSET 0"
)
FIND_ALL = (
    "SELECT entries.rid, entries.seq, entries.branch, entries.position, entries.kind, "
    'entries."check", entries.link, entries.salt, entries.payload, entries.holes, entries.seal \n'
    "FROM entries \n"
    "WHERE entries.session = ?"
)
ERASE_ROW = (
    'UPDATE entries SET "check"=?, salt=?, payload=?, holes=?, seal=? WHERE entries.session = ? '
    "AND entries.seq = ?"
)
DELETE_ROWS = "DELETE FROM entries WHERE entries.session = ?"
FIND_BLOB = "SELECT blobs.data \nFROM blobs \nWHERE blobs.session = ? AND blobs.digest = ?"
COUNT_BLOB = "UPDATE blobs SET count=(blobs.count + ?) WHERE blobs.session = ? AND blobs.digest = ?"
INSERT_BLOB = "INSERT INTO blobs (session, digest, count, salt, data) VALUES (?, ?, ?, ?, ?)"
FIND_UNUSED_BLOB = (
    "SELECT blobs.salt \n"
    "FROM blobs \n"
    "WHERE blobs.session = ? AND blobs.digest = ? AND blobs.count <= 0"
)
DELETE_BLOB = "DELETE FROM blobs WHERE blobs.session = ? AND blobs.digest = ? AND blobs.count <= 0"
DELETE_BLOBS = "DELETE FROM blobs WHERE blobs.session = ?"
FIND_ONCE = (
    "SELECT once.salt, once.digest, once.first, once.last, once.branch, once.messages, "
    'once."check" \n'
    "FROM once \n"
    "WHERE once.session = ? AND once.name = ?"
)
FIND_NAMED = (
    "SELECT once.name, once.salt, once.digest, once.first, once.last, once.branch, once.messages, "
    'once."check" \n'
    "FROM once \n"
    "WHERE once.session = ? AND once.name > ? ORDER BY once.name\n"
    " LIMIT ? OFFSET 0"
)
INSERT_ONCE = (
    'INSERT INTO once (session, name, salt, digest, first, last, branch, messages, "check") VALUES '
    "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FORGET_ONCE = (
    "UPDATE once SET salt=?, digest=? WHERE once.session = ? AND once.first <= ? AND once.last >= ?"
)
DELETE_ONCE = "DELETE FROM once WHERE once.session = ?"
FIND_DRAFT = (
    "SELECT drafts.number, drafts.digest, drafts.data \n"
    "FROM drafts \n"
    "WHERE drafts.session = ? AND drafts.number > ? ORDER BY drafts.number"
)
INSERT_DRAFT = "INSERT INTO drafts (session, number, digest, data) VALUES (?, ?, ?, ?)"
LAST_CHUNK = "SELECT max(drafts.number) AS max_1 \nFROM drafts \nWHERE drafts.session = ?"
DELETE_DRAFT = "DELETE FROM drafts WHERE drafts.session = ?"
FIND_CLOCK = "SELECT clocks.seen \nFROM clocks \nWHERE clocks.tenant = ?"
DELETE_CLOCK = "DELETE FROM clocks WHERE clocks.tenant = ?"
INSERT_CLOCK = "INSERT INTO clocks (tenant, seen) VALUES (?, ?)"
