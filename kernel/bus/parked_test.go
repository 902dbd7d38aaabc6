package bus_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// What a subscription leaves out is not stored. One that was parked over a
// restart collects more than it may have, and is never handed that.
func TestParkedOverARestartItGetsOnlyItsOwn(t *testing.T) {
	inWorld(t, func(w *world) {
		own := bus.Subscription{
			Pattern:    contract.TopicAgentOutput,
			Own:        true,
			Ordered:    true,
			AckWait:    plain.AckWait,
			MaxDeliver: 3,
			MaxAge:     plain.MaxAge,
		}
		w.subscribe("lab", commandSub("shout"), own)
		w.subscribe("lab") // it is switched off
		w.crash()
		others := append(w.publish("command.pay", "a/others"), w.publish("command.shout", "b/own")...)
		var outputs []int64
		for _, out := range []contract.AgentOutput{{Session: "s1", Text: "private"}, {Session: "s2", Text: "for it", Extension: "lab"}} {
			err := w.Do(func(tx *bus.Tx) error {
				e, err := tx.Emit(contract.TopicAgentOutput, out.Session, out)
				outputs = append(outputs, e.GetSeq())
				return err
			})
			if err != nil {
				w.Fatal(err)
			}
		}
		w.subscribe("lab", commandSub("shout"), own) // and on again
		lab := w.attach("lab", 10)
		lab.wantHeld("b/own", contract.TopicAgentOutput)
		if d := lab.take(contract.TopicAgentOutput); d.GetEvent().GetKey() != "s2" {
			w.Errorf("it was handed the output of %s", d.GetEvent().GetKey())
		}
		w.wantState(others[0], journal.Done)
		w.wantState(outputs[0], journal.Done)
	})
}
