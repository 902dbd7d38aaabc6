package postgres

import (
	"context"
	"fmt"
)

// version is that of the tables.
const version = 1

// tables makes version 1. The one row of a cell is updated by each append: room in its
// page lets PostgreSQL do that without the index. Entries are not compressed: the time of
// an append counts. snapshot holds the parts of snapshots, snapshots those that are
// published; blob holds the parts of files; lost notes cells that have lost commits.
const tables = `BEGIN;
SELECT pg_advisory_xact_lock(1398226516, 0);
CREATE SCHEMA IF NOT EXISTS switchboard;
CREATE TABLE IF NOT EXISTS switchboard.version (number integer NOT NULL);
CREATE TABLE IF NOT EXISTS switchboard.cell (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  epoch bigint NOT NULL DEFAULT 0,
  incarnation bytea NOT NULL DEFAULT '',
  node text NOT NULL DEFAULT '',
  head bigint NOT NULL DEFAULT 0,
  hash bytea NOT NULL DEFAULT '',
  schema integer NOT NULL DEFAULT 0,
  first bigint NOT NULL DEFAULT 0,
  snapshot bigint NOT NULL DEFAULT 0,
  snapshot_head bigint NOT NULL DEFAULT 0,
  snapshot_hash bytea NOT NULL DEFAULT '',
  touched bigint NOT NULL DEFAULT 0,
  uploads bigint NOT NULL DEFAULT 0,
  ended text NOT NULL DEFAULT '',
  mark text NOT NULL DEFAULT gen_random_uuid()::text,
  wanted text NOT NULL DEFAULT '',
  ready text NOT NULL DEFAULT '',
  gone boolean NOT NULL DEFAULT false
) WITH (fillfactor = 25);
CREATE TABLE IF NOT EXISTS switchboard.log (
  cell integer NOT NULL,
  position bigint NOT NULL,
  entry bytea NOT NULL,
  PRIMARY KEY (cell, position)
);
ALTER TABLE switchboard.log ALTER COLUMN entry SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS switchboard.snapshot (
  cell integer NOT NULL,
  id bigint NOT NULL,
  part integer NOT NULL,
  bytes bytea NOT NULL,
  stored timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (cell, id, part)
);
CREATE TABLE IF NOT EXISTS switchboard.snapshots (
  cell integer NOT NULL,
  id bigint NOT NULL,
  head bigint NOT NULL,
  hash bytea NOT NULL,
  size bigint NOT NULL,
  made timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (cell, id)
);
CREATE TABLE IF NOT EXISTS switchboard.file (
  cell integer NOT NULL,
  hash text NOT NULL,
  stored timestamptz NOT NULL DEFAULT now(),
  dropped timestamptz,
  PRIMARY KEY (cell, hash)
);
CREATE TABLE IF NOT EXISTS switchboard.blob (
  cell integer NOT NULL,
  hash text NOT NULL,
  part integer NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (cell, hash, part)
);
CREATE TABLE IF NOT EXISTS switchboard.node (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  incarnation bytea NOT NULL DEFAULT '',
  beat bigint NOT NULL DEFAULT 0,
  version text NOT NULL,
  state text NOT NULL DEFAULT 'starting',
  draining boolean NOT NULL DEFAULT false,
  report text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS switchboard.told (
  node text PRIMARY KEY,
  address text NOT NULL,
  facts text NOT NULL
);
CREATE TABLE IF NOT EXISTS switchboard.lost (
  cell integer PRIMARY KEY,
  epoch bigint NOT NULL,
  head bigint NOT NULL
);
INSERT INTO switchboard.version SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM switchboard.version);
COMMIT`

// createTables makes the tables unless they are there, and refuses those of a newer
// version.
func createTables(ctx context.Context, c *conn) error {
	got, err := c.exec(ctx, "SELECT to_regclass('switchboard.lost') IS NOT NULL")
	if err != nil {
		return err
	}
	if got.rows[0].int(0) == 0 {
		if _, err := c.script(ctx, tables); err != nil {
			return fmt.Errorf("make the tables (the user needs CREATE on the database): %w", err)
		}
	}
	got, err = c.exec(ctx, "SELECT number FROM switchboard.version")
	switch {
	case err != nil:
		return err
	case len(got.rows) != 1 || got.rows[0].int(0) != version:
		return fmt.Errorf("%w: its tables are of another version of Switchboard than %d", ErrUnfit, version)
	}
	return nil
}
