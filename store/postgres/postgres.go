// Package postgres keeps commit logs in PostgreSQL: package commitlog's Log and Blobs for
// each cell, and the leases of the nodes that serve them.
//
// # Promises
//
// An entry is appended by one statement that checks epoch, incarnation and predecessor,
// so a writer that was replaced appends nothing, however late its statement runs. An
// append is durable when PostgreSQL reported its commit without a warning: with a
// synchronous standby, also there. A statement that was sent is never cancelled, because
// a wait for the standby that is cancelled reports success. Each connection is checked
// before its first use: it leads to a primary, directly, and a commit on it is durable.
//
// Leases and locks only say when to take over; no promise about data rests on them.
//
// # Not promised
//
// Where PostgreSQL loses commits that it has reported (a failover without a synchronous
// standby), entries are lost. Readers see that: their position is not in the log.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnfit means that the server or the way to it cannot keep the promises.
var ErrUnfit = errors.New("PostgreSQL cannot be used like this")

// Options configure a Database.
type Options struct {
	// DSN is a connection string or URL. Variables of the environment such as PGHOST
	// apply, as with psql.
	DSN string
	// Name shows people in pg_stat_activity what this process is.
	Name string
}

// connectTimeout bounds the making of a connection.
const connectTimeout = 5 * time.Second

// Database is one PostgreSQL database that holds cells. It is safe for concurrent use.
type Database struct {
	config      *pgconn.Config
	incarnation [16]byte      // of this process
	appends     chan struct{} // holds one for each connection that appends
	others      chan struct{} // and for each one that does something else
	files       chan struct{} // and for each of those that stores a file of a message

	mu     sync.Mutex
	idle   []*conn // the one used last at the end
	closed bool
}

// The pool has at most these connections, however many cells there are. A node has one
// more for itself, and one for each other node.
const (
	appendMost = 8
	otherMost  = 4
	filesMost  = 2 // of the others: a file takes its time
)

const (
	idleMost  = 2                // connections that wait for longer than idleLong
	idleLong  = 30 * time.Second // after which others are closed
	idleFresh = time.Second      // a connection that was used this lately is taken as it is
)

// Open connects to a database, checks it, and makes the tables that are missing.
func Open(ctx context.Context, o Options) (*Database, error) {
	config, err := pgconn.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("read the connection string of PostgreSQL: %w", withoutDSN(err))
	}
	if err := secure(config); err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	d := &Database{
		config: config, appends: make(chan struct{}, appendMost), others: make(chan struct{}, otherMost),
		files: make(chan struct{}, filesMost),
	}
	_, _ = rand.Read(d.incarnation[:])
	config.RuntimeParams["application_name"] = processName(d.incarnation[:]) + o.Name
	config.OnNotice = notice
	config.OnNotification = notified
	if err := d.with(ctx, createTables); err != nil {
		d.Close()
		return nil, fmt.Errorf("open the database of the cluster: %w", err)
	}
	return d, nil
}

// withoutDSN keeps a connection string, which may hold a password, out of an error.
func withoutDSN(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return errors.New("it has mistakes (see the documentation of libpq on connection strings)")
}

// Close closes the connections that are not in use. Those of tenures and leases end with
// these.
func (d *Database) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.idle {
		c.drop()
	}
	d.idle = nil
}

// insufficientPrivilege is a code of PostgreSQL.
const insufficientPrivilege = "42501"

// with calls f with a connection of its own, of which there are otherMost: f must not call
// with. After an error of f the connection is used again only if it is in order.
func (d *Database) with(ctx context.Context, f func(context.Context, *conn) error) error {
	select {
	case d.others <- struct{}{}:
		defer func() { <-d.others }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := d.take(ctx)
	if err != nil {
		return err
	}
	err = f(ctx, c)
	d.put(c)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == insufficientPrivilege {
		err = fmt.Errorf("%w: connect as the user that owns the database and its tables", err)
	}
	return err
}

// put gives a connection back.
func (d *Database) put(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || c.closed() || c.pg.TxStatus() != 'I' {
		if c.closed() { // what ended it has probably ended the others, too
			for _, idle := range d.idle {
				idle.drop()
			}
			d.idle = nil
		}
		c.drop()
		return
	}
	c.used = time.Now()
	d.idle = append(d.idle, c)
	for len(d.idle) > idleMost && time.Since(d.idle[0].used) > idleLong {
		d.idle[0].drop()
		d.idle = d.idle[1:]
	}
}

func (d *Database) take(ctx context.Context) (*conn, error) {
	for {
		c := d.takeIdle()
		if c == nil {
			return d.connect(ctx)
		}
		if time.Since(c.used) < idleFresh || c.pg.Ping(ctx) == nil { // the server may have closed it meanwhile
			return c, nil
		}
		c.drop()
	}
}

// takeIdle returns the connection that was used last; nil: none is idle.
func (d *Database) takeIdle() (c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.idle); n > 0 {
		c, d.idle = d.idle[n-1], d.idle[:n-1]
	}
	return c
}

// secure refuses a connection over a network that does not prove the server's identity.
func secure(config *pgconn.Config) error {
	check := func(host string, verified bool) error {
		if verified || host == "" || host[0] == '/' || host[0] == '@' || host == "localhost" {
			return nil
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			return nil
		}
		return fmt.Errorf("%w: the connection to %s does not verify the server: set sslmode=verify-full, and "+
			"sslrootcert if its certificate is your own", ErrUnfit, host)
	}
	verified := func(f *pgconn.FallbackConfig) bool {
		t := f.TLSConfig
		return t != nil && (!t.InsecureSkipVerify || t.VerifyPeerCertificate != nil || t.VerifyConnection != nil)
	}
	err := check(config.Host, verified(&pgconn.FallbackConfig{TLSConfig: config.TLSConfig}))
	for _, f := range config.Fallbacks {
		if err == nil {
			err = check(f.Host, verified(f))
		}
	}
	return err
}
