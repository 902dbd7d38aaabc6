package bus

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Lease is the right to handle one delivery, or to run a tool call. Only the
// extension that holds it knows its token. The kernel has one without a token for a
// delivery that it ends as dead. The exported fields do not change.
type Lease struct {
	Token      string
	Extension  string
	Generation int64
	Event      *busv1.Event
	Agent      string // of an agent's input
	Session    int64
	Call       int64 // of a tool call: its row
	// For is whose things the tool may use that runs outside of any turn.
	For contract.Principal

	asked    atomic.Int64 // completions of the turn so far
	item     *item
	sink     *Sink  // nil: no handler has it
	started  int64  // Unix microseconds
	clock    int64  // steady time from which the ack wait counts
	stops    int    // calls of StopClock without StartClock
	stopped  int64  // steady time of the first of them
	taken    bool   // a handler has it
	answered bool   // the handler has answered
	answer   string // of a command: to the person who gave it
	over     int64  // steady time at which its context was cancelled
	revoked  bool   // by a commit, perhaps one that is not durable yet
	released bool   // its lane is free again
}

func newRandom() *rand.ChaCha8 {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails, by its documentation
	return rand.NewChaCha8(seed)
}

func (b *Bus) newToken() string {
	var raw [16]byte
	var word [2 * len(raw)]byte
	binary.LittleEndian.PutUint64(raw[:8], b.random.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], b.random.Uint64())
	hex.Encode(word[:], raw[:])
	return string(word[:])
}

// Lease is the valid lease of a token, if the actor holds it.
func (b *Bus) Lease(a *Actor, token string) (*Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.leases[token]
	if l == nil || l.revoked || l.Extension != a.ID || l.Generation != a.Generation {
		return nil, fmt.Errorf("%w: %q does not hold the token (any more)", contract.ErrStale, a.ID)
	}
	return l, nil
}

// LeaseCall gives the extension that runs a tool a lease for a call of a turn, for
// the input that the turn answers. It belongs to the row of the call: it outlives
// the attempt that asked for the call, and ends with the row. Outside of any turn, turn has
// nothing but For, and input is nil.
func (b *Bus) LeaseCall(a *Actor, turn *Lease, input *busv1.Event, call int64) *Lease {
	l := &Lease{
		Extension: a.ID, Generation: a.Generation, Event: input, Agent: turn.Agent, Session: turn.Session, Call: call,
		For: turn.For,
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l.Token, l.started = b.newToken(), b.clock.Now()
	b.leases[l.Token] = l
	return l
}

// Release ends the lease of a tool call.
func (b *Bus) Release(l *Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(l)
}

// release ends a lease for good and frees its lane. It returns false if that was
// done before. The caller holds b.mu.
func (b *Bus) release(l *Lease) bool {
	if l.released {
		return false
	}
	l.revoked, l.released = true, true
	delete(b.leases, l.Token)
	if l.item != nil && l.item.lane.lease == l {
		l.item.lane.lease = nil
	}
	return true
}

// revoke revokes a token from this commit on: no later one can be made under it.
// If the commit fails, the token is valid again.
func (t *Tx) revoke(l *Lease) error {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	return t.revokeLocked(l)
}

func (t *Tx) revokeLocked(l *Lease) error {
	if l.revoked {
		return errTaken
	}
	l.revoked = true
	t.undo = append(t.undo, func() { l.revoked = l.released })
	return nil
}

var errTaken = fmt.Errorf("%w: the delivery was handed out again, or its turn was ended", contract.ErrStale)

// take revokes a lease, and cancels its handler once that is durable. It returns nil
// if there is none, or if it was revoked before. The caller holds Bus.mu.
func (t *Tx) take(l *Lease) *Lease {
	if l == nil || t.revokeLocked(l) != nil {
		return nil
	}
	if l.sink != nil {
		t.then = append(t.then, func() { l.sink.cancel(l) })
	}
	return l
}

// leaseOf is the lease of a delivery; nil: it has none.
func (s *subscription) leaseOf(key string, seq int64) *Lease {
	if l := s.lane(key, seq); l != nil && l.lease != nil && l.lease.item.Seq == seq {
		return l.lease
	}
	return nil
}

// holder is the valid lease of the handler that holds a lane; nil: none does.
func (s *subscription) holder(key string) *Lease {
	if l := s.lane(key, 0); l != nil && l.lease != nil && l.lease.sink != nil && !l.lease.revoked {
		return l.lease
	}
	return nil
}
