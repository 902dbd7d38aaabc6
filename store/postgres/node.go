package postgres

import (
	"context"
	"crypto/rand"
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
	// restartGrace is what a node that is not the owner waits after PostgreSQL started, so
	// that the owner, whose connections ended too, comes first.
	restartGrace = time.Second
)

// Node is this process as a member of the cluster. It is safe for concurrent use.
type Node struct {
	database    *Database
	name        string
	incarnation [16]byte

	mu    sync.Mutex
	until time.Time
	state string
}

// Enter makes this process a node, whose name no other process may have. Run renews its
// lease.
func (d *Database) Enter(ctx context.Context, name, program string) (*Node, error) {
	n := &Node{database: d, name: name, state: "starting"}
	_, _ = rand.Read(n.incarnation[:])
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, `INSERT INTO node VALUES ($1, $2, 0, $3, 'starting')
			ON CONFLICT (name) DO UPDATE SET incarnation = $2, version = $3, state = 'starting'`,
			name, n.incarnation[:], program)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("enter the cluster as %s: %w", name, err)
	}
	return n, nil
}

// Until is the end of the lease; zero: there never was one.
func (n *Node) Until() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.until
}

// Say sets what the node shows of itself, with its next renewal.
func (n *Node) Say(state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = state
}

// ErrNameTaken means that another process entered the cluster with the name of this node.
var ErrNameTaken = errors.New("another process has the name of this node")

// Run renews the lease until ctx ends, and calls renewed after each time. The lease is
// counted from the sending of the renewal. It waits for no standby and no disk: a lease
// that is lost by that is lost early, never late.
func (n *Node) Run(ctx context.Context, renewed func(until time.Time)) error {
	for ctx.Err() == nil {
		err := n.renewals(ctx, renewed)
		if errors.Is(err, ErrNameTaken) {
			return err
		}
		pause(ctx, 10*reconnectPause)
	}
	return nil
}

func (n *Node) renewals(ctx context.Context, renewed func(until time.Time)) error {
	opening, cancel := context.WithTimeout(ctx, LeaseTime)
	defer cancel()
	c, err := n.database.connect(opening)
	if err != nil {
		return err
	}
	defer c.drop()
	if _, err := c.exec(opening, "SET synchronous_commit = off"); err != nil {
		return err
	}
	for ticks := time.Tick(renewEvery); ; {
		sent := time.Now()
		n.mu.Lock()
		state := n.state
		n.mu.Unlock()
		renewing, done := context.WithTimeout(ctx, LeaseTime)
		got, err := c.exec(renewing, "UPDATE node SET beat = beat + 1, state = $3 WHERE name = $1 AND incarnation = $2",
			n.name, n.incarnation[:], state)
		done()
		switch {
		case err != nil:
			return err
		case got.affected == 0:
			return fmt.Errorf("%w: %s", ErrNameTaken, n.name)
		}
		n.mu.Lock()
		n.until = leaseEnd(sent)
		n.mu.Unlock()
		renewed(leaseEnd(sent))
		select {
		case <-ticks:
		case <-ctx.Done():
			return nil
		}
	}
}

// Member is what is known of a node.
type Member struct {
	Name, Version, State string
	Beat                 int64
}

// Members lists the nodes that ever entered.
func (d *Database) Members(ctx context.Context) (all []Member, err error) {
	err = d.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT name, version, state, beat FROM node ORDER BY name")
		for _, r := range got.rows {
			all = append(all, Member{r.text(0), r.text(1), r.text(2), r.int(3)})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the nodes of the cluster: %w", err)
	}
	return all, nil
}
