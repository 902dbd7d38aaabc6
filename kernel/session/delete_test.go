package session_test

import (
	"errors"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func (w world) session(id int64) (s *journal.Session) {
	w.T.Helper()
	w.Read(func(r journal.Reader) (err error) {
		s, err = r.Session(id)
		return err
	})
	return s
}

// TestDelete: a session goes with everything in it, whatever it is doing, and
// its conversation begins anew.
func TestDelete(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "first")
		turn := w.orchestrator.Hears("first")
		call := turn.Asks([2]string{"core/list_channels", "{}"})[0]
		w.telegram.Says("anna", "second")
		w.Settle()
		id := turn.Session()
		w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(id)) })
		w.Settle()
		if s := w.session(id); s != nil {
			t.Errorf("it is still there: %+v", s)
		}
		if c := w.call(call); c != nil {
			t.Errorf("its call is still there: %+v", c)
		}
		if !w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Error("the running turn was not told")
		}
		if _, err := turn.TriesToAsk([2]string{"core/list_channels", "{}"}); !errors.Is(err, contract.ErrStale) {
			t.Errorf("the turn that it had goes on: %v", err)
		}
		w.orchestrator.HearsNothing() // the message that waited was of that session
		w.telegram.IsSilent()
		if dead := w.Dead(contract.TopicAgentInput + "orchestrator"); len(dead) > 0 {
			t.Errorf("dead letters: %v", dead)
		}

		w.telegram.Says("anna", "third")
		next := w.orchestrator.Hears("third")
		if next.Session() == id || next.Delivery.GetTurn().GetHistorySeq() != 0 {
			t.Errorf("it goes on as session %d at row %d", next.Session(), next.Delivery.GetTurn().GetHistorySeq())
		}
		next.Answers("hello")
		w.telegram.Shows("anna: hello")
		if err := w.Bus.Do(
			func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(id)) },
		); !errors.Is(
			err,
			contract.ErrNotFound,
		) {
			t.Errorf("deleting it again: %v", err)
		}
	})
}
