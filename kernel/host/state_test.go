package host_test

import (
	"errors"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// Whoever may queue inputs may know what a session is doing, and not what was
// said there.
func TestWhoQueuesInputsKnowsWhatASessionIsDoing(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	session := s.says("anna", "hello").GetTurn().GetSession()
	g := w.admit(bus.Actor{ID: "tasks", Effects: []string{"input"}})
	found, err := g.sessions.Get(t.Context(), &kernelv1.SessionRequest{Session: session})
	if err != nil || found.GetState() != "running" || found.GetKey() != "chan" {
		t.Errorf("the session: %v, %v", found, err)
	}
	if _, err := g.sessions.Get(t.Context(), &kernelv1.SessionRequest{Session: "s999"}); !errors.Is(contract.FromStatus(err), contract.ErrNotFound) {
		t.Errorf("one that does not exist: %v", err)
	}
	if _, err := g.sessions.History(t.Context(), &kernelv1.HistoryRequest{Session: session}); err == nil {
		t.Error("it reads what was said")
	}
	other := w.admit(bus.Actor{ID: "notes", Effects: []string{"withdraw"}})
	if _, err := other.sessions.Get(t.Context(), &kernelv1.SessionRequest{Session: session}); err == nil {
		t.Error("one that may queue nothing knows it, too")
	}
}
