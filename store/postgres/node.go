package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// LeaseTime is how long a node owns what it owns after it has sent a renewal.
	LeaseTime = 2 * time.Second
	// renewEvery is how often a node renews its lease.
	renewEvery = 500 * time.Millisecond
	// lookEvery is how often a node looks at all nodes and cells, with one query for each.
	lookEvery = 200 * time.Millisecond
	// restartGrace is the time for which a node without its lock is not taken for dead where
	// PostgreSQL may have dropped all locks at once: so that it can take it again.
	restartGrace = time.Second
	// young is how many seconds after its start PostgreSQL counts as started just now.
	young = 5
)

// lockClass is the first half of the keys of the advisory locks of nodes.
const lockClass = 1398226516

// channel is what commands and releases notify.
const channel = "switchboard"

// ErrNameTaken means that another process has the name of this node.
var ErrNameTaken = errors.New("another process runs as this node")

// Node is this process as a member of the cluster. One connection holds its advisory lock,
// which shows that the process lives, renews its lease, and looks at nodes and cells. It is
// safe for concurrent use.
type Node struct {
	database *Database
	id       int64
	name     string
	conn     *conn // of Enter, for the first round of Run

	mu     sync.Mutex
	until  time.Time
	state  string
	report string // told with the next renewal, if it is another one
	told   string
	peers  map[int64]*peer
	looked time.Time // when it looked at them last
	poked  bool
	wake   context.CancelFunc // ends the wait of Run; nil: it does not wait
	locks  int64              // times that the lock was taken
	locked time.Time          // from when on it counts; zero: it is not held
}

// Enter makes this process a node. It waits while an earlier process with the name ends,
// and returns ErrNameTaken if one runs. Run renews the lease.
func (d *Database) Enter(ctx context.Context, name, program string) (*Node, error) {
	n := &Node{database: d, name: name, state: "starting", peers: map[int64]*peer{}}
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		if _, err := c.exec(ctx, `INSERT INTO node (name, version) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name,
			program); err != nil {
			return err
		}
		got, err := c.exec(ctx, "SELECT id FROM node WHERE name = $1", name)
		if err == nil {
			n.id = got.rows[0].int(0)
		}
		return err
	})
	if err == nil {
		n.conn, err = d.connect(ctx)
	}
	if err == nil {
		err = n.claim(ctx)
	}
	if err == nil {
		_, err = n.conn.exec(ctx, "UPDATE node SET incarnation = $2, version = $3, state = 'starting', beat = beat + 1 "+
			"WHERE id = $1", n.id, d.incarnation[:], program)
	}
	if err != nil {
		n.Leave()
		return nil, fmt.Errorf("enter the cluster as %s: %w", name, err)
	}
	return n, nil
}

// claimEvery is how often claim looks.
const claimEvery = 50 * time.Millisecond

// claim takes the lock of the node. Another process that has it and renews its lease
// refuses this one; one that does not is terminated.
func (n *Node) claim(ctx context.Context) error {
	var beat int64
	var since, locked time.Time
	for ; ; pause(ctx, claimEvery) {
		try := ", false"
		if locked.IsZero() {
			try = fmt.Sprintf(", pg_try_advisory_lock(%d, %d)", lockClass, n.id)
		}
		got, err := n.conn.exec(ctx, `SELECT beat, incarnation, state,
			extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::bigint`+try+" FROM node WHERE id = $1", n.id)
		if err != nil {
			return err
		}
		now, r := time.Now(), got.rows[0]
		if r.int(4) != 0 {
			locked = now
		}
		moved := !since.IsZero() && r.int(0) != beat
		if since.IsZero() || moved {
			beat, since = r.int(0), now
		}
		switch stopping := r.text(2) == Stopping; {
		case moved && !stopping:
			return fmt.Errorf("%w: give each machine a name of its own (node in cluster.yaml), or stop the other process",
				ErrNameTaken)
		case !locked.IsZero() && (r.int(3) >= young || now.Sub(locked) >= restartGrace):
			return nil
		case locked.IsZero() && now.Sub(since) >= LeaseTime:
			if err := n.conn.terminate(ctx, r[1]); err != nil {
				return err
			}
		}
	}
}

// Stopping is the state of a node that ends.
const Stopping = "stopping"

// Name is the node's name.
func (n *Node) Name() string { return n.name }

// Until is the end of the lease; zero: there never was one.
func (n *Node) Until() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.until
}

// lock numbers the time for which the lock has been held without a break; 0: it is not, or
// was taken again so lately that another node may still take this one for dead.
func (n *Node) lock() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.locked.IsZero() || time.Now().Before(n.locked) {
		return 0
	}
	return n.locks
}

func (n *Node) hold(from time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.locked = from
	if !from.IsZero() {
		n.locks++
	}
}

// Say sets what the node shows of itself, with its next renewal.
func (n *Node) Say(state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = state
}

// Report sets what the node reports of its cells, in JSON, with its next renewal.
func (n *Node) Report(report string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report = report
}

// Look makes Run look now.
func (n *Node) Look() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.poked = true
	if n.wake != nil {
		n.wake()
	}
}

// Run renews the lease until ctx ends, and calls renewed after each time, and looked with
// what it sees of the cluster. Both must not block. The lease is counted from the sending
// of the renewal, which waits for no standby and no disk: a lease that is lost by that is
// lost early, never late. Run returns ErrNameTaken if another process has become this node.
func (n *Node) Run(ctx context.Context, renewed func(until time.Time), looked func(View)) error {
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	watch := func(p *peer, first bool) {
		watchers.Go(func() { n.watch(watching, p, first) })
	}
	for first := true; ctx.Err() == nil; first = false {
		c := n.conn
		n.conn = nil
		var err error
		if c == nil {
			opening, cancel := context.WithTimeout(ctx, LeaseTime)
			c, err = n.database.connect(opening)
			cancel()
		}
		if err == nil {
			err = n.round(ctx, c, first, watch, renewed, looked)
			n.hold(time.Time{})
			c.drop()
		}
		if errors.Is(err, ErrNameTaken) {
			return err
		}
		pause(ctx, reconnectPause)
	}
	return nil
}

// round works with one connection.
func (n *Node) round(ctx context.Context, c *conn, locked bool, watch func(*peer, bool), renewed func(time.Time),
	looked func(View),
) error {
	for _, sql := range []string{"SET synchronous_commit = off", "LISTEN " + channel} {
		if err := n.bounded(ctx, func(ctx context.Context) error {
			_, err := c.exec(ctx, sql)
			return err
		}); err != nil {
			return err
		}
	}
	if locked {
		n.hold(time.Now())
	}
	n.mu.Lock()
	n.looked = time.Now()
	for _, p := range n.peers {
		p.since = n.looked // what is not seen does not age
	}
	n.mu.Unlock()
	var renew, look time.Time
	for ctx.Err() == nil {
		err := n.bounded(ctx, func(ctx context.Context) (err error) {
			if now := time.Now(); !now.Before(renew) {
				renew = now.Add(renewEvery)
				if err := n.renew(ctx, c, now, renewed); err != nil {
					return err
				}
			}
			if !locked {
				got, err := c.exec(ctx, fmt.Sprintf("SELECT pg_try_advisory_lock(%d, %d)", lockClass, n.id))
				if err != nil {
					return err
				}
				if locked = got.rows[0].int(0) != 0; locked {
					n.hold(time.Now().Add(restartGrace))
				}
			}
			if now := time.Now(); c.notified || n.takePoke() || !now.Before(look) {
				c.notified = false
				look = now.Add(lookEvery)
				v, err := n.look(ctx, c, watch)
				if err != nil {
					return err
				}
				looked(v)
			}
			return nil
		})
		if err == nil {
			err = n.wait(ctx, c, look, renew)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, done := context.WithTimeout(ctx, LeaseTime)
	defer done()
	return f(ctx)
}

func (n *Node) takePoke() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.poked
	n.poked = false
	return was
}

// wait waits for a notification, a call of Look, or a time.
func (n *Node) wait(ctx context.Context, c *conn, times ...time.Time) error {
	until := times[0]
	for _, t := range times {
		if t.Before(until) {
			until = t
		}
	}
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	n.mu.Lock()
	poked := n.poked
	n.wake = cancel
	n.mu.Unlock()
	var err error
	if !poked && !c.notified {
		err = c.pg.WaitForNotification(waiting)
	}
	n.mu.Lock()
	n.wake = nil
	n.mu.Unlock()
	if err != nil && waiting.Err() == nil || c.pg.IsClosed() {
		return errors.Join(err, errors.New("the connection has ended"))
	}
	return nil
}

func (n *Node) renew(ctx context.Context, c *conn, sent time.Time, renewed func(time.Time)) error {
	n.mu.Lock()
	state, report, told := n.state, n.report, n.told
	n.mu.Unlock()
	more, args := "", []any{n.id, n.database.incarnation[:], state}
	if report != told {
		more, args = ", report = $4", append(args, report)
	}
	got, err := c.exec(ctx, "UPDATE node SET beat = beat + 1, state = $3"+more+
		" WHERE id = $1 AND incarnation = $2", args...)
	switch {
	case err != nil:
		return err
	case got.affected == 0:
		return fmt.Errorf("%w: %s", ErrNameTaken, n.name)
	}
	n.mu.Lock()
	n.until, n.told = leaseEnd(sent), report
	n.mu.Unlock()
	renewed(leaseEnd(sent))
	return nil
}

// Leave ends the membership after Run. Others know at once.
func (n *Node) Leave() {
	if n.conn != nil {
		n.conn.drop()
		n.conn = nil
	}
}
