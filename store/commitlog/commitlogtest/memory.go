// Package commitlogtest has a commit log in memory whose faults a test chooses, and the
// conformance suite that every commitlog.Log passes.
package commitlogtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// Fault is what happens to one statement that appends.
type Fault int

// The faults.
const (
	None       Fault = iota
	LostAnswer       // it is done, and its answer does not arrive
	LostCall         // it never arrives
	Late             // its sender sees an error, and it runs when Wake is called
	Unsafe           // it is done, the wait for the standby is cancelled: Promote loses it
	Slow             // it arrives 10 ms later, for tests in a bubble of testing/synctest
	Unsent           // nothing is sent
)

// Spoiled leaves out one of the rules that make the log safe. A test that does not fail
// with it proves nothing.
type Spoiled struct {
	NoFence     bool // any incarnation appends
	NoHead      bool // whatever the newest entry is
	PlainRead   bool // an unknown outcome is resolved by a read that does not wait for the standby
	AnswerFirst bool // an append is reported before it is durable
	CallUntried bool // an unknown outcome is reported as nothing sent
}

// ErrBroken is the error of a statement with a fault.
var ErrBroken = errors.New("the connection to the log broke")

// Memory is a Log in memory. The zero value is an empty one.
type Memory struct {
	// Lease is how long a tenure is valid without Confirm; 0: for an hour.
	Lease time.Duration
	// Faulty, if set, chooses the fault of each statement that appends.
	Faulty func() Fault
	// Spoiled is for tests of tests.
	Spoiled Spoiled

	mu       sync.Mutex
	state    commitlog.State
	first    int64
	entries  [][]byte
	snapshot []byte
	uploads  [][]byte
	blobs    map[string][]byte
	unsafe   int // of the newest entries, that the standby does not have
	late     []func()
	down     bool
	record   func(kind byte, b []byte)
}

var (
	_ commitlog.Log   = (*Memory)(nil)
	_ commitlog.Blobs = (*Memory)(nil)
)

// SetDown makes every statement fail until it is called again.
func (m *Memory) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// Wake runs the statements that are late, oldest first.
func (m *Memory) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.late {
		f()
	}
	m.late = nil
}

// Promote promotes the synchronous standby: what waited for it is gone.
func (m *Memory) Promote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = m.safeLocked()
	m.entries = m.entries[:len(m.entries)-m.unsafe]
	m.unsafe, m.late = 0, nil
}

// safeLocked is the state that the standby has too.
func (m *Memory) safeLocked() commitlog.State {
	s := m.state
	s.First = m.firstLocked()
	if m.unsafe == 0 {
		return s
	}
	s.Position, s.Schema = commitlog.Position{}, 0
	if n := len(m.entries) - m.unsafe; n > 0 {
		e, _ := commitlog.Decode(m.entries[n-1])
		s.Position, s.Schema = e.At(), e.Schema
	}
	return s
}

// Lose drops the newest entries, as the promotion of a standby that lagged does. The
// epoch and the incarnation are those of the newest entry that is left.
func (m *Memory) Lose(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = m.entries[:max(len(m.entries)-n, 0)]
	m.late, m.unsafe = nil, 0
	kept := m.state.Snapshot
	m.state = commitlog.State{Snapshot: kept}
	if len(m.entries) > 0 {
		e, _ := commitlog.Decode(m.entries[len(m.entries)-1])
		m.state.Position, m.state.Schema = e.At(), e.Schema
		m.state.Epoch, m.state.Incarnation = e.Epoch, e.Incarnation
	}
}

// Acquire implements commitlog.Log.
func (m *Memory) Acquire(ctx context.Context, node string) (commitlog.Tenure, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, fmt.Errorf("%w: %w", journal.ErrStalled, ErrBroken)
	}
	m.state.Epoch++
	m.unsafe = 0 // its write waits for the standby
	m.state.Node = node
	if _, err := rand.Read(m.state.Incarnation[:]); err != nil {
		return nil, err
	}
	m.note(recordAcquire, append(m.state.Incarnation[:], node...))
	t := &tenure{m: m, state: m.state}
	t.state.First = m.firstLocked()
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.renewLocked()
	return t, nil
}

func (m *Memory) note(kind byte, b []byte) {
	if m.record != nil {
		m.record(kind, b)
	}
}

func (m *Memory) firstLocked() int64 {
	if len(m.entries) == 0 {
		return 0
	}
	return max(m.first, 1)
}

// Head implements commitlog.Log.
func (m *Memory) Head(context.Context) (commitlog.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return commitlog.State{}, fmt.Errorf("%w: %w", journal.ErrStalled, ErrBroken)
	}
	return m.safeLocked(), nil
}

// Read implements commitlog.Log.
func (m *Memory) Read(ctx context.Context, after int64, each func(commitlog.Entry) error) error {
	for {
		m.mu.Lock()
		i := after + 1 - max(m.first, 1)
		var b []byte
		switch down, count := m.down, int64(len(m.entries)-m.unsafe); {
		case down:
			m.mu.Unlock()
			return fmt.Errorf("%w: %w", journal.ErrStalled, ErrBroken)
		case i < 0:
			m.mu.Unlock()
			return fmt.Errorf("read after entry %d: %w", after, commitlog.ErrTruncated)
		case i < count:
			b = m.entries[i]
		}
		m.mu.Unlock()
		if b == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := commitlog.Decode(b)
		if err != nil {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
		after++
	}
}

// fencedLocked returns an error if another tenure has begun.
func (m *Memory) fencedLocked(s commitlog.State) error {
	if m.Spoiled.NoFence || m.state.Epoch == s.Epoch && m.state.Incarnation == s.Incarnation {
		return nil
	}
	return fmt.Errorf("%w: node %q has epoch %d, this one had %d", journal.ErrFenced, m.state.Node, m.state.Epoch, s.Epoch)
}

// PutSnapshot implements commitlog.Log.
func (m *Memory) PutSnapshot(_ context.Context, t commitlog.Tenure, at commitlog.Position, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fencedLocked(t.State()); err != nil {
		return err
	}
	m.snapshot, m.state.Snapshot = b, &at
	return nil
}

// Upload implements commitlog.Log.
func (m *Memory) Upload(_ context.Context, r io.Reader) (commitlog.Upload, error) {
	b, err := io.ReadAll(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uploads = append(m.uploads, b)
	return commitlog.Upload{ID: int64(len(m.uploads) - 1), Size: int64(len(b))}, err
}

// Replace implements commitlog.Log.
func (m *Memory) Replace(_ context.Context, t commitlog.Tenure, e commitlog.Entry, u commitlog.Upload) error {
	own, ok := t.(*tenure)
	if !ok {
		return errors.New("replace the state: the tenure is of another log")
	}
	m.mu.Lock()
	b := m.uploads[u.ID]
	m.mu.Unlock()
	return commitlog.Append(own.ctx, replacement{own, b}, e)
}

// replacement appends an entry together with its snapshot.
type replacement struct {
	*tenure
	snapshot []byte
}

// TryAppend implements commitlog.Steps.
func (r replacement) TryAppend(e commitlog.Entry) error {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	err := r.insertLocked(e)
	if err == nil {
		at := e.At()
		r.m.snapshot, r.m.state.Snapshot = r.snapshot, &at
	}
	return err
}

// Snapshot implements commitlog.Log.
func (m *Memory) Snapshot(context.Context) (commitlog.Position, io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.Snapshot == nil {
		return commitlog.Position{}, nil, fmt.Errorf("read the snapshot: %w", commitlog.ErrNone)
	}
	return *m.state.Snapshot, io.NopCloser(bytes.NewReader(m.snapshot)), nil
}

// Truncate implements commitlog.Log.
func (m *Memory) Truncate(_ context.Context, t commitlog.Tenure, before int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fencedLocked(t.State()); err != nil {
		return err
	}
	if m.state.Snapshot == nil {
		return nil
	}
	before = min(before, m.state.Snapshot.Head)
	if n := before - max(m.first, 1); n > 0 {
		m.entries, m.first = m.entries[n:], before
	}
	return nil
}

// PutBlob implements commitlog.Blobs.
func (m *Memory) PutBlob(_ context.Context, hash string, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := sum(b); got != hash {
		return fmt.Errorf("store the file %s: its hash is %s", hash, got)
	}
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	m.blobs[hash] = b
	return nil
}

// Blob implements commitlog.Blobs.
func (m *Memory) Blob(_ context.Context, hash string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, found := m.blobs[hash]
	if !found {
		return nil, fmt.Errorf("read the file %s: %w", hash, commitlog.ErrNone)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// DeleteBlob implements commitlog.Blobs.
func (m *Memory) DeleteBlob(_ context.Context, hash string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, hash)
	return nil
}
