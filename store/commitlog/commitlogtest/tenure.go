package commitlogtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// tenure implements commitlog.Tenure and its steps.
type tenure struct {
	m      *Memory
	state  commitlog.State
	ctx    context.Context
	cancel context.CancelFunc
	lease  atomic.Pointer[time.Time]
}

func (t *tenure) renewLocked() {
	lease := t.m.Lease
	if lease == 0 {
		lease = time.Hour
	}
	until := time.Now().Add(lease)
	t.lease.Store(&until)
}

// State implements commitlog.Tenure.
func (t *tenure) State() commitlog.State { return t.state }

// LeaseUntil implements commitlog.Tenure.
func (t *tenure) LeaseUntil() time.Time { return *t.lease.Load() }

// Release implements commitlog.Tenure.
func (t *tenure) Release(context.Context) error {
	t.cancel()
	return nil
}

func (t *tenure) released() error {
	if t.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: this node has released it", journal.ErrFenced)
}

// Append implements commitlog.Tenure.
func (t *tenure) Append(e commitlog.Entry) error {
	if err := t.released(); err != nil {
		return err
	}
	spoiled := t.m.Spoiled
	if spoiled.AnswerFirst || spoiled.CallUntried {
		err := t.TryAppend(e)
		if err == nil || spoiled.AnswerFirst {
			return nil
		}
		return fmt.Errorf("%w: %w", journal.ErrStalled, err)
	}
	err := commitlog.Append(t.ctx, t, e)
	if errors.Is(err, commitlog.ErrUntried) {
		err = fmt.Errorf("%w: %w", journal.ErrStalled, err)
	}
	return err
}

// TryAppend implements commitlog.Steps.
func (t *tenure) TryAppend(e commitlog.Entry) error {
	fault := None
	if t.m.Faulty != nil {
		fault = t.m.Faulty()
	}
	if fault == Slow {
		time.Sleep(10 * time.Millisecond)
	}
	m := t.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		fault = LostCall
	}
	switch fault {
	case None, Slow:
		return t.insertLocked(e)
	case LostAnswer:
		_ = t.insertLocked(e)
	case Unsafe:
		if t.insertLocked(e) == nil {
			m.unsafe = 1
		}
	case Late:
		m.late = append(m.late, func() { _ = t.insertLocked(e) })
	case LostCall:
	case Unsent:
		return fmt.Errorf("%w: %w", commitlog.ErrUntried, ErrBroken)
	}
	return ErrBroken
}

func (t *tenure) insertLocked(e commitlog.Entry) error {
	m := t.m
	if err := m.fencedLocked(t.state); err != nil {
		return errors.New(err.Error()) // a statement without effect: not known why
	}
	if !m.Spoiled.NoHead && m.state.Position != (commitlog.Position{Head: e.Position - 1, Hash: e.Previous}) {
		return errors.New("nothing was appended")
	}
	b := e.Encode()
	m.unsafe = 0 // the standby gets everything in order
	m.entries = append(m.entries, b)
	m.state.Position, m.state.Schema = e.At(), e.Schema
	m.note(recordEntry, b)
	return nil
}

// Settle implements commitlog.Steps.
func (t *tenure) Settle(_ context.Context, position int64) (commitlog.State, *commitlog.Entry, error) {
	m := t.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return commitlog.State{}, nil, ErrBroken
	}
	if !m.Spoiled.PlainRead {
		m.unsafe = 0
	}
	s := m.state
	s.First = m.firstLocked()
	i := position - max(m.first, 1)
	if i < 0 || i >= int64(len(m.entries)) {
		return s, nil, nil
	}
	e, err := commitlog.Decode(m.entries[i])
	return s, &e, err
}

// Confirm implements commitlog.Tenure.
func (t *tenure) Confirm(ctx context.Context) error {
	for {
		m := t.m
		m.mu.Lock()
		down, err := m.down, m.fencedLocked(t.state)
		if !down && err == nil {
			t.renewLocked()
		}
		m.mu.Unlock()
		if released := t.released(); released != nil {
			return released
		}
		if !down {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.ctx.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
