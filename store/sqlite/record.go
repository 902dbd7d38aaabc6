package sqlite

import (
	"bytes"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// changes records the changes of a group of updates for the store's Log; nil without
// one.
type changes struct{ session *sqlite.Session }

// record begins to record the changes of the transaction.
func (s *Store) record() (*changes, error) {
	if s.replica == nil {
		return nil, nil
	}
	session, err := s.write.CreateSession("main")
	if err != nil {
		return nil, fmt.Errorf("record changes: %w", err)
	}
	if err := session.Attach(""); err != nil {
		session.Delete()
		return nil, fmt.Errorf("record changes: %w", err)
	}
	return &changes{session}, nil
}

// ship appends the changes to the log, if there are any.
func (c *changes) ship(log journal.Log) error {
	if c == nil {
		return nil
	}
	var patchset bytes.Buffer
	if err := c.session.WritePatchset(&patchset); err != nil {
		return fmt.Errorf("record changes: %w", err)
	}
	if patchset.Len() == 0 {
		return nil
	}
	return log.Append(patchset.Bytes())
}

func (c *changes) end() {
	if c != nil {
		c.session.Delete()
	}
}
