package postgres

import (
	"context"
	"fmt"
	"strings"
)

// Connected lists the nodes that have connections to the database, by their names.
func (d *Database) Connected(ctx context.Context) (names []string, err error) {
	err = d.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT DISTINCT application_name FROM pg_stat_activity WHERE usename = current_user "+
			"AND datname = current_database() AND starts_with(application_name, $1) ORDER BY 1", NodeName(""))
		for _, r := range got.rows {
			names = append(names, strings.TrimPrefix(r.text(0), NodeName("")))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the nodes that are connected: %w", err)
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
