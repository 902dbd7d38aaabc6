package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// View is what a node sees of the cluster at one moment.
type View struct {
	Members []Member
	Cells   []Seen
}

// Member is what is known of a node.
type Member struct {
	ID                   int64
	Name, Version, State string
	Beat                 int64
	Draining             bool // it takes no cells and hands over those that it has
	// Live is false if its process has ended, or has not renewed its lease for LeaseTime of
	// this process's clock. What is not known yet counts as live.
	Live bool
	// Report is what it reports of its cells, in JSON; only Database.Look returns it.
	Report string

	incarnation [16]byte
}

// Seen is what is known of a cell.
type Seen struct {
	ID   int64
	Name string
	Mark string // random, of this cell alone, also after another one gets its name
	commitlog.State
	Wanted string // the node that is to own it; empty: any
	Ready  string // the node that is to own it and holds its extensions ready
	Gone   bool   // it is being deleted
	Lost   int64  // the epoch in which ReportLost was called, until Doubted; 0: it was not
	Ended  string // why it has left the cluster; empty: it has not
}

const (
	seeNodes = "SELECT id, name, version, state, beat, draining, incarnation, report FROM node ORDER BY id"
	seeCells = "SELECT " + columns + ", id, name, mark, wanted, ready, gone, " +
		"coalesce((SELECT lost.epoch FROM lost WHERE lost.cell = id), 0) FROM cell ORDER BY id"
)

func view(ctx context.Context, c *conn, nodes string) (v View, err error) {
	got, err := c.exec(ctx, nodes)
	if err != nil {
		return v, fmt.Errorf("look at the nodes: %w", err)
	}
	for _, r := range got.rows {
		m := Member{
			ID: r.int(0), Name: r.text(1), Version: r.text(2), State: r.text(3), Beat: r.int(4), Draining: r.int(5) != 0,
			Live: true,
		}
		copy(m.incarnation[:], r[6])
		if len(r) > 7 {
			m.Report = r.text(7)
		}
		v.Members = append(v.Members, m)
	}
	if got, err = c.exec(ctx, seeCells); err != nil {
		return v, fmt.Errorf("look at the cells: %w", err)
	}
	for _, r := range got.rows {
		v.Cells = append(v.Cells, Seen{
			State: stateOf(r), Ended: r.text(10), ID: r.int(11), Name: r.text(12), Mark: r.text(13), Wanted: r.text(14),
			Ready: r.text(15), Gone: r.int(16) != 0, Lost: r.int(17),
		})
	}
	return v, nil
}

// Look returns the nodes that ever entered and the cells. Which nodes live it does not
// know.
func (d *Database) Look(ctx context.Context) (v View, err error) {
	err = d.with(ctx, func(ctx context.Context, c *conn) error {
		v, err = view(ctx, c, seeNodes)
		return err
	})
	return v, err
}

// peer is another node, as this process sees it.
type peer struct {
	Member
	since    time.Time // when its counter was seen to move last
	dead     bool
	watching bool
}

// see notes what a look showed, and reports whether the peer's lease has stood still for
// LeaseTime. Unseen is how long no look came that should have come: then this process may
// have been stopped, and the peer, too.
func (p *peer) see(m Member, now time.Time, unseen time.Duration) (stale bool) {
	if p.dead && m.incarnation == p.incarnation {
		m.Beat = max(m.Beat, p.Beat) // what it wrote before its end is no sign of life
	}
	if m.Beat != p.Beat || m.incarnation != p.incarnation {
		p.since, p.dead = now, false
	} else {
		p.since = p.since.Add(unseen)
	}
	p.Member = m
	return !p.dead && now.Sub(p.since) >= LeaseTime
}

// look reads the nodes and cells, and which nodes live.
func (n *Node) look(ctx context.Context, c *conn, watch func(p *peer, first bool)) (View, error) {
	v, err := view(ctx, c, "SELECT id, name, version, state, beat, draining, incarnation FROM node ORDER BY id")
	if err != nil {
		return v, err
	}
	now := time.Now()
	var stale []*peer
	n.mu.Lock()
	defer n.mu.Unlock()
	unseen := max(0, now.Sub(n.looked)-2*lookEvery)
	n.looked = now
	for i := range v.Members {
		m := &v.Members[i]
		if m.ID == n.id {
			continue
		}
		p, known := n.peers[m.ID]
		if !known {
			p = &peer{since: now}
			n.peers[m.ID] = p
		}
		if p.see(*m, now, unseen) {
			stale = append(stale, p)
		}
		if !p.dead && !p.watching {
			p.watching = true
			watch(p, !known)
		}
	}
	for _, p := range stale {
		n.mu.Unlock()
		err := c.terminate(ctx, p.incarnation[:])
		n.mu.Lock()
		if err != nil {
			return v, err
		}
		p.dead = true
	}
	for i := range v.Members {
		if p := n.peers[v.Members[i].ID]; p != nil {
			v.Members[i].Live = !p.dead
		}
	}
	return v, nil
}

// terminate ends the connections of a process, so that nothing that it sent before happens
// later and holds a lock meanwhile. It takes no connection of the pool: those may all wait
// for PostgreSQL, and a node that waits for them would lose its lease. PostgreSQL warns of a
// connection that has ended meanwhile, as when other nodes do the same.
func (c *conn) terminate(ctx context.Context, incarnation []byte) error {
	_, err := c.exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
		"WHERE starts_with(application_name, $1) AND usename = current_user AND datname = current_database() "+
		"AND pid <> pg_backend_pid()",
		processName(incarnation))
	if errors.Is(err, errWarned) {
		return nil
	}
	return err
}

// processName is how the names of the connections of a process begin.
func processName(incarnation []byte) string {
	return fmt.Sprintf("switchboard %x ", incarnation[:min(8, len(incarnation))])
}

// watch waits until another node's process has ended: its lock is free.
func (n *Node) watch(ctx context.Context, p *peer, first bool) {
	for ; ctx.Err() == nil; first = false {
		if err := n.awaitEnd(ctx, p, first); err != nil {
			pause(ctx, reconnectPause)
			continue
		}
		n.mu.Lock()
		p.watching = false
		n.mu.Unlock()
		n.Look()
		return
	}
}

// awaitLock waits for the lock for a second: a statement that waits keeps PostgreSQL from
// cleaning up what appends replace.
const awaitLock = `DO $$ BEGIN SET LOCAL lock_timeout = '1s'; PERFORM pg_advisory_lock_shared(%[1]d, %[2]d);
	PERFORM pg_advisory_unlock_shared(%[1]d, %[2]d); EXCEPTION WHEN lock_not_available THEN NULL; END $$`

// awaitEnd returns when the node is dead: by its lease, or because its lock became free while
// it was watched, or is free without a chance that PostgreSQL has dropped it.
func (n *Node) awaitEnd(ctx context.Context, p *peer, first bool) error {
	c, err := n.database.connect(ctx)
	if err != nil {
		return err
	}
	defer c.drop()
	n.mu.Lock()
	id, beat := p.ID, p.Beat
	n.mu.Unlock()
	began, held := time.Now(), false
	for {
		got, err := c.exec(ctx, fmt.Sprintf(`SELECT CASE WHEN pg_try_advisory_lock_shared(%[1]d, %[2]d)
			THEN pg_advisory_unlock_shared(%[1]d, %[2]d) ELSE false END,
			extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::bigint`, lockClass, id))
		if err != nil {
			return err
		}
		n.mu.Lock()
		moved, over, incarnation := p.Beat != beat, p.dead, p.incarnation
		n.mu.Unlock()
		switch free := got.rows[0].int(0) != 0; {
		case over:
			return nil
		case free && (held || first && got.rows[0].int(1) >= young || !moved && time.Since(began) >= restartGrace):
			if err := c.terminate(ctx, incarnation[:]); err != nil {
				return err
			}
			last, err := c.exec(ctx, "SELECT beat FROM node WHERE id = $1 AND incarnation = $2", id, incarnation[:])
			if err != nil {
				return err
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			if p.incarnation == incarnation {
				p.dead = true
				for _, r := range last.rows {
					p.Beat = max(p.Beat, r.int(0))
				}
			}
			return nil
		case free:
			if moved {
				began, beat = time.Now(), p.beatNow(n)
			}
			pause(ctx, claimEvery)
			continue
		}
		held = true
		if _, err := c.exec(ctx, fmt.Sprintf(awaitLock, lockClass, id)); err != nil {
			return err
		}
	}
}

func (p *peer) beatNow(n *Node) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.Beat
}
