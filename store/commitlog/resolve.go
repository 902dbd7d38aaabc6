package commitlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Steps are the single steps of an append, which each kind of Log takes its own way.
type Steps interface {
	// TryAppend sends the entry in one fenced statement: it appends if the log still has
	// this tenure's epoch and incarnation, and the entry's predecessor as its newest entry.
	// nil: it is durable. ErrUntried: nothing was sent. Any other error, also that nothing
	// was appended or that the wait for a standby was cancelled: unknown.
	TryAppend(e Entry) error
	// Settle asks, over a new connection if need be, what became of it: it makes a fenced
	// write that itself waits until it is durable, and returns the state of the log after
	// that and the entry at a position (nil: none). A plain read would not do: it shows
	// neither what waits nor only what is safe.
	Settle(ctx context.Context, position int64) (State, *Entry, error)
}

// settlePause is the wait between attempts to settle.
const settlePause = 50 * time.Millisecond

// Append appends an entry by steps and resolves an unknown outcome: the entry at its
// position is compared by hash. If it is there, the append has happened. If none is, and
// the writer is the same, the entry is sent again with the same expected predecessor, so
// an earlier try that wakes later appends nothing. It ends with journal.ErrFenced when
// ctx, that of the tenure, ends.
func Append(ctx context.Context, s Steps, e Entry) error {
	for {
		err := s.TryAppend(e)
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrUntried) {
			return err
		}
		done, err := settle(ctx, s, e, err)
		if done || err != nil {
			return err
		}
		// From here on, an entry that cannot be sent is still one that was tried.
		s = tried{s}
	}
}

// tried makes ErrUntried an unknown outcome.
type tried struct{ Steps }

func (t tried) TryAppend(e Entry) error {
	err := t.Steps.TryAppend(e)
	if errors.Is(err, ErrUntried) {
		return fmt.Errorf("append entry %d again: %s", e.Position, err) //nolint:errorlint // of another class now
	}
	return err
}

// settle reports whether the entry is in the log; an error: the tenure is over.
func settle(ctx context.Context, s Steps, e Entry, cause error) (done bool, err error) {
	for {
		state, there, err := s.Settle(ctx, e.Position)
		if ctx.Err() != nil {
			return false, fmt.Errorf("%w: this node stopped while entry %d had an unknown outcome: %w",
				journal.ErrFenced, e.Position, cause)
		}
		switch {
		case errors.Is(err, journal.ErrFenced):
			return false, err
		case err == nil && there != nil && there.Hash == e.Hash:
			return true, nil
		case err == nil && (state.Epoch != e.Epoch || state.Incarnation != e.Incarnation):
			return false, fmt.Errorf("%w: node %q has epoch %d, this one had %d", journal.ErrFenced, state.Node,
				state.Epoch, e.Epoch)
		case err == nil && (there != nil || state.Position != (Position{e.Position - 1, e.Previous})):
			return false, fmt.Errorf("%w: the log is at %d, and entry %d does not follow", journal.ErrFenced, state.Head,
				e.Position)
		case err == nil:
			return false, nil
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
		}
	}
}
