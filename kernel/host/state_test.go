package host_test

import (
	"errors"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
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
	if _, err := g.sessions.Get(
		t.Context(),
		&kernelv1.SessionRequest{Session: "s999"},
	); !errors.Is(
		contract.FromStatus(err),
		contract.ErrNotFound,
	) {
		t.Errorf("one that does not exist: %v", err)
	}
	for key, exists := range map[string]bool{found.GetKey(): false, "nobody": false, s.keyOf(session): true} {
		byKey, err := g.sessions.Get(t.Context(), &kernelv1.SessionRequest{Agent: "chat", Key: key})
		if exists && byKey.GetId() != session || !exists && !errors.Is(contract.FromStatus(err), contract.ErrNotFound) {
			t.Errorf("the session by its key %q: %v, %v", key, byKey, err)
		}
	}
	if _, err := g.sessions.History(t.Context(), &kernelv1.HistoryRequest{Session: session}); err == nil {
		t.Error("it reads what was said")
	}
	other := w.admit(bus.Actor{ID: "notes", Effects: []string{"withdraw"}})
	for _, r := range []*kernelv1.SessionRequest{{Session: session}, {Agent: "chat", Key: s.keyOf(session)}} {
		if _, err := other.sessions.Get(t.Context(), r); err == nil {
			t.Errorf("one that may queue nothing knows it, too: %v", r)
		}
	}
}

// keyOf is the stored key of a session.
func (s chat) keyOf(session string) (key string) {
	s.w.T.Helper()
	s.w.Read(func(r journal.Reader) error {
		found, err := r.Session(journal.ParseSessionID(session))
		if err == nil {
			key = found.Key
		}
		return err
	})
	return key
}
