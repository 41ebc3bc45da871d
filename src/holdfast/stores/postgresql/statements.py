"""Made by tests/postgresql_statements.py of `tables.py` and `queries.py`. Do not edit.

What makes the tables, and every statement that the PostgreSQL store runs on them but those of group
commit (`batch.py`), as text. The numbers of values are in the order in which they are bound.
"""

TABLES = (
    "CREATE SEQUENCE holdfast.entries_order AS BIGINT",
    (
        "\nCREATE TABLE holdfast.blobs (\n"
        "\tsession UUID NOT NULL, \n"
        "\tdigest BYTEA NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tcount BIGINT NOT NULL, \n"
        "\tsalt BYTEA NOT NULL, \n"
        "\tdata BYTEA NOT NULL, \n"
        "\tPRIMARY KEY (session, digest)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.blobs ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.blobs FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.blobs USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.branches (\n"
        "\tsession UUID NOT NULL, \n"
        "\tnumber INTEGER NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tname BYTEA NOT NULL, \n"
        "\tparent INTEGER, \n"
        "\tfork BIGINT NOT NULL, \n"
        "\tbase BIGINT NOT NULL, \n"
        "\thead BIGINT NOT NULL, \n"
        "\tcount BIGINT NOT NULL, \n"
        "\tlink BYTEA NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tPRIMARY KEY (session, number)\n"
        ")\n"
        " WITH (fillfactor = 80)\n"
        "\n"
    ),
    "ALTER TABLE holdfast.branches ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.branches FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.branches USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.clocks (\n"
        "\ttenant UUID NOT NULL, \n"
        "\tseen BIGINT NOT NULL, \n"
        "\tPRIMARY KEY (tenant)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.clocks ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.clocks FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.clocks USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.documents (\n"
        "\tsession UUID NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tbody BYTEA NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tdigest BYTEA NOT NULL, \n"
        "\tPRIMARY KEY (session)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.documents ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.documents FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.documents USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.drafts (\n"
        "\tsession UUID NOT NULL, \n"
        "\tnumber INTEGER NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tdigest BYTEA NOT NULL, \n"
        "\tdata BYTEA NOT NULL, \n"
        "\tPRIMARY KEY (session, number)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.drafts ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.drafts FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.drafts USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.entries (\n"
        "\tsession UUID NOT NULL, \n"
        "\tseq BIGINT NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\trid BIGINT DEFAULT nextval('holdfast.entries_order') NOT NULL, \n"
        "\tbranch INTEGER NOT NULL, \n"
        "\tposition BIGINT NOT NULL, \n"
        "\tkind BYTEA NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tlink BYTEA NOT NULL, \n"
        "\tsalt BYTEA, \n"
        "\tpayload BYTEA, \n"
        "\tholes BYTEA, \n"
        "\tseal BYTEA, \n"
        "\tPRIMARY KEY (session, seq)\n"
        ")\n"
        "\n"
    ),
    (
        "CREATE INDEX entries_folds ON holdfast.entries (session, seq) WHERE kind = "
        "'\\x666f6c64'::bytea"
    ),
    (
        "CREATE INDEX entries_placed ON holdfast.entries (session, branch, position) WHERE "
        "position % 64 = 0 AND kind = '\\x6d657373616765'::bytea"
    ),
    "ALTER TABLE holdfast.entries ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.entries FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.entries USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.format (\n"
        "\tone BOOLEAN NOT NULL, \n"
        "\tversion INTEGER NOT NULL, \n"
        "\tPRIMARY KEY (one), \n"
        "\tCHECK (one)\n"
        ")\n"
        "\n"
    ),
    (
        "\nCREATE TABLE holdfast.names (\n"
        "\tname UUID NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tsession UUID NOT NULL, \n"
        "\tPRIMARY KEY (name)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.names ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.names FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.names USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.once (\n"
        "\tsession UUID NOT NULL, \n"
        "\tname BYTEA NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tsalt BYTEA, \n"
        "\tdigest BYTEA, \n"
        "\tfirst BIGINT NOT NULL, \n"
        "\tlast BIGINT NOT NULL, \n"
        "\tbranch BYTEA NOT NULL, \n"
        "\tmessages BIGINT NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tPRIMARY KEY (session, name)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.once ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.once FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.once USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.sessions (\n"
        "\tsession UUID NOT NULL, \n"
        "\ttenant UUID NOT NULL, \n"
        "\tnumber BIGINT GENERATED ALWAYS AS IDENTITY, \n"
        "\tversion BIGINT NOT NULL, \n"
        "\twriter UUID NOT NULL, \n"
        "\twatched BIGINT NOT NULL, \n"
        "\tindexed BIGINT NOT NULL, \n"
        "\tid BYTEA NOT NULL, \n"
        "\tkey BYTEA NOT NULL, \n"
        "\tagent BYTEA NOT NULL, \n"
        "\tcreated BIGINT NOT NULL, \n"
        "\tupdated BIGINT NOT NULL, \n"
        "\tttl BIGINT, \n"
        "\tmarked BIGINT, \n"
        "\tseq BIGINT NOT NULL, \n"
        "\tbranch INTEGER NOT NULL, \n"
        "\tbranches INTEGER NOT NULL, \n"
        "\ttoken BIGINT NOT NULL, \n"
        "\towner BYTEA, \n"
        "\tprocess BYTEA NOT NULL, \n"
        "\tboot BYTEA NOT NULL, \n"
        "\tuntil BIGINT NOT NULL, \n"
        '\t"check" BIGINT NOT NULL, \n'
        "\tdue BIGINT GENERATED ALWAYS AS (updated + ttl) STORED, \n"
        "\tPRIMARY KEY (session)\n"
        ")\n"
        " WITH (fillfactor = 80)\n"
        "\n"
    ),
    "CREATE INDEX sessions_mortal ON holdfast.sessions (tenant, due) WHERE due IS NOT NULL",
    "CREATE INDEX sessions_newest ON holdfast.sessions (tenant, updated, number)",
    "CREATE INDEX sessions_unindexed ON holdfast.sessions (tenant, session) WHERE indexed < seq",
    "ALTER TABLE holdfast.sessions ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.sessions FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.sessions USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]))"
    ),
    (
        "\nCREATE TABLE holdfast.tenants (\n"
        "\ttenant UUID NOT NULL, \n"
        "\tname BYTEA NOT NULL, \n"
        "\tPRIMARY KEY (tenant)\n"
        ")\n"
        "\n"
    ),
    "ALTER TABLE holdfast.tenants ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE holdfast.tenants FORCE ROW LEVEL SECURITY",
    (
        "CREATE POLICY tenants ON holdfast.tenants USING (tenant = ANY ((SELECT "
        "nullif(current_setting('holdfast.tenants', true), '')::uuid[])::uuid[]) OR "
        "current_setting('holdfast.census', true) = 'on')"
    ),
    (
        "\nCREATE TABLE holdfast.words (\n"
        "\tsession UUID NOT NULL, \n"
        "\tseq BIGINT NOT NULL, \n"
        "\trid BIGINT NOT NULL, \n"
        "\twords BIGINT[] NOT NULL, \n"
        "\tPRIMARY KEY (session, seq)\n"
        ")\n"
        "\n"
    ),
    "CREATE INDEX words_found ON holdfast.words USING gin (words)",
)
COLUMNS = {
    "blobs": ("session", "digest", "tenant", "count", "salt", "data"),
    "branches": (
        "session",
        "number",
        "tenant",
        "name",
        "parent",
        "fork",
        "base",
        "head",
        "count",
        "link",
        "check",
    ),
    "clocks": ("tenant", "seen"),
    "documents": ("session", "tenant", "body", "check", "digest"),
    "drafts": ("session", "number", "tenant", "digest", "data"),
    "entries": (
        "session",
        "seq",
        "tenant",
        "rid",
        "branch",
        "position",
        "kind",
        "check",
        "link",
        "salt",
        "payload",
        "holes",
        "seal",
    ),
    "format": ("one", "version"),
    "names": ("name", "tenant", "session"),
    "once": (
        "session",
        "name",
        "tenant",
        "salt",
        "digest",
        "first",
        "last",
        "branch",
        "messages",
        "check",
    ),
    "sessions": (
        "session",
        "tenant",
        "number",
        "version",
        "writer",
        "watched",
        "indexed",
        "id",
        "key",
        "agent",
        "created",
        "updated",
        "ttl",
        "marked",
        "seq",
        "branch",
        "branches",
        "token",
        "owner",
        "process",
        "boot",
        "until",
        "check",
        "due",
    ),
    "tenants": ("tenant", "name"),
    "words": ("session", "seq", "rid", "words"),
}
CLOCK_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
HEAD = (
    "number",
    "id",
    "key",
    "agent",
    "created",
    "updated",
    "ttl",
    "marked",
    "seq",
    "branch",
    "branches",
    "token",
    "owner",
    "process",
    "boot",
    "until",
    "check",
)
CHANGED = (
    "agent",
    "updated",
    "ttl",
    "marked",
    "seq",
    "branch",
    "branches",
    "token",
    "owner",
    "process",
    "boot",
    "until",
    "check",
)
PLACE = ("session", "version", "watched", "indexed", "writer")
FIND_HEAD = (
    "SELECT holdfast.sessions.session, holdfast.sessions.version, holdfast.sessions.watched, "
    "holdfast.sessions.indexed, holdfast.sessions.writer, holdfast.sessions.number, "
    "holdfast.sessions.id, holdfast.sessions.key, holdfast.sessions.agent, "
    "holdfast.sessions.created, holdfast.sessions.updated, holdfast.sessions.ttl, "
    "holdfast.sessions.marked, holdfast.sessions.seq, holdfast.sessions.branch, "
    "holdfast.sessions.branches, holdfast.sessions.token, holdfast.sessions.owner, "
    "holdfast.sessions.process, holdfast.sessions.boot, holdfast.sessions.until, "
    'holdfast.sessions."check", (extract(epoch FROM clock_timestamp()) * 1000)::bigint \n'
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.session = $1::UUID"
)
LOCK_HEAD = (
    "SELECT holdfast.sessions.session, holdfast.sessions.version, holdfast.sessions.watched, "
    "holdfast.sessions.indexed, holdfast.sessions.writer, holdfast.sessions.number, "
    "holdfast.sessions.id, holdfast.sessions.key, holdfast.sessions.agent, "
    "holdfast.sessions.created, holdfast.sessions.updated, holdfast.sessions.ttl, "
    "holdfast.sessions.marked, holdfast.sessions.seq, holdfast.sessions.branch, "
    "holdfast.sessions.branches, holdfast.sessions.token, holdfast.sessions.owner, "
    "holdfast.sessions.process, holdfast.sessions.boot, holdfast.sessions.until, "
    'holdfast.sessions."check", (extract(epoch FROM clock_timestamp()) * 1000)::bigint \n'
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.session = $1::UUID FOR UPDATE"
)
FIND_HEADS = (
    "SELECT holdfast.sessions.session, holdfast.sessions.version, holdfast.sessions.watched, "
    "holdfast.sessions.indexed, holdfast.sessions.writer, holdfast.sessions.number, "
    "holdfast.sessions.id, holdfast.sessions.key, holdfast.sessions.agent, "
    "holdfast.sessions.created, holdfast.sessions.updated, holdfast.sessions.ttl, "
    "holdfast.sessions.marked, holdfast.sessions.seq, holdfast.sessions.branch, "
    "holdfast.sessions.branches, holdfast.sessions.token, holdfast.sessions.owner, "
    "holdfast.sessions.process, holdfast.sessions.boot, holdfast.sessions.until, "
    'holdfast.sessions."check", (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT '
    "max(holdfast.drafts.number) AS max_1 \n"
    "FROM holdfast.drafts \n"
    "WHERE holdfast.drafts.session = holdfast.sessions.session) AS anon_1, "
    "holdfast.branches.number AS number_1, holdfast.branches.name, holdfast.branches.parent, "
    "holdfast.branches.fork, holdfast.branches.base, holdfast.branches.head, "
    'holdfast.branches.count, holdfast.branches.link, holdfast.branches."check" AS check_1 \n'
    "FROM holdfast.sessions LEFT OUTER JOIN holdfast.branches ON holdfast.branches.session = "
    "holdfast.sessions.session AND holdfast.branches.number = holdfast.sessions.branch \n"
    "WHERE holdfast.sessions.session = ANY ($1::UUID[])"
)
FIND_NAMED = (
    "SELECT holdfast.sessions.session, holdfast.sessions.version, holdfast.sessions.watched, "
    "holdfast.sessions.indexed, holdfast.sessions.writer, holdfast.sessions.number, "
    "holdfast.sessions.id, holdfast.sessions.key, holdfast.sessions.agent, "
    "holdfast.sessions.created, holdfast.sessions.updated, holdfast.sessions.ttl, "
    "holdfast.sessions.marked, holdfast.sessions.seq, holdfast.sessions.branch, "
    "holdfast.sessions.branches, holdfast.sessions.token, holdfast.sessions.owner, "
    "holdfast.sessions.process, holdfast.sessions.boot, holdfast.sessions.until, "
    'holdfast.sessions."check", (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT '
    "max(holdfast.drafts.number) AS max_1 \n"
    "FROM holdfast.drafts \n"
    "WHERE holdfast.drafts.session = holdfast.sessions.session) AS anon_1, "
    "holdfast.branches.number AS number_1, holdfast.branches.name, holdfast.branches.parent, "
    "holdfast.branches.fork, holdfast.branches.base, holdfast.branches.head, "
    'holdfast.branches.count, holdfast.branches.link, holdfast.branches."check" AS check_1 \n'
    "FROM holdfast.names JOIN holdfast.sessions ON holdfast.sessions.session = "
    "holdfast.names.session LEFT OUTER JOIN holdfast.branches ON holdfast.branches.session = "
    "holdfast.sessions.session AND holdfast.branches.number = holdfast.sessions.branch \n"
    "WHERE holdfast.names.name = $1::UUID"
)
FENCE = (
    "UPDATE holdfast.sessions SET version=(holdfast.sessions.version + 1), writer=$1::UUID WHERE "
    "holdfast.sessions.session = $2::UUID"
)
LOCK_VERSION = (
    "SELECT holdfast.sessions.version, holdfast.sessions.writer \n"
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.session = $1::UUID FOR UPDATE"
)
FIND_NAME = (
    "SELECT holdfast.names.session \nFROM holdfast.names \nWHERE holdfast.names.name = $1::UUID"
)
INSERT_NAME = (
    "INSERT INTO holdfast.names (name, tenant, session) VALUES ($1::UUID, $2::UUID, $3::UUID)"
)
DELETE_NAME = "DELETE FROM holdfast.names WHERE holdfast.names.name = $1::UUID"
INSERT_SESSION = (
    "INSERT INTO holdfast.sessions (session, tenant, version, writer, watched, indexed, id, key, "
    "agent, created, updated, ttl, marked, seq, branch, branches, token, owner, process, boot, "
    'until, "check") VALUES ($1::UUID, $2::UUID, $3::BIGINT, $4::UUID, $5::BIGINT, $6::BIGINT, '
    "$7::BYTEA, $8::BYTEA, $9::BYTEA, $10::BIGINT, $11::BIGINT, $12::BIGINT, $13::BIGINT, "
    "$14::BIGINT, $15::INTEGER, $16::INTEGER, $17::BIGINT, $18::BYTEA, $19::BYTEA, $20::BYTEA, "
    "$21::BIGINT, $22::BIGINT) RETURNING holdfast.sessions.number"
)
UPDATE_SESSION = (
    "UPDATE holdfast.sessions SET version=$1::BIGINT, writer=$2::UUID, agent=$3::BYTEA, "
    "updated=$4::BIGINT, ttl=$5::BIGINT, marked=$6::BIGINT, seq=$7::BIGINT, branch=$8::INTEGER, "
    "branches=$9::INTEGER, token=$10::BIGINT, owner=$11::BYTEA, process=$12::BYTEA, "
    'boot=$13::BYTEA, until=$14::BIGINT, "check"=$15::BIGINT WHERE holdfast.sessions.session = '
    "$16::UUID"
)
WATCH_SESSION = (
    "UPDATE holdfast.sessions SET watched=((extract(epoch FROM clock_timestamp()) * 1000)::bigint "
    "+ $1::BIGINT) WHERE holdfast.sessions.session = $2::UUID"
)
FIND_VERSION = (
    "SELECT holdfast.sessions.version \n"
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.session = $1::UUID"
)
DELETE_SESSION = "DELETE FROM holdfast.sessions WHERE holdfast.sessions.session = $1::UUID"
FIND_DOCUMENT = (
    "SELECT holdfast.documents.body, holdfast.documents.digest \n"
    "FROM holdfast.documents \n"
    "WHERE holdfast.documents.session = $1::UUID"
)
INSERT_DOCUMENT = (
    'INSERT INTO holdfast.documents (session, tenant, body, "check", digest) VALUES ($1::UUID, '
    "$2::UUID, $3::BYTEA, $4::BIGINT, $5::BYTEA)"
)
UPDATE_DOCUMENT = (
    'UPDATE holdfast.documents SET body=$1::BYTEA, "check"=$2::BIGINT, digest=$3::BYTEA WHERE '
    "holdfast.documents.session = $4::UUID"
)
DELETE_DOCUMENT = "DELETE FROM holdfast.documents WHERE holdfast.documents.session = $1::UUID"
NEWEST = {
    False: (
        "SELECT holdfast.sessions.session, holdfast.sessions.number, holdfast.sessions.id, "
        "holdfast.sessions.updated, holdfast.sessions.key, holdfast.sessions.agent, "
        'holdfast.documents.body, holdfast.documents."check" \n'
        "FROM holdfast.sessions JOIN holdfast.documents ON holdfast.documents.session = "
        "holdfast.sessions.session \n"
        "WHERE holdfast.sessions.tenant = $1::UUID AND holdfast.sessions.updated >= $2::BIGINT AND "
        "holdfast.sessions.updated < $3::BIGINT AND (holdfast.sessions.updated, "
        "holdfast.sessions.number) < ($4::BIGINT, $5::BIGINT) ORDER BY holdfast.sessions.updated "
        "DESC, holdfast.sessions.number DESC \n"
        " LIMIT $6::INTEGER"
    ),
    True: (
        "SELECT holdfast.sessions.session, holdfast.sessions.number, holdfast.sessions.id, "
        "holdfast.sessions.updated, holdfast.sessions.key, holdfast.sessions.agent, "
        'holdfast.documents.body, holdfast.documents."check" \n'
        "FROM holdfast.sessions JOIN holdfast.documents ON holdfast.documents.session = "
        "holdfast.sessions.session \n"
        "WHERE holdfast.sessions.tenant = $1::UUID AND holdfast.sessions.updated >= $2::BIGINT AND "
        "holdfast.sessions.updated < $3::BIGINT AND (holdfast.sessions.updated, "
        "holdfast.sessions.number) < ($4::BIGINT, $5::BIGINT) AND holdfast.sessions.agent = "
        "$6::BYTEA ORDER BY holdfast.sessions.updated DESC, holdfast.sessions.number DESC \n"
        " LIMIT $7::INTEGER"
    ),
}
OVERDUE = (
    "SELECT holdfast.sessions.session, holdfast.sessions.version, holdfast.sessions.watched, "
    "holdfast.sessions.indexed, holdfast.sessions.writer, holdfast.sessions.number, "
    "holdfast.sessions.id, holdfast.sessions.key, holdfast.sessions.agent, "
    "holdfast.sessions.created, holdfast.sessions.updated, holdfast.sessions.ttl, "
    "holdfast.sessions.marked, holdfast.sessions.seq, holdfast.sessions.branch, "
    "holdfast.sessions.branches, holdfast.sessions.token, holdfast.sessions.owner, "
    "holdfast.sessions.process, holdfast.sessions.boot, holdfast.sessions.until, "
    'holdfast.sessions."check", (extract(epoch FROM clock_timestamp()) * 1000)::bigint \n'
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.tenant = $1::UUID AND holdfast.sessions.due < $2::BIGINT AND "
    "(holdfast.sessions.marked IS NULL OR holdfast.sessions.marked < $3::BIGINT OR "
    "holdfast.sessions.marked > $2::BIGINT) ORDER BY holdfast.sessions.due \n"
    " LIMIT $4::INTEGER FOR UPDATE SKIP LOCKED"
)
FIND_LINES = (
    "SELECT holdfast.branches.number, holdfast.branches.name, holdfast.branches.parent, "
    "holdfast.branches.fork, holdfast.branches.base, holdfast.branches.head, "
    'holdfast.branches.count, holdfast.branches.link, holdfast.branches."check" \n'
    "FROM holdfast.branches \n"
    "WHERE holdfast.branches.session = $1::UUID"
)
INSERT_LINE = (
    "INSERT INTO holdfast.branches (session, number, tenant, name, parent, fork, base, head, "
    'count, link, "check") VALUES ($1::UUID, $2::INTEGER, $3::UUID, $4::BYTEA, $5::INTEGER, '
    "$6::BIGINT, $7::BIGINT, $8::BIGINT, $9::BIGINT, $10::BYTEA, $11::BIGINT)"
)
UPDATE_LINE = (
    "UPDATE holdfast.branches SET head=$1::BIGINT, count=$2::BIGINT, link=$3::BYTEA, "
    '"check"=$4::BIGINT WHERE holdfast.branches.session = $5::UUID AND holdfast.branches.number = '
    "$6::INTEGER"
)
DELETE_LINES = "DELETE FROM holdfast.branches WHERE holdfast.branches.session = $1::UUID"
ROW = ("seq", "branch", "position", "kind", "check", "link", "salt", "payload", "holes", "seal")
INSERT_ROW = (
    'INSERT INTO holdfast.entries (session, seq, tenant, rid, branch, position, kind, "check", '
    "link, salt, payload, holes) VALUES ($1::UUID, $2::BIGINT, $3::UUID, "
    "nextval('holdfast.entries_order'), $4::INTEGER, $5::BIGINT, $6::BYTEA, $7::BIGINT, $8::BYTEA, "
    "$9::BYTEA, $10::BYTEA, $11::BYTEA)"
)
FIND_ROW = (
    "SELECT holdfast.entries.seq, holdfast.entries.branch, holdfast.entries.position, "
    'holdfast.entries.kind, holdfast.entries."check", holdfast.entries.link, '
    "holdfast.entries.salt, holdfast.entries.payload, holdfast.entries.holes, "
    "holdfast.entries.seal \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.seq = $2::BIGINT"
)
FIND_FIELDS = (
    'SELECT holdfast.entries.seq, holdfast.entries."check", CASE WHEN (holdfast.entries.holes IS '
    "NULL) THEN holdfast.entries.payload END AS anon_1 \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.branch = $2::INTEGER AND "
    "holdfast.entries.seq > $3::BIGINT AND holdfast.entries.seq <= $4::BIGINT AND "
    "holdfast.entries.position >= $5::BIGINT ORDER BY holdfast.entries.seq \n"
    " LIMIT $6::INTEGER"
)
FIND_ROWS = (
    "SELECT holdfast.entries.seq, holdfast.entries.branch, holdfast.entries.position, "
    'holdfast.entries.kind, holdfast.entries."check", holdfast.entries.link, '
    "holdfast.entries.salt, holdfast.entries.payload, holdfast.entries.holes, "
    "holdfast.entries.seal \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.branch = $2::INTEGER AND "
    "holdfast.entries.seq > $3::BIGINT AND holdfast.entries.seq <= $4::BIGINT ORDER BY "
    "holdfast.entries.seq \n"
    " LIMIT $5::INTEGER"
)
FIND_FOLDS = (
    "SELECT holdfast.entries.seq, holdfast.entries.branch, holdfast.entries.position, "
    'holdfast.entries.kind, holdfast.entries."check", holdfast.entries.link, '
    "holdfast.entries.salt, holdfast.entries.payload, holdfast.entries.holes, "
    "holdfast.entries.seal \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.branch = $2::INTEGER AND "
    "holdfast.entries.seq > $3::BIGINT AND holdfast.entries.seq <= $4::BIGINT AND "
    "holdfast.entries.kind = '\\x666f6c64'::bytea ORDER BY holdfast.entries.seq"
)
FIND_NEWS = (
    "SELECT holdfast.entries.seq, holdfast.entries.branch, holdfast.entries.position, "
    'holdfast.entries.kind, holdfast.entries."check", holdfast.entries.link, '
    "holdfast.entries.salt, holdfast.entries.payload, holdfast.entries.holes, "
    "holdfast.entries.seal \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.seq > $2::BIGINT ORDER BY "
    "holdfast.entries.seq \n"
    " LIMIT $3::INTEGER"
)
FIND_PLACE = (
    "SELECT holdfast.entries.seq \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.branch = $2::INTEGER AND "
    "holdfast.entries.position < $3::BIGINT AND holdfast.entries.position % 64 = 0 AND "
    "holdfast.entries.kind = '\\x6d657373616765'::bytea ORDER BY holdfast.entries.position DESC \n"
    " LIMIT 1"
)
FIND_ROWS_AT = (
    "SELECT holdfast.entries.session, holdfast.entries.seq, holdfast.entries.branch, "
    'holdfast.entries.position, holdfast.entries.kind, holdfast.entries."check", '
    "holdfast.entries.link, holdfast.entries.salt, holdfast.entries.payload, "
    "holdfast.entries.holes, holdfast.entries.seal \n"
    "FROM holdfast.entries JOIN unnest($1::UUID[], $2::BIGINT[]) AS anon_1(session, seq) ON "
    "holdfast.entries.session = anon_1.session AND holdfast.entries.seq = anon_1.seq"
)
FIND_LINK = (
    "SELECT holdfast.entries.link \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.seq = $2::BIGINT"
)
ERASE_ROW = (
    'UPDATE holdfast.entries SET "check"=$1::BIGINT, salt=$2::BYTEA, payload=$3::BYTEA, '
    "holes=$4::BYTEA, seal=$5::BYTEA WHERE holdfast.entries.session = $6::UUID AND "
    "holdfast.entries.seq = $7::BIGINT"
)
DELETE_ROWS = "DELETE FROM holdfast.entries WHERE holdfast.entries.session = $1::UUID"
FIND_BLOB = (
    "SELECT holdfast.blobs.data \n"
    "FROM holdfast.blobs \n"
    "WHERE holdfast.blobs.session = $1::UUID AND holdfast.blobs.digest = $2::BYTEA"
)
ADD_BLOB = (
    "INSERT INTO holdfast.blobs (session, digest, tenant, count, salt, data) VALUES ($1::UUID, "
    "$2::BYTEA, $3::UUID, $4::BIGINT, $5::BYTEA, $6::BYTEA) ON CONFLICT (session, digest) DO "
    "UPDATE SET count = (holdfast.blobs.count + excluded.count)"
)
LEAVE_BLOB = (
    "UPDATE holdfast.blobs SET count=(holdfast.blobs.count - 1) WHERE holdfast.blobs.session = "
    "$1::UUID AND holdfast.blobs.digest = $2::BYTEA"
)
DELETE_UNUSED_BLOBS = (
    "DELETE FROM holdfast.blobs WHERE holdfast.blobs.session = $1::UUID AND holdfast.blobs.count "
    "<= 0"
)
DELETE_BLOBS = "DELETE FROM holdfast.blobs WHERE holdfast.blobs.session = $1::UUID"
ONCE = ("salt", "digest", "first", "last", "branch", "messages", "check")
FIND_ONCE = (
    "SELECT holdfast.once.salt, holdfast.once.digest, holdfast.once.first, holdfast.once.last, "
    'holdfast.once.branch, holdfast.once.messages, holdfast.once."check" \n'
    "FROM holdfast.once \n"
    "WHERE holdfast.once.session = $1::UUID AND holdfast.once.name = $2::BYTEA"
)
INSERT_ONCE = (
    "INSERT INTO holdfast.once (session, name, tenant, salt, digest, first, last, branch, "
    'messages, "check") VALUES ($1::UUID, $2::BYTEA, $3::UUID, $4::BYTEA, $5::BYTEA, $6::BIGINT, '
    "$7::BIGINT, $8::BYTEA, $9::BIGINT, $10::BIGINT)"
)
FIND_NAMED_AFTER = (
    "SELECT holdfast.once.name, holdfast.once.salt, holdfast.once.digest, holdfast.once.first, "
    'holdfast.once.last, holdfast.once.branch, holdfast.once.messages, holdfast.once."check" \n'
    "FROM holdfast.once \n"
    "WHERE holdfast.once.session = $1::UUID AND holdfast.once.name > $2::BYTEA ORDER BY "
    "holdfast.once.name \n"
    " LIMIT $3::INTEGER"
)
FORGET_ONCE = (
    "UPDATE holdfast.once SET salt=NULL, digest=NULL WHERE holdfast.once.session = $1::UUID AND "
    "holdfast.once.first <= $2::BIGINT AND holdfast.once.last >= $2::BIGINT"
)
DELETE_ONCE = "DELETE FROM holdfast.once WHERE holdfast.once.session = $1::UUID"
FIND_DRAFT = (
    "SELECT holdfast.drafts.number, holdfast.drafts.digest, holdfast.drafts.data \n"
    "FROM holdfast.drafts \n"
    "WHERE holdfast.drafts.session = $1::UUID AND holdfast.drafts.number > $2::INTEGER ORDER BY "
    "holdfast.drafts.number"
)
INSERT_DRAFT = (
    "INSERT INTO holdfast.drafts (session, number, tenant, digest, data) VALUES ($1::UUID, "
    "$2::INTEGER, $3::UUID, $4::BYTEA, $5::BYTEA)"
)
LAST_CHUNK = (
    "SELECT max(holdfast.drafts.number) AS max_1 \n"
    "FROM holdfast.drafts \n"
    "WHERE holdfast.drafts.session = $1::UUID"
)
DELETE_DRAFT = "DELETE FROM holdfast.drafts WHERE holdfast.drafts.session = $1::UUID"
FIND_CLOCK = (
    "SELECT holdfast.clocks.seen \nFROM holdfast.clocks \nWHERE holdfast.clocks.tenant = $1::UUID"
)
SAVE_CLOCK = (
    "INSERT INTO holdfast.clocks (tenant, seen) VALUES ($1::UUID, $2::BIGINT) ON CONFLICT (tenant) "
    "DO UPDATE SET seen = excluded.seen"
)
ADD_TENANT = (
    "INSERT INTO holdfast.tenants (tenant, name) VALUES ($1::UUID, $2::BYTEA) ON CONFLICT DO "
    "NOTHING"
)
FIND_TENANTS = (
    "SELECT holdfast.tenants.tenant, holdfast.tenants.name \n"
    "FROM holdfast.tenants \n"
    "WHERE holdfast.tenants.tenant > $1::UUID ORDER BY holdfast.tenants.tenant \n"
    " LIMIT $2::INTEGER"
)
HAVE_SESSIONS = (
    "SELECT holdfast.tenants.tenant \n"
    "FROM holdfast.tenants \n"
    "WHERE EXISTS (SELECT * \n"
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.tenant = holdfast.tenants.tenant)"
)
BEHIND = (
    "SELECT holdfast.sessions.session, holdfast.sessions.version, holdfast.sessions.watched, "
    "holdfast.sessions.indexed, holdfast.sessions.writer, holdfast.sessions.number, "
    "holdfast.sessions.id, holdfast.sessions.key, holdfast.sessions.agent, "
    "holdfast.sessions.created, holdfast.sessions.updated, holdfast.sessions.ttl, "
    "holdfast.sessions.marked, holdfast.sessions.seq, holdfast.sessions.branch, "
    "holdfast.sessions.branches, holdfast.sessions.token, holdfast.sessions.owner, "
    "holdfast.sessions.process, holdfast.sessions.boot, holdfast.sessions.until, "
    'holdfast.sessions."check", (extract(epoch FROM clock_timestamp()) * 1000)::bigint \n'
    "FROM holdfast.sessions \n"
    "WHERE holdfast.sessions.tenant = $1::UUID AND holdfast.sessions.session > $2::UUID AND "
    "holdfast.sessions.indexed < holdfast.sessions.seq ORDER BY holdfast.sessions.session \n"
    " LIMIT $3::INTEGER"
)
UNREAD = (
    "SELECT holdfast.entries.rid, holdfast.entries.seq, holdfast.entries.branch, "
    'holdfast.entries.position, holdfast.entries.kind, holdfast.entries."check", '
    "holdfast.entries.link, holdfast.entries.salt, holdfast.entries.payload, "
    "holdfast.entries.holes, holdfast.entries.seal \n"
    "FROM holdfast.entries \n"
    "WHERE holdfast.entries.session = $1::UUID AND holdfast.entries.seq > $2::BIGINT AND "
    "holdfast.entries.seq <= $3::BIGINT AND holdfast.entries.kind = '\\x6d657373616765'::bytea "
    "ORDER BY holdfast.entries.seq \n"
    " LIMIT $4::INTEGER"
)
SET_INDEXED = (
    "UPDATE holdfast.sessions SET indexed=$1::BIGINT WHERE holdfast.sessions.session = $2::UUID"
)
ADD_WORDS = (
    "INSERT INTO holdfast.words (session, seq, rid, words) VALUES ($1::UUID, $2::BIGINT, "
    "$3::BIGINT, $4::BIGINT[]) ON CONFLICT DO NOTHING"
)
FIND_WORDS = (
    "SELECT holdfast.words.rid, holdfast.words.session, holdfast.words.seq \n"
    "FROM holdfast.words \n"
    "WHERE holdfast.words.words @> $1::BIGINT[] AND holdfast.words.rid < $2::BIGINT ORDER BY "
    "holdfast.words.rid DESC \n"
    " LIMIT $3::INTEGER"
)
FORGET_WORDS = (
    "DELETE FROM holdfast.words WHERE holdfast.words.session = $1::UUID AND holdfast.words.seq = "
    "$2::BIGINT"
)
DELETE_WORDS = "DELETE FROM holdfast.words WHERE holdfast.words.session = $1::UUID"
FIND_FORMAT = "SELECT holdfast.format.version \nFROM holdfast.format"
SAVE_FORMAT = (
    "INSERT INTO holdfast.format (one, version) VALUES (true, $1::INTEGER) ON CONFLICT (one) DO "
    "UPDATE SET version = $1::INTEGER RETURNING holdfast.format.one"
)
EVERYTHING = (DELETE_ROWS, DELETE_WORDS, DELETE_LINES, DELETE_ONCE, DELETE_DRAFT, DELETE_BLOBS)
