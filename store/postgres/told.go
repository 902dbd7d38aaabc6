package postgres

import (
	"context"
	"fmt"
)

// Told is what a node tells the others about itself. Anyone who can write to the database
// can change it.
type Told struct {
	Node    string
	Address string // where the others reach it
	Facts   string // in a form of the caller's
}

// Tell replaces what a node told before.
func (d *Database) Tell(ctx context.Context, t Told) error {
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, `INSERT INTO told (node, address, facts) VALUES ($1, $2, $3)
			ON CONFLICT (node) DO UPDATE SET address = $2, facts = $3`, t.Node, t.Address, t.Facts)
		return err
	})
	if err != nil {
		return fmt.Errorf("tell the cluster about the node %s: %w", t.Node, err)
	}
	return nil
}

// Told returns what the nodes told, by their names.
func (d *Database) Told(ctx context.Context) (all []Told, err error) {
	err = d.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT node, address, facts FROM told ORDER BY node")
		for _, r := range got.rows {
			all = append(all, Told{r.text(0), r.text(1), r.text(2)})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what the nodes of the cluster tell: %w", err)
	}
	return all, nil
}
