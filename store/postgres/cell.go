package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// ErrNoCell means that there is no cell with this name.
var ErrNoCell = errors.New("the cluster has no such cell")

// ErrEnded means that the cell has left the cluster, with its state.
var ErrEnded = errors.New("the cell has left the cluster")

// ErrReserved means that a home is about to move its state into the cell.
var ErrReserved = errors.New("the state of another home is being moved into the cell")

// reserved begins what is stored as the end of a cell that Reserve made; the name of the node
// follows.
const reserved = "reserved by "

// ReservedBy returns the node for which a cell is reserved, by what is stored as its end;
// empty: it is not.
func ReservedBy(ended string) (node string) {
	node, _ = strings.CutPrefix(ended, reserved)
	if node == ended {
		return ""
	}
	return node
}

// Cell is the log of one cell.
type Cell struct {
	// Lease returns the time until which no other node takes over by itself; nil: it is
	// never known.
	Lease func() time.Time

	// lock numbers the time for which the node holds its lock; 0: it does not, and another
	// node may take over within the lease. nil: there is no lock.
	lock     func() int64
	reserved string // what is stored as the end of a cell that this node may use in spite of it
	database *Database
	id       int64
	name     string
}

var (
	_ commitlog.Log   = (*Cell)(nil)
	_ commitlog.Blobs = (*Cell)(nil)
)

// Create makes a cell, unless it is there.
func (d *Database) Create(ctx context.Context, name string) (*Cell, error) {
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "INSERT INTO cell (name) VALUES ($1) ON CONFLICT DO NOTHING", name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create the cell %s: %w", name, err)
	}
	return d.Cell(ctx, name)
}

// Reserve makes a cell, unless it is there, for a home that moves its state into it: until
// Admit other nodes leave the cell alone. A cell that has an owner or a state is not reserved.
func (d *Database) Reserve(ctx context.Context, name, node string) (*Cell, error) {
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "INSERT INTO cell (name, ended) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET ended = $2 "+
			"WHERE cell.ended = '' AND cell.head = 0 AND cell.node = '' AND NOT cell.gone", name, reserved+node)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reserve the cell %s: %w", name, err)
	}
	return d.Reserved(ctx, name, node)
}

// Reserved opens a cell, also if it is reserved for the node.
func (d *Database) Reserved(ctx context.Context, name, node string) (*Cell, error) {
	l, err := d.Cell(ctx, name)
	if err == nil {
		l.reserved = reserved + node
	}
	return l, err
}

// Admit ends the reservation: nodes take the cell, and hand it over to the one that reserved
// it when that runs.
func (l *Cell) Admit(ctx context.Context) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "UPDATE cell SET ended = '', wanted = $3 WHERE id = $1 AND ended = $2"+notify, l.id, l.reserved,
			strings.TrimPrefix(l.reserved, reserved))
		return err
	})
	if err != nil {
		return fmt.Errorf("let nodes serve the cell %s: %w", l.name, err)
	}
	return nil
}

// Cell opens a cell. ErrNoCell: there is none with this name.
func (d *Database) Cell(ctx context.Context, name string) (*Cell, error) {
	l := &Cell{database: d, name: name}
	err := d.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT id FROM cell WHERE name = $1", name)
		if err == nil && len(got.rows) == 0 {
			err = ErrNoCell
		}
		if err == nil {
			l.id = got.rows[0].int(0)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the cell %s: %w", name, err)
	}
	return l, nil
}

// Name is the cell's name.
func (l *Cell) Name() string { return l.name }

func (l *Cell) held() int64 {
	if l.lock == nil {
		return 0
	}
	return l.lock()
}

// columns of a cell are what stateOf reads.
const columns = "epoch, incarnation, node, head, hash, schema, first, snapshot_head, snapshot_hash, snapshot, " +
	"ended"

func stateOf(r row) commitlog.State {
	s := commitlog.State{Epoch: r.int(0), Node: r.text(2), Schema: int(r.int(5)), First: r.int(6)}
	copy(s.Incarnation[:], r[1])
	s.Head = r.int(3)
	copy(s.Hash[:], r[4])
	if r.int(9) != 0 {
		s.Snapshot = &commitlog.Position{Head: r.int(7)}
		copy(s.Snapshot.Hash[:], r[8])
	}
	return s
}

// Acquire implements commitlog.Log.
func (l *Cell) Acquire(ctx context.Context, node string) (commitlog.Tenure, error) {
	return l.acquire(ctx, node, "")
}

// ErrTaken means that another node was faster, or that the cell is being deleted.
var ErrTaken = errors.New("another node has taken the cell over")

// Take is Acquire if the cell still has the epoch that was seen.
func (l *Cell) Take(ctx context.Context, node string, seen int64) (commitlog.Tenure, error) {
	return l.acquire(ctx, node, fmt.Sprintf(" AND NOT gone AND (epoch = %d OR incarnation = $2)", seen))
}

func (l *Cell) acquire(ctx context.Context, node, unless string) (commitlog.Tenure, error) {
	var incarnation [16]byte
	_, _ = rand.Read(incarnation[:])
	lock := l.held()
	for {
		var state commitlog.State
		err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
			got, err := c.exec(ctx, "UPDATE cell SET epoch = epoch + 1, incarnation = $2, node = $3, ready = '', "+
				"wanted = CASE WHEN wanted = $3 THEN '' ELSE wanted END WHERE id = $1 AND ended IN ('', $4)"+unless+
				" RETURNING "+columns, l.id, incarnation[:], node, l.reserved)
			if err == nil && len(got.rows) == 0 {
				if _, err = l.head(ctx, c); err == nil && unless != "" {
					err = ErrTaken
				} else if err == nil {
					err = ErrNoCell
				}
			}
			if err == nil {
				state = stateOf(got.rows[0])
			}
			return err
		})
		if err == nil {
			return wrapTenure(newTenure(l, state, lock)), nil
		}
		if !errors.Is(err, errWarned) || ctx.Err() != nil { // warned: it may be lost, so raise it again
			return nil, fmt.Errorf("become the writer of the cell %s: %w", l.name, err)
		}
	}
}

// Head implements commitlog.Log.
func (l *Cell) Head(ctx context.Context) (s commitlog.State, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		s, err = l.head(ctx, c)
		return err
	})
	return s, err
}

func (l *Cell) head(ctx context.Context, c *conn) (commitlog.State, error) {
	got, err := c.exec(ctx, "SELECT "+columns+" FROM cell WHERE id = $1", l.id)
	if err == nil && len(got.rows) == 0 {
		err = ErrNoCell
	}
	if err != nil {
		return commitlog.State{}, fmt.Errorf("read the state of the cell %s: %w", l.name, err)
	}
	if why := got.rows[0].text(10); why != l.reserved {
		if err := EndedError(l.name, why); err != nil {
			return commitlog.State{}, err
		}
	}
	return stateOf(got.rows[0]), nil
}

// EndedError returns the error of a cell by what is stored as its end; nil: it goes on.
func EndedError(name, ended string) error {
	switch node := ReservedBy(ended); {
	case node != "":
		return fmt.Errorf("%w: %s, by the node %s: finish that there with `switchboard cluster join`", ErrReserved, name,
			node)
	case ended != "":
		return fmt.Errorf("%w: %s: %s", ErrEnded, name, ended)
	}
	return nil
}

// A page of the log has at most readEntries entries, and ends after readBytes of them.
const (
	readEntries = 512
	readBytes   = 8 << 20
)

const readPage = `SELECT position, entry FROM (
	SELECT position, entry, sum(length(entry)) OVER (ORDER BY position) - length(entry) AS before
	FROM (SELECT position, entry FROM log WHERE cell = $1 AND position > $2 ORDER BY position LIMIT $3) AS page
) AS sized WHERE before < $4 ORDER BY position`

// Read implements commitlog.Log.
func (l *Cell) Read(ctx context.Context, after int64, each func(commitlog.Entry) error) error {
	for {
		var page []row
		var state commitlog.State
		err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
			if err := c.settle(ctx); err != nil {
				return err
			}
			got, err := c.exec(ctx, readPage, l.id, after, readEntries, readBytes)
			if page = got.rows; err != nil || len(page) > 0 {
				return err
			}
			state, err = l.head(ctx, c)
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("read the log of the cell %s: %w", l.name, err)
		case len(page) > 0 && page[0].int(0) != after+1, len(page) == 0 && after+1 < state.First,
			len(page) == 0 && after < state.Head && state.First == 0:
			return fmt.Errorf("read the log of the cell %s after %d: %w", l.name, after, commitlog.ErrTruncated)
		case len(page) == 0 && after >= state.Head:
			return nil
		}
		for _, r := range page {
			e, err := commitlog.Decode(r[1])
			if err == nil && e.Position != r.int(0) {
				err = fmt.Errorf("%w: entry %d is stored as %d", commitlog.ErrBroken, e.Position, r.int(0))
			}
			if err == nil {
				err = each(e)
			}
			if err != nil {
				return err
			}
			after = e.Position
		}
	}
}

// truncatedAtOnce is how many entries one statement of Truncate deletes.
const truncatedAtOnce = 2000

// Truncate implements commitlog.Log. First the log begins later; then what is before that
// is deleted, in small steps, which a later call goes on with.
func (l *Cell) Truncate(ctx context.Context, t commitlog.Tenure, before int64) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.script(ctx, fmt.Sprintf(`BEGIN;
			UPDATE cell SET first = least(%[2]d, snapshot_head + 1, head + 1) WHERE id = %[1]d AND %[3]s
				AND snapshot <> 0 AND first < least(%[2]d, snapshot_head + 1, head + 1);
			SELECT 1 FROM cell WHERE id = %[1]d AND %[3]s; COMMIT`, l.id, before, fence(t.State())))
		if err == nil && len(got[2].rows) == 0 {
			err = errFenced(t.State())
		}
		for err == nil {
			var done result
			done, err = c.exec(ctx, `DELETE FROM log WHERE cell = $1 AND position <= (SELECT max(position) FROM
				(SELECT position FROM log WHERE cell = $1 AND position < (SELECT first FROM cell WHERE id = $1)
				ORDER BY position LIMIT $2) AS oldest)`, l.id, truncatedAtOnce)
			if done.affected < truncatedAtOnce {
				break
			}
			pause(ctx, reconnectPause)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("truncate the log of the cell %s: %w", l.name, err)
	}
	return nil
}

// Entry returns one entry. ErrNone: it is not in the log.
func (l *Cell) Entry(ctx context.Context, position int64) (e commitlog.Entry, err error) {
	body, err := l.part(ctx, "SELECT entry FROM log WHERE cell = $1 AND position = $2", l.id, position)
	if err == nil && body == nil {
		err = commitlog.ErrNone
	}
	if err == nil {
		e, err = commitlog.Decode(body)
	}
	if err != nil {
		return e, fmt.Errorf("read entry %d of the cell %s: %w", position, l.name, err)
	}
	return e, nil
}

// Since returns how many entries follow a position, and their size.
func (l *Cell) Since(ctx context.Context, position int64) (entries, bytes int64, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT count(*), coalesce(sum(length(entry)), 0)::bigint FROM log "+
			"WHERE cell = $1 AND position > $2", l.id, position)
		if err == nil {
			entries, bytes = got.rows[0].int(0), got.rows[0].int(1)
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("measure the log of the cell %s: %w", l.name, err)
	}
	return entries, bytes, nil
}

// End makes the cell one that no node serves any more, in a fenced step, and says why.
func (l *Cell) End(ctx context.Context, t commitlog.Tenure, why string) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		done, err := c.exec(ctx, "UPDATE cell SET ended = $2, incarnation = '', node = '' WHERE id = $1 AND "+
			fence(t.State()), l.id, why)
		if err == nil && done.affected == 0 {
			err = errFenced(t.State())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("end the cell %s: %w", l.name, err)
	}
	return nil
}

// Ended returns what End was given, when that is durable; empty: the cell goes on.
func (l *Cell) Ended(ctx context.Context) (why string, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "UPDATE cell SET touched = touched + 1 WHERE id = $1 RETURNING ended", l.id)
		if err == nil && len(got.rows) == 0 {
			err = ErrNoCell
		}
		if err == nil {
			why = got.rows[0].text(0)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the state of the cell %s: %w", l.name, err)
	}
	return why, nil
}

// fence is the condition that a tenure goes on.
func fence(s commitlog.State) string {
	return fmt.Sprintf(`epoch = %d AND incarnation = '\x%s'`, s.Epoch, hex.EncodeToString(s.Incarnation[:]))
}
