package bus

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Lease is the right to handle one delivery, or to work for one tool call of
// it. Its token is known to the extension that holds it and to nobody else.
// The exported fields do not change after it was given out.
type Lease struct {
	Token      string
	Extension  string
	Generation int64
	Event      *busv1.Event
	Agent      string // of an agent's input
	Session    int64
	Call       int64 // of a tool call: its row

	asked    atomic.Int64 // completions of the turn
	item     *item
	sink     *Sink
	started  int64  // Unix microseconds
	clock    int64  // Unix microseconds from which its time counts
	stops    int    // how many wait, so that its time stands still
	stopped  int64  // Unix microseconds since when
	taken    bool   // a handler has it
	answered bool   // the handler has answered
	answer   string // of a command: to the person who gave it
	over     int64  // Unix microseconds at which its context was cancelled
	revoked  bool   // void, or about to be by the commit that is being applied
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
		return nil, fmt.Errorf("%w: %q does not hold it (any more)", contract.ErrStale, a.ID)
	}
	return l, nil
}

// LeaseCall gives a lease for a tool call of a turn to the extension that runs
// the tool, for the input that the turn answers. It belongs to the call's row: it
// outlives the attempt that asked for the call, and is void once the row is closed.
func (b *Bus) LeaseCall(a *Actor, turn *Lease, input *busv1.Event, call int64) *Lease {
	return b.leaseWork(&Lease{
		Extension: a.ID, Generation: a.Generation, Event: input, Agent: turn.Agent, Session: turn.Session, Call: call,
	})
}

// LeaseAlone gives a lease to an extension that runs a tool outside of any
// turn. It is void with the extension's generation, or when it is released.
func (b *Bus) LeaseAlone(a *Actor) *Lease {
	return b.leaseWork(&Lease{Extension: a.ID, Generation: a.Generation})
}

func (b *Bus) leaseWork(l *Lease) *Lease {
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

// release makes the token void for good and frees the lane; what becomes of the
// delivery is the caller's. It returns false if that was done before.
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

// revoke makes a token worthless within a commit: an update behind this one must
// not be made under it. If the commit fails, it never was.
func (t *Tx) revoke(l *Lease) error {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	if l.revoked {
		return errTaken
	}
	t.revokeLocked(l)
	return nil
}

func (t *Tx) revokeLocked(l *Lease) {
	l.revoked = true
	t.undo = append(t.undo, func() { l.revoked = l.released })
}

var errTaken = fmt.Errorf("%w: the delivery was given to somebody else, or its turn was ended", contract.ErrStale)

// takeHolder voids the lease of a lane, if somebody holds it.
func (t *Tx) takeHolder(extension, pattern, key string) *Lease {
	b := t.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.table.Load().named(extension, pattern)
	if s == nil {
		return nil
	}
	l := s.lanes[key]
	if l == nil || l.lease == nil || l.lease.revoked {
		return nil
	}
	t.revokeLocked(l.lease)
	return l.lease
}

// leaseList is the leases of a subscription, oldest first; released ones are
// skipped, and forgotten when room is needed.
type leaseList struct{ leases []*Lease }

func (f *leaseList) push(l *Lease) {
	if len(f.leases) == cap(f.leases) {
		f.leases = slices.DeleteFunc(f.leases, func(l *Lease) bool { return l.released })
		f.leases = slices.Grow(f.leases, len(f.leases)+1) // not again for as many
	}
	f.leases = append(f.leases, l)
}

// trim forgets released leases at the front.
func (f *leaseList) trim() {
	i := 0
	for i < len(f.leases) && f.leases[i].released {
		f.leases[i] = nil
		i++
	}
	f.leases = f.leases[i:]
	if len(f.leases) == 0 {
		f.leases = nil
	}
}
