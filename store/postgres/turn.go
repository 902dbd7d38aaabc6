package postgres

import (
	"context"
	"time"
)

// lockClass is the first half of the keys of the advisory locks of cells.
const lockClass = 1398226516

// Turn is the right to take a cell over, of one connection. It is a hint: only the fence
// of the log is safe.
type Turn struct{ conn *conn }

// AwaitTurn waits until no other node owns the cell or is about to: its connection has
// ended, as at once when its process dies, or its lease has not been renewed for
// LeaseTime of this node's clock; then its connections are terminated.
func (n *Node) AwaitTurn(ctx context.Context, l *Cell) (*Turn, error) {
	seen := ""
	for {
		t, err := n.awaitTurn(ctx, l, &seen)
		if err == nil || ctx.Err() != nil {
			return t, err
		}
		pause(ctx, reconnectPause)
	}
}

func (n *Node) awaitTurn(ctx context.Context, l *Cell, seen *string) (*Turn, error) {
	c, err := n.database.connect(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.server(ctx)
	if err == nil && *seen != "" && s.Started != *seen {
		pause(ctx, restartGrace)
	}
	if err == nil {
		*seen = s.Started
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go n.watchHolder(watching, l)
		_, err = c.exec(ctx, "SELECT pg_advisory_lock($1::bigint::integer, $2::bigint::integer)", lockClass, l.id)
	}
	if err != nil {
		c.drop()
		return nil, err
	}
	return &Turn{c}, nil
}

const holder = `SELECT a.application_name, a.pid::bigint, coalesce(n.beat, -1) FROM pg_locks l
	JOIN pg_stat_activity a ON a.pid = l.pid LEFT JOIN node n ON a.application_name = 'switchboard ' || n.name
	WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.objid = $2 AND l.granted AND a.pid <> pg_backend_pid()
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// watchHolder terminates the connections of the node that holds the cell when it stops
// renewing its lease.
func (n *Node) watchHolder(ctx context.Context, l *Cell) {
	var name string
	var pid, beat int64
	since := time.Now()
	for {
		select {
		case <-time.After(renewEvery / 4):
		case <-ctx.Done():
			return
		}
		asking, cancel := context.WithTimeout(ctx, LeaseTime)
		_ = n.database.with(asking, func(ctx context.Context, c *conn) error {
			got, err := c.exec(ctx, holder, lockClass, l.id)
			switch {
			case err != nil || len(got.rows) == 0:
				since = time.Now() // what is not seen does not age
				return err
			case got.rows[0].text(0) != name || got.rows[0].int(1) != pid || got.rows[0].int(2) != beat:
				name, pid, beat = got.rows[0].text(0), got.rows[0].int(1), got.rows[0].int(2)
				since = time.Now()
			case time.Since(since) >= LeaseTime:
				_, err = c.exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 "+
					"AND usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()", name)
			}
			return err
		})
		cancel()
	}
}

// Held reports whether the turn goes on.
func (t *Turn) Held(ctx context.Context) bool {
	return t.conn.pg.Ping(ctx) == nil
}

// End gives the turn to the next node.
func (t *Turn) End() { t.conn.drop() }

// NodeName is the Options.Name of a node's connections, by which others end them.
func NodeName(node string) string { return "switchboard " + node }
