package postgres

import (
	"context"
	"fmt"
	"strconv"
)

// oldest is the oldest version of PostgreSQL that this was written for.
const oldest = 13

// settings read what decides whether a commit is durable.
const settings = `SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
	current_setting('server_version_num')::bigint, current_setting('fsync') = 'on',
	current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
	(SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid())`

// session is set for each connection. A transaction that is left open holds locks, so the
// server ends it; and a connection whose other end is gone may hold the node's.
const session = `SET default_transaction_isolation = 'read committed'; SET synchronous_commit = 'on';
	SET idle_in_transaction_session_timeout = '5s'; SET client_min_messages = 'warning';
	SET statement_timeout = 0; SET lock_timeout = 0; SET search_path = switchboard;
	SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3`

// check sets up the session and refuses a server that cannot keep the promises.
func (c *conn) check(ctx context.Context) error {
	if _, err := c.script(ctx, session); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	got, err := c.exec(ctx, settings)
	if err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	r := got.rows[0]
	c.started = r.text(7)
	unfit := ""
	switch {
	case r.int(0) != int64(c.pg.PID()):
		unfit = "a connection pooler is in between: connect to PostgreSQL itself"
	case r.int(1) != 0:
		unfit = "the server is a standby: name the primary, or all servers, in the connection string"
	case r.int(2) != 0:
		unfit = "the server or the database is read-only"
	case r.int(3) < oldest*10000:
		unfit = fmt.Sprintf("the server has version %d: %d or newer is needed", r.int(3)/10000, oldest)
	case r.int(4) == 0:
		unfit = "fsync is off, so a power loss destroys the database: set fsync = on"
	case r.int(5) == 0:
		unfit = "full_page_writes is off, so a power loss can destroy the database: set it on"
	case r.text(6) != "on":
		unfit = "synchronous_commit cannot be set to on"
	}
	if unfit != "" {
		return fmt.Errorf("%w: %s", ErrUnfit, unfit)
	}
	return nil
}

// Server describes a PostgreSQL server for people.
type Server struct {
	Version string
	// Standbys is synchronous_standby_names; empty: commits wait for no standby.
	Standbys string
	// Synchronous counts the standbys that commits wait for and that are connected.
	Synchronous int64
	// Started identifies one run of the server, on one timeline.
	Started string
}

const server = `SELECT current_setting('server_version'), current_setting('synchronous_standby_names'),
	(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
	pg_postmaster_start_time()::text || ' ' || (SELECT timeline_id FROM pg_control_checkpoint())`

// Server returns the description of the server as it is now.
func (d *Database) Server(ctx context.Context) (s Server, err error) {
	err = d.with(ctx, func(ctx context.Context, c *conn) error {
		s, err = c.server(ctx)
		return err
	})
	return s, err
}

func (c *conn) server(ctx context.Context) (Server, error) {
	got, err := c.exec(ctx, server)
	if err != nil {
		return Server{}, fmt.Errorf("read the server's state: %w", err)
	}
	r := got.rows[0]
	return Server{Version: r.text(0), Standbys: r.text(1), Synchronous: r.int(2), Started: r.text(3)}, nil
}

func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}
