package sqlite

// versionOfBlocks is the first that has the table delivery_block.
const versionOfBlocks = 3

// versionOfBlobs is the first that has the table blob.
const versionOfBlobs = 7

// migrations[i] brings a store from version i to i+1. A released one never
// changes.
var migrations = []string{`
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  topic TEXT NOT NULL,
  key TEXT NOT NULL,
  source TEXT NOT NULL,
  correlation TEXT NOT NULL,
  causation TEXT NOT NULL,
  hop INTEGER NOT NULL,
  dedupe TEXT,
  created_at INTEGER NOT NULL,
  payload BLOB NOT NULL -- last: what follows a long one is slow to reach
);
CREATE UNIQUE INDEX event_dedupe ON event (source, dedupe) WHERE dedupe IS NOT NULL;

CREATE TABLE subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  extension TEXT NOT NULL,
  pattern TEXT NOT NULL,
  parked_at INTEGER NOT NULL,
  UNIQUE (extension, pattern)
);

CREATE TABLE delivery (
  seq INTEGER NOT NULL,
  subscription INTEGER NOT NULL,
  key TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL DEFAULT 0,
  settled_at INTEGER NOT NULL DEFAULT 0,
  uncertain INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  provider_id TEXT NOT NULL DEFAULT '',
  conversation INTEGER NOT NULL DEFAULT 0,
  rank INTEGER NOT NULL,
  resubmitted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (seq, subscription)
) WITHOUT ROWID;
CREATE INDEX delivery_pending ON delivery (subscription, key, rank) WHERE state < 2;
CREATE INDEX delivery_dead ON delivery (seq) WHERE state = 3;

CREATE TABLE kv (
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (owner, key)
) WITHOUT ROWID;

-- The highest version of a key that was deleted: others begin above it.
CREATE TABLE kv_floor (version INTEGER NOT NULL);
INSERT INTO kv_floor VALUES (0);

CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL,
  key TEXT NOT NULL,
  outbound_kind INTEGER NOT NULL,
  outbound_target TEXT NOT NULL,
  conversation INTEGER NOT NULL,
  is_group INTEGER NOT NULL,
  history_seq INTEGER NOT NULL,
  stack TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  active_at INTEGER NOT NULL,
  user_at INTEGER NOT NULL DEFAULT 0,
  UNIQUE (agent, key)
);

CREATE TABLE history (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  row BLOB NOT NULL,
  PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE turn (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  inputs TEXT NOT NULL,
  reply_to TEXT NOT NULL,
  correlation TEXT NOT NULL,
  outcome TEXT NOT NULL,
  used_send INTEGER NOT NULL,
  interrupted INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL
);
CREATE INDEX turn_correlation ON turn (correlation);

CREATE TABLE call (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  provider_id TEXT NOT NULL,
  name TEXT NOT NULL,
  arguments BLOB NOT NULL,
  state INTEGER NOT NULL,
  result TEXT NOT NULL,
  is_error INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL
);
CREATE INDEX call_open ON call (turn) WHERE state < 2;

CREATE TABLE conversation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  handle TEXT NOT NULL UNIQUE,
  channel TEXT NOT NULL,
  address TEXT NOT NULL,
  thread TEXT NOT NULL,
  is_group INTEGER NOT NULL,
  agent TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (channel, address, thread)
);

CREATE TABLE commit_receipt (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  receipt BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX commit_receipt_age ON commit_receipt (created_at);
`, `
ALTER TABLE session ADD COLUMN chain TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN idle TEXT NOT NULL DEFAULT '';
ALTER TABLE turn RENAME COLUMN correlation TO chain;
`, `
-- Deliveries that share rows: see block.go. The id is that of the block, and open
-- is how many deliveries of it are not settled.
CREATE TABLE delivery_block (
  id INTEGER PRIMARY KEY,
  subscription INTEGER NOT NULL,
  open INTEGER NOT NULL,
  content BLOB NOT NULL
);
CREATE INDEX delivery_block_open ON delivery_block (subscription) WHERE open > 0;
`, `
-- Every table has a primary key, so that its changes can be recorded.
ALTER TABLE kv_floor RENAME TO kv_floor_without_key;
CREATE TABLE kv_floor (id INTEGER PRIMARY KEY, version INTEGER NOT NULL);
INSERT INTO kv_floor SELECT 1, max(version) FROM kv_floor_without_key;
DROP TABLE kv_floor_without_key;

-- How often the store was opened.
CREATE TABLE epoch (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);
INSERT INTO epoch SELECT 1, coalesce((SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM kv WHERE owner = 'kernel' AND key = 'run'), 0);
DELETE FROM kv WHERE owner = 'kernel' AND key = 'run';

ALTER TABLE turn ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN owner TEXT NOT NULL DEFAULT '';
`, `
ALTER TABLE session ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN within INTEGER NOT NULL DEFAULT 0;
`, `
ALTER TABLE conversation ADD COLUMN model TEXT NOT NULL DEFAULT '';
`, `
CREATE TABLE blob (
  hash TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  owner TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What keeps a blob: see journal.Keeper. until is that of a hold.
CREATE TABLE blob_keeper (
  kind INTEGER NOT NULL,
  id INTEGER NOT NULL,
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  hash TEXT NOT NULL,
  until INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id, owner, key, hash)
) WITHOUT ROWID;
CREATE INDEX blob_keeper_hash ON blob_keeper (hash);

-- How many bytes the blobs of an owner have.
CREATE TABLE blob_bytes (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
`}
