// Package session holds the durable state of sessions and the rules by which it
// changes: inputs are queued, a turn begins with the first rows that the holder
// of the lane appends, tool calls are rows that are answered once, and every
// turn ends in exactly one commit that settles its inputs, closes what is open
// and publishes one agent.output.
//
// Everything here runs inside of a commit of the bus, so it happens entirely or
// not at all. Only the holder of a session's lane writes to its history, and
// the kernel where it ends a turn in the holder's place.
package session

import (
	"sync"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Book applies the effects that concern sessions. It is safe for concurrent
// use; it keeps nothing but the epochs below.
type Book struct {
	directory *directory.Directory
	calls     Calls

	mu     sync.Mutex
	epochs map[int64]int64 // changes of a history by the kernel itself, since its start
}

var _ bus.Sessions = (*Book)(nil)

// New returns a book that resolves names with the directory.
func New(d *directory.Directory) *Book {
	return &Book{directory: d, calls: noCalls{}, epochs: map[int64]int64{}}
}

// Calls is who runs the tool calls. Its methods must not block.
type Calls interface {
	// Closed is told of each call that ended without its runner: it may stop.
	Closed(call int64)
	// Interrupt is told of each session in which a message of a person was queued.
	Interrupt(session int64)
	// Running says whether a call runs now, of those that may be repeated and are
	// therefore not marked in the store.
	Running(call int64) bool
}

// Run sets who runs the calls, before anything happens.
func (b *Book) Run(c Calls) { b.calls = c }

type noCalls struct{}

func (noCalls) Closed(int64)       {}
func (noCalls) Interrupt(int64)    {}
func (noCalls) Running(int64) bool { return false }

func (b *Book) epoch(session int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epochs[session]
}

// disturb says that somebody else than the run loop changes a history.
func (b *Book) disturb(session int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epochs[session]++
}

func result(r *busv1.EffectResult, err error) (*busv1.EffectResult, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
