package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Orders are rows that nodes see when they look, so they can be given from anywhere, also
// while a node hangs. They wait for no standby: one that waited would hold up the owner's
// appends or a node's renewals.

// unsynced makes a statement's commit wait for no disk and no standby, and notified makes
// all nodes look.
const (
	unsynced = " AND set_config('synchronous_commit', 'off', true) IS NOT NULL"
	notify   = " RETURNING pg_notify('" + channel + "', '')::text"
)

// ErrNoNode means that no node with this name ever entered.
var ErrNoNode = errors.New("the cluster has no such node")

// order runs a statement that changes one row.
func (d *Database) order(ctx context.Context, none error, sql string, args ...any) error {
	return d.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, sql+unsynced+notify, args...)
		if err == nil && len(got.rows) == 0 {
			err = none
		}
		return err
	})
}

// Want sets the node that is to own a cell; empty: any.
func (d *Database) Want(ctx context.Context, cell, node string) error {
	err := d.order(ctx, ErrNoCell, "UPDATE cell SET wanted = $2, ready = '' WHERE name = $1 AND NOT gone", cell, node)
	if err != nil {
		return fmt.Errorf("move the cell %s: %w", cell, err)
	}
	return nil
}

// Ready notes that this node, which is to own a cell, holds its extensions ready.
func (n *Node) Ready(ctx context.Context, s Seen) error {
	return n.database.order(ctx, ErrTaken, "UPDATE cell SET ready = $2 WHERE id = $1 AND wanted = $2 AND NOT gone", s.ID,
		n.name)
}

// HandOver sets the node that is to own a cell, if this node still owns it.
func (n *Node) HandOver(ctx context.Context, s Seen, to string) error {
	return n.database.order(ctx, ErrTaken, "UPDATE cell SET wanted = $3, ready = '' WHERE id = $1 AND epoch = $2 "+
		"AND NOT gone", s.ID, s.Epoch, to)
}

// Drain makes a node hand over its cells and take none, or ends that.
func (d *Database) Drain(ctx context.Context, node string, drain bool) error {
	truth := map[bool]int{true: 1}[drain]
	if err := d.order(ctx, ErrNoNode, "UPDATE node SET draining = ($2 = 1) WHERE name = $1", node, truth); err != nil {
		return fmt.Errorf("drain the node %s: %w", node, err)
	}
	return nil
}

// Retire begins the deletion of a cell: its owner stops it, and no node takes it.
func (d *Database) Retire(ctx context.Context, cell string) error {
	if err := d.order(ctx, ErrNoCell, "UPDATE cell SET gone = true WHERE name = $1", cell); err != nil {
		return fmt.Errorf("delete the cell %s: %w", cell, err)
	}
	return nil
}

// eraseEach bounds the rows of one step of Erase.
const eraseEach = 10_000

// Erase deletes all that is stored of a cell that was retired. A kernel that still runs on
// it is fenced.
func (d *Database) Erase(ctx context.Context, s Seen) error {
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "UPDATE cell SET epoch = epoch + 1, incarnation = '', node = '' WHERE id = $1 AND gone", s.ID)
		if err != nil {
			return err
		}
		got, err := c.exec(ctx, "SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'switchboard' "+
			"AND column_name = 'cell'")
		if err != nil {
			return err
		}
		var tables []string
		for _, r := range got.rows {
			tables = append(tables, r.text(0))
		}
		slices.Sort(tables)
		for _, table := range tables {
			for more := true; more; {
				got, err := c.exec(ctx, fmt.Sprintf("DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s WHERE "+
					"cell = $1 LIMIT %[2]d))", table, eraseEach), s.ID)
				if err != nil {
					return err
				}
				more = got.affected == eraseEach
			}
		}
		_, err = c.exec(ctx, "DELETE FROM cell WHERE id = $1 AND gone"+notify, s.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete the cell %s: %w", s.Name, err)
	}
	return nil
}

// Cell returns the log of a cell that this node sees, with the node's lease.
func (n *Node) Cell(s Seen) *Cell {
	return &Cell{database: n.database, id: s.ID, name: s.Name, Lease: n.Until, lock: n.lock}
}
