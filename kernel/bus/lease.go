package bus

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

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

	item    *item
	sink    *Sink
	started int64 // Unix microseconds
	taken   bool  // a handler has it
	over    int64 // Unix microseconds at which its context was cancelled
	revoked bool
}

func newRandom() *rand.ChaCha8 {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails, by its documentation
	return rand.NewChaCha8(seed)
}

func (b *Bus) newToken() string {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], b.random.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], b.random.Uint64())
	return hex.EncodeToString(raw[:])
}

// Lease is the valid lease of a token, if the actor holds it.
func (b *Bus) Lease(a *Actor, token string) (*Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lease(a, token)
}

func (b *Bus) lease(a *Actor, token string) (*Lease, error) {
	l := b.leases[token]
	if l == nil || l.revoked || l.Extension != a.ID || l.Generation != a.Generation {
		return nil, fmt.Errorf("%w: %q does not hold it (any more)", contract.ErrStale, a.ID)
	}
	return l, nil
}

// LeaseCall gives a lease for a tool call of a turn to the extension that runs
// the tool. It belongs to the call's row: it outlives the attempt that asked for
// the call, and is void once the row is closed.
func (b *Bus) LeaseCall(a *Actor, turn *Lease, call int64) *Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &Lease{
		Token: b.newToken(), Extension: a.ID, Generation: a.Generation, Event: turn.Event, Agent: turn.Agent, Session: turn.Session,
		Call: call, started: nowUS(),
	}
	b.leases[l.Token] = l
	return l
}

// LeaseAlone gives a lease to an extension that runs a tool outside of any
// turn. It is void with the extension's generation, or when it is released.
func (b *Bus) LeaseAlone(a *Actor) *Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &Lease{Token: b.newToken(), Extension: a.ID, Generation: a.Generation, started: nowUS()}
	b.leases[l.Token] = l
	return l
}

// Release ends the lease of a tool call.
func (b *Bus) Release(l *Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.revoked = true
	delete(b.leases, l.Token)
}

// revoke makes the token void and frees the lane; what becomes of the delivery
// is the caller's.
func (b *Bus) revoke(l *Lease) {
	l.revoked = true
	delete(b.leases, l.Token)
	if l.sink != nil {
		delete(l.sink.leases, l)
	}
	if l.item != nil {
		l.item.lane.lease = nil
	}
}

// holder is the valid lease of a lane.
func (b *Bus) holder(extension, pattern, key string) *Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		if s.Extension == extension && s.Pattern == pattern {
			if l := s.lanes[key]; l != nil && l.lease != nil && !l.lease.revoked {
				return l.lease
			}
		}
	}
	return nil
}

// void ends a lease in the middle of a commit and cancels its handler.
func (b *Bus) void(l *Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.revoked = true
	l.sink.cancels = append(l.sink.cancels, l.Token)
	l.sink.signal()
}
