// Package session holds the durable state of sessions and the rules by which it
// changes: inputs are queued, a turn begins with the first rows that the holder
// of the lane appends, tool calls are rows that are answered once, and every
// turn ends in exactly one commit that settles its inputs, closes what is open
// and publishes one agent.output.
//
// Everything here runs inside a commit of the bus, so it happens entirely or not at
// all. Only the holder of a session's lane writes to its history, and the kernel
// when it ends a turn for the holder.
package session

import (
	"fmt"
	"sync"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Store implements the effects that concern sessions, and the hooks of turns. It
// is safe for concurrent use.
type Store struct {
	directory *directory.Directory
	calls     Calls

	mu     sync.Mutex
	epochs map[int64]int64 // by session: changes of its history by the kernel itself, since the start
}

// Calls are the tool calls that run. The methods must not block.
type Calls interface {
	// Running reports whether a call runs. Calls that may be repeated are not marked
	// as running in the journal.
	Running(call int64) bool
	// Stop stops a call that has ended without a result of its own.
	Stop(call int64)
	// Interrupt interrupts the calls of a session: a person has written to it.
	Interrupt(session int64)
}

// New returns a store that resolves names with the directory.
func New(d *directory.Directory, c Calls) *Store {
	return &Store{directory: d, calls: c, epochs: map[int64]int64{}}
}

// Effects are the effects that concern sessions.
func (st *Store) Effects() []bus.Effect {
	return []bus.Effect{
		{Kind: (*busv1.Effect_SessionEnsure)(nil), Permission: "session.ensure", Apply: st.ensure},
		{Kind: (*busv1.Effect_Input)(nil), Permission: "input", Apply: st.input},
		{Kind: (*busv1.Effect_SessionIdle)(nil), Permission: "input", Apply: st.whenIdle},
		{Kind: (*busv1.Effect_TurnCancel)(nil), Permission: "turn.cancel", Apply: st.cancel},
		{Kind: (*busv1.Effect_Append)(nil), Grant: bus.Agents, Apply: st.append},
		{Kind: (*busv1.Effect_Steer)(nil), Grant: bus.Agents, Apply: st.steer},
	}
}

// Hooks are what sessions do in other commits: an output with an acknowledgement
// ends a turn, a begun input cannot be withdrawn, and an idle session is published to
// the extensions that asked.
func (st *Store) Hooks() bus.Hooks {
	return bus.Hooks{Output: st.output, Ack: st.acked, Withdraw: st.withdraw, Rest: st.rested, Turn: st.context}
}

// Find returns the session with an id; an error of class contract.ErrNotFound says that
// there is none.
func Find(r journal.Reader, id string) (*journal.Session, error) {
	s, err := r.Session(journal.ParseSessionID(id))
	if err == nil && s == nil {
		err = fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, id)
	}
	return s, err
}

func (st *Store) epoch(session int64) int64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.epochs[session]
}

// bumpEpoch invalidates the run loop's cached history.
func (st *Store) bumpEpoch(session int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.epochs[session]++
}
