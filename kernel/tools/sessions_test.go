package tools_test

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/session"
)

func TestTheStateOfASession(t *testing.T) {
	play(t, func(w *world) {
		state := func() session.State {
			t.Helper()
			s := w.Session("orchestrator", "chan:telegram:anna")
			var state session.State
			w.Read(func(r journal.Reader) (err error) {
				state, err = w.Sessions.State(r, w.Bus, s)
				return err
			})
			return state
		}
		check := func(when string, want session.State) {
			t.Helper()
			if got := state(); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		turn := w.hears()
		check("a message that the agent has", session.State{Name: "running", Turns: 1})
		turn.Asks([2]string{"core/list_channels", "{}"})
		check("a turn that has begun", session.State{Name: "running", Turns: 1})
		w.telegram.Says("anna", "more")
		check("with a message behind it", session.State{Name: "running", Turns: 1, Waiting: 1})
		w.orchestrator.Dies()
		check("without its agent", session.State{Name: "waiting", Turns: 1, Waiting: 1})
		w.orchestrator.Starts()
		w.Wait(time.Minute)
		turn = w.orchestrator.Hears("go")
		check("taken up again", session.State{Name: "running", Turns: 1, Waiting: 1})
		turn.Answers("done")
		w.orchestrator.Hears("more").Answers("done, too")
		check("at rest", session.State{Name: "idle"})
		w.orchestrator.Stops()
		w.telegram.Says("anna", "still there?")
		check("with a message for nobody", session.State{Name: "waiting", Waiting: 1})
	})
}
