package postgres

import (
	"context"
	"fmt"
)

// Connected lists the nodes that run: those that hold their locks.
func (d *Database) Connected(ctx context.Context) (names []string, err error) {
	err = d.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, fmt.Sprintf("SELECT name FROM node WHERE EXISTS (SELECT 1 FROM pg_locks WHERE "+
			"locktype = 'advisory' AND classid = %d AND objid = node.id AND granted AND mode = 'ExclusiveLock' AND "+
			"database = (SELECT oid FROM pg_database WHERE datname = current_database())) ORDER BY name", lockClass))
		for _, r := range got.rows {
			names = append(names, r.text(0))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the nodes that run: %w", err)
	}
	return names, nil
}

// Forget removes a node that has left.
func (d *Database) Forget(ctx context.Context, node string) error {
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "DELETE FROM node WHERE name = $1", node)
		if err == nil {
			_, err = c.exec(ctx, "DELETE FROM told WHERE node = $1", node)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the node %s: %w", node, err)
	}
	return nil
}
