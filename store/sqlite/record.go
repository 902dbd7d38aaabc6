package sqlite

import (
	"bytes"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// changes records the changes of a transaction for the commit log; nil: there is no log.
type changes struct{ session *sqlite.Session }

// record begins to record the changes of the transaction.
func record(conn *sqlite.Conn) (*changes, error) {
	session, err := conn.CreateSession("main")
	if err != nil {
		return nil, fmt.Errorf("record changes: %w", err)
	}
	if err := session.Attach(""); err != nil {
		session.Delete()
		return nil, fmt.Errorf("record changes: %w", err)
	}
	return &changes{session}, nil
}

// patchset returns the changes; empty: there are none.
func (c *changes) patchset() ([]byte, error) {
	var patchset bytes.Buffer
	if err := c.session.WritePatchset(&patchset); err != nil {
		return nil, fmt.Errorf("record changes: %w", err)
	}
	return patchset.Bytes(), nil
}

func (c *changes) end() {
	if c != nil {
		c.session.Delete()
	}
}
