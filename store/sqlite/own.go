package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// OpenOver opens the store of a node that has become the owner of a log: the copy at the
// path is brought up to date and continued. It returns what had to be done for that.
func OpenOver(ctx context.Context, path string, log commitlog.Log, t commitlog.Tenure, o Options) (*Store, Progress,
	error) {
	f, err := Follow(path, log, o)
	if err != nil {
		return nil, Progress{}, err
	}
	return f.Own(ctx, t, nil, o)
}

// Own makes the copy the store of the owner, and ends the Follower. It catches up, logs
// doubts first if commits were lost (known here, or reported by another node as lost),
// raises the schema to this program's, and numbers the epoch.
func (f *Follower) Own(ctx context.Context, t commitlog.Tenure, lost *commitlog.Position, o Options) (*Store, Progress,
	error) {
	s, p, err := f.own(ctx, t, lost, o)
	if err != nil {
		_ = f.Close()
		return nil, p, fmt.Errorf("open the store %s over its log: %w", f.path, explain(err))
	}
	return s, p, nil
}

func (f *Follower) own(ctx context.Context, t commitlog.Tenure, lost *commitlog.Position, o Options) (*Store, Progress,
	error) {
	p, err := f.CatchUp(ctx)
	if err != nil {
		return nil, p, err
	}
	if p.Lost == nil {
		p.Lost = lost
	}
	if start := t.State(); f.at.Position != start.Position {
		return nil, p, fmt.Errorf("%w: the log is at %d, and was at %d when epoch %d began", journal.ErrFenced, f.at.Head,
			start.Head, start.Epoch)
	}
	l := newLogged(t, f.at, f.schema, o)
	if p.Lost != nil && f.schema > 0 {
		if err := l.change(f.conn, commitlog.Doubts, func() error { return mark(f.conn) }); err != nil {
			return nil, p, err
		}
	}
	if f.schema < len(migrations) {
		l.schema = len(migrations)
		if err := l.change(f.conn, commitlog.Schema, func() error {
			return raise(f.conn, f.schema, l.schema)
		}); err != nil {
			return nil, p, err
		}
	}
	if err := l.change(f.conn, commitlog.Changes, func() error {
		return sqlitex.Execute(f.conn, "UPDATE epoch SET number = max(number + 1, ?)",
			&sqlitex.ExecOptions{Args: []any{t.State().Epoch}})
	}); err != nil {
		return nil, p, err
	}
	epoch, err := number(f.conn, "SELECT number FROM epoch")
	if err != nil {
		return nil, p, err
	}
	s, err := serve(f.path, f.conn, f.owner, int64(epoch), l)
	if err != nil {
		return nil, p, err
	}
	f.conn, f.owner = nil, nil
	return s, p, nil
}

// errNoLog means that a store has no commit log.
var errNoLog = errors.New("the store has no commit log")
