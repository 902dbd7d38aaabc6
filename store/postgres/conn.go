package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// conn is one checked connection. Only drop may be called while another call runs.
type conn struct {
	pg      *pgconn.PgConn
	warning error  // the first one since a statement began
	started string // when its backend started
	used    time.Time

	notified bool // since it was set to false
	appends  bool // the statement of appends is prepared
	settled  bool // see settle
	dropped  atomic.Bool
}

var (
	errNoCancel = errors.New("a statement is never cancelled")
	errWarned   = errors.New("PostgreSQL warned")
)

// connect makes and checks a connection.
func (d *Database) connect(ctx context.Context) (*conn, error) {
	config := d.config.Copy()
	var done atomic.Bool
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3,
	}}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if done.Load() { // pgconn connects for this only: to have the server cancel a statement
			return nil, errNoCancel
		}
		return dialer.DialContext(ctx, network, address)
	}
	var c *conn
	config.ValidateConnect = func(ctx context.Context, pg *pgconn.PgConn) error {
		c = &conn{pg: pg}
		pg.CustomData()[connKey] = c
		return c.check(ctx)
	}
	_, err := pgconn.ConnectConfig(ctx, config)
	done.Store(true)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return c, nil
}

// Unreachable reports whether err means that PostgreSQL can't be reached or takes no
// connections now: trying again later may help. ErrUnfit or a wrong password stay.
func Unreachable(err error) bool {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok { // classes of Appendix A of PostgreSQL's documentation
		return slices.Contains([]string{"08", "53", "57"}, refused.Code[:2])
	}
	var connecting *pgconn.ConnectError
	var network net.Error
	return !errors.Is(err, ErrUnfit) && !errors.Is(err, context.Canceled) &&
		(errors.As(err, &connecting) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF))
}

const connKey = "conn"

// notice keeps a warning: a wait for the standby that was cancelled is one.
func notice(pg *pgconn.PgConn, n *pgconn.Notice) {
	c, _ := pg.CustomData()[connKey].(*conn)
	if c != nil && c.warning == nil && n.SeverityUnlocalized == "WARNING" {
		c.warning = fmt.Errorf("%w: %s: %s", errWarned, n.Message, n.Detail)
	}
}

// drop closes the connection at once. A statement that runs on it may still happen. It
// asks pgconn nothing, whose state belongs to the goroutine that runs the statement.
func (c *conn) drop() {
	c.dropped.Store(true)
	_ = c.pg.Conn().Close()
}

// closed reports whether the connection cannot be used any more.
func (c *conn) closed() bool { return c.dropped.Load() || c.pg.IsClosed() }

// notified keeps that a notification came.
func notified(pg *pgconn.PgConn, _ *pgconn.Notification) {
	if c, ok := pg.CustomData()[connKey].(*conn); ok {
		c.notified = true
	}
}

// row is what a statement returned: bytea, text and numbers in PostgreSQL's binary form.
type row [][]byte

func (r row) int(i int) int64 {
	switch len(r[i]) {
	case 8:
		return int64(binary.BigEndian.Uint64(r[i])) //nolint:gosec // a bigint
	case 4:
		return int64(int32(binary.BigEndian.Uint32(r[i]))) //nolint:gosec // an integer
	case 1:
		return int64(r[i][0]) // a boolean
	}
	return 0
}

func (r row) text(i int) string { return string(r[i]) }

// result is what a statement did.
type result struct {
	rows     []row
	affected int64
}

// Object ids of PostgreSQL's types.
const (
	oidBytea = 17
	oidInt8  = 20
	oidText  = 25
)

// parameters encodes int64, int, string and []byte as bigint, text and bytea.
func parameters(args []any) (values [][]byte, oids []uint32, formats []int16) {
	for _, a := range args {
		switch a := a.(type) {
		case int:
			values, oids = append(values, bigint(int64(a))), append(oids, oidInt8)
		case int64:
			values, oids = append(values, bigint(a)), append(oids, oidInt8)
		case string:
			values, oids = append(values, []byte(a)), append(oids, oidText)
		case []byte:
			values, oids = append(values, a), append(oids, oidBytea)
		default:
			panic(fmt.Sprintf("postgres: a parameter of type %T", a))
		}
		formats = append(formats, 1)
	}
	return values, oids, formats
}

func bigint(n int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(n)) //nolint:gosec // as the server reads it
}

// exec runs one statement in a transaction of its own. An error of class errWarned means
// that it is committed here, and perhaps not on the standby.
func (c *conn) exec(ctx context.Context, sql string, args ...any) (result, error) {
	c.warning = nil
	values, oids, formats := parameters(args)
	got := c.pg.ExecParams(ctx, sql, values, oids, formats, []int16{1}).Read()
	return c.finish(got)
}

// settle waits, once for a connection, until what it sees is on the synchronous standby. A
// server that crashed and started again shows commits that still waited for the standby; a
// commit after them waits for them, too.
func (c *conn) settle(ctx context.Context) error {
	if c.settled {
		return nil
	}
	_, err := c.exec(ctx, "SELECT pg_logical_emit_message(true, 'switchboard', '')") // the least commit that waits
	c.settled = err == nil
	return err
}

func (c *conn) finish(got *pgconn.Result) (result, error) {
	r := result{affected: got.CommandTag.RowsAffected()}
	for _, values := range got.Rows {
		r.rows = append(r.rows, values)
	}
	if got.Err != nil {
		return result{}, got.Err
	}
	return r, c.warning
}

// script runs several statements, sent at once, so that the server finishes them also if
// this process is stopped meanwhile. It returns their results, in text form.
func (c *conn) script(ctx context.Context, sql string) ([]result, error) {
	c.warning = nil
	got, err := c.pg.Exec(ctx, sql).ReadAll()
	var all []result
	for _, g := range got {
		r, failed := c.finish(g)
		if err == nil {
			err = failed
		}
		all = append(all, r)
	}
	return all, err
}
