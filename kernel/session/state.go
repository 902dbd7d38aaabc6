package session

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// States of a session.
const (
	StateIdle    = "idle"    // nothing is to be done
	StateWaiting = "waiting" // something is, and its agent does not have it now
	StateRunning = "running" // its agent is at it
)

// State is what a session is doing at one moment.
type State struct {
	Name    string // idle, waiting, running
	Turns   int    // begun and not ended: all but the last were interrupted
	Waiting int    // inputs that no turn has begun with; of many, some
}

// State tells what a session is doing.
func (st *Store) State(r journal.Reader, all *bus.Bus, s *journal.Session) (State, error) {
	held, unsettled, err := all.LaneState(r, s.Agent, contract.TopicAgentInput+s.Agent, journal.SessionID(s.ID))
	if err != nil {
		return State{}, err
	}
	inputs, err := st.begun(r, s)
	if err != nil {
		return State{}, err
	}
	state := State{Name: StateIdle, Turns: len(s.Stack), Waiting: max(0, unsettled-len(inputs))}
	switch {
	case held:
		state.Name = StateRunning
		if len(s.Stack) == 0 { // it has the first one
			state.Turns, state.Waiting = 1, max(0, state.Waiting-1)
		}
	case unsettled > 0 || len(s.Stack) > 0:
		state.Name = StateWaiting
	}
	return state, nil
}
