package session

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// State is what a session does at one moment.
type State struct {
	// Name is idle (there is nothing to do), waiting (there is, and its agent does not
	// have it now) or running (its agent works on it).
	Name    string
	Turns   int // that have begun and not ended: all but the last were interrupted
	Waiting int // inputs that no turn has begun with, up to a bound
}

// State returns what a session does.
func (st *Store) State(r journal.Reader, all *bus.Bus, s *journal.Session) (State, error) {
	held, unsettled, err := all.LaneState(r, s.Agent, contract.TopicAgentInput+s.Agent, journal.SessionID(s.ID))
	if err != nil {
		return State{}, err
	}
	inputs, err := st.begun(r, s)
	if err != nil {
		return State{}, err
	}
	state := State{Name: "idle", Turns: len(s.Stack), Waiting: max(0, unsettled-len(inputs))}
	switch {
	case held:
		state.Name = "running"
		if len(s.Stack) == 0 { // it has the first one
			state.Turns, state.Waiting = 1, max(0, state.Waiting-1)
		}
	case unsettled > 0 || len(s.Stack) > 0:
		state.Name = "waiting"
	}
	return state, nil
}
