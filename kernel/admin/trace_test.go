package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func of(w *kerneltest.World, id string) *admin.Trace {
	w.T.Helper()
	t, err := build(w, id)
	if err != nil {
		w.T.Fatal(err)
	}
	return t
}

func build(w *kerneltest.World, id string) (*admin.Trace, error) {
	w.Settle()
	return admin.ReadTrace(w.T.Context(), reads(w), id)
}

// outline is a tree with what matters of each step.
func outline(n *admin.Node, indent string) string {
	s := indent + n.Kind + " " + n.Name
	if n.State != "" {
		s += " " + n.State
	}
	if n.TookMillis != nil {
		s += fmt.Sprintf(" %.0fms", *n.TookMillis)
	}
	if n.ProviderID != "" {
		s += " as " + n.ProviderID
	}
	s += "\n"
	for _, c := range n.Children {
		s += outline(c, indent+"  ")
	}
	return s
}

func expect(t *testing.T, got *admin.Trace, want string) {
	t.Helper()
	if o := outline(got.Tree, ""); o != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%swant%s", o, want)
	}
}

func TestTraceOfWholeTree(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, terminal, orchestrator := w.Channel("telegram"), w.Channel("terminal"), w.Agent("orchestrator")
		telegram.Admits("anna")
		terminal.Admits("anna")
		w.Extension(bus.Actor{ID: "clock"})
		w.Tool(
			"clock",
			&extensionv1.Tool{Name: "now", ReadOnly: true},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				time.Sleep(30 * time.Millisecond)
				return &extensionv1.CallResult{Content: "noon"}, nil
			},
		)
		w.Tool(
			"clock",
			&extensionv1.Tool{Name: "set", Idempotent: true},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				time.Sleep(50 * time.Millisecond)
				return nil, errors.New("it is broken")
			},
		)
		telegram.Says("anna", "what time is it?")
		turn := orchestrator.Hears("what time is it?")
		w.Wait(100 * time.Millisecond) // the model thinks
		calls := turn.Asks([2]string{"clock/now", "{}"}, [2]string{"clock/set", "{}"})
		for _, id := range calls {
			if _, err := turn.Call(id); err != nil {
				t.Fatal(err)
			}
		}
		w.Wait(20 * time.Millisecond)
		send := turn.Asks([2]string{"core/send_to_channel", `{"channel_id":"terminal","text":"it is noon"}`})[0]
		sent := turn.Calls(send)
		terminal.Shows(": it is noon") // to the default recipient
		if _, err := sent(); err != nil {
			t.Fatal(err)
		}
		turn.Answers("I told you in the terminal.")
		telegram.Shows("anna: I told you in the terminal.")

		got := of(w, "e1")
		expect(t, got, `
event user.message
  event agent.input.orchestrator done 200ms
    turn orchestrator ok 200ms
      model model done 100ms
      tool clock/now done 30ms
      tool clock/set failed 50ms
      model model done 20ms
      tool core/send_to_channel done 0ms
        event channel.send.terminal delivered 0ms as r1
          event agent.input.orchestrator done
      model model done 0ms
      event agent.output ok
        event channel.send.telegram delivered 0ms as r1
`)
		if got.Root != "e1" || got.Asked != "e1" || got.Millis != 200 {
			t.Errorf("%+v", got)
		}
		if text := got.Tree.Children[0].Children[0].Children[2].Reason; !strings.Contains(text, "it is broken") {
			t.Errorf("the failed call says %q", text)
		}
		// The same tree, whichever of its events is asked for.
		for _, e := range w.Events(contract.TopicAgentOutput) {
			other := of(w, e.GetId())
			if other.Root != "e1" || other.Asked != e.GetId() || outline(other.Tree, "") != outline(got.Tree, "") {
				t.Errorf("from %s: %+v", e.GetId(), other)
			}
		}
		// And by what platforms call its messages: the newest, and the others.
		byPlatform := of(w, "r1")
		if byPlatform.Root != "e1" || len(byPlatform.Also) != 1 {
			t.Errorf("by the platform's id: %+v", byPlatform)
		}
		if got := of(w, "m1"); got.Asked != "e1" {
			t.Errorf("by the id of a message that was received: %+v", got)
		}
		if got := of(w, "anna/m1"); got.Asked != "e1" {
			t.Errorf("by conversation and message: %+v", got)
		}
	})
}

func TestTraceOfUnfinished(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "hello")
		expect(t, of(w, "e1"), `
event user.message
  event agent.input.orchestrator pending
`)
		turn := orchestrator.Hears("hello")
		turn.Asks([2]string{"core/list_channels", "{}"})
		expect(t, of(w, "e1"), `
event user.message
  event agent.input.orchestrator pending
    turn orchestrator running
      model model done 0ms
      tool core/list_channels open
`)
		turn.Ends(contract.OutcomeError, "Sorry.")
		d := telegram.Next()
		telegram.Drops(d, "blocked by the user")
		expect(t, of(w, "e1"), `
event user.message
  event agent.input.orchestrator done 0ms
    turn orchestrator error 0ms
      model model done 0ms
      tool core/list_channels closed 0ms
      model model done 0ms
      event agent.output error
        event channel.send.telegram dead 0ms
          event agent.input.orchestrator done
          event channel.send.telegram in flight
          event system.delivery.dead
`)
		// A session that was deleted leaves its events.
		w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(turn.Session())) })
		if o := outline(of(w, "e1").Tree, ""); !strings.Contains(o, "event agent.output") || strings.Contains(o, "turn ") {
			t.Errorf("after the session was deleted:\n%s", o)
		}
	})
}

func TestTraceOfUnroutable(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		telegram.Admits("anna")
		w.Know(func(s *directory.Snapshot) { s.DefaultAgent = "nobody" })
		telegram.Says("anna", "hello")
		got := of(w, "e1")
		i := slices.IndexFunc(got.Tree.Children, func(n *admin.Node) bool { return n.Kind == admin.KindDelivery })
		if i < 0 || got.Tree.Children[i].Name != "router" || got.Tree.Children[i].State != "dead" ||
			!strings.Contains(got.Tree.Children[i].Reason, "nobody") {
			t.Errorf("got\n%s", outline(got.Tree, ""))
		}
	})
}

func TestTraceOfSubscribers(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		source := w.Extension(bus.Actor{ID: "source", Publish: []string{"source.*"}})
		reader := w.Extension(bus.Actor{ID: "reader"}, kerneltest.On("source.*"))
		source.Must("", kerneltest.Publish("source.news", map[string]any{"text": "  something\n new "}))
		d := reader.Take()
		w.Wait(40 * time.Millisecond)
		reader.Fails(d, "try later")
		for d = nil; d == nil; d = reader.Next() {
			w.Wait(100 * time.Millisecond)
		}
		reader.Acks(d)
		w.Wait(time.Second)
		got := of(w, "e1")
		if len(got.Tree.Children) != 1 {
			t.Fatalf("got\n%s", outline(got.Tree, ""))
		}
		if n := got.Tree.Children[0]; n.Kind != admin.KindDelivery || n.Name != "reader" || n.State != "done" ||
			n.Attempts != 1 ||
			n.WaitMillis == nil ||
			*n.WaitMillis < 40 {
			t.Errorf("the delivery: %+v", n)
		}
		if got.Tree.Text != "something new" {
			t.Errorf("text %q", got.Tree.Text)
		}
	})
}

func TestTraceOfNotFound(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		for _, id := range []string{"e1", "e99999999999", "zzz", "e-1", "12/34"} {
			if _, err := build(w, id); !errors.Is(err, contract.ErrNotFound) {
				t.Errorf("%q: %v", id, err)
			}
		}
		if _, err := build(w, ""); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("no id: %v", err)
		}
	})
}

func TestTraceOfManyEvents(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Do(func(tx *bus.Tx) error {
			first, err := tx.Emit("x.y", "", "first")
			if err != nil {
				return err
			}
			for range 2100 {
				if err := tx.Following(first, func() error { _, err := tx.Emit("x.y", "", "more"); return err }); err != nil {
					return err
				}
			}
			return nil
		})
		got := of(w, "e7")
		if !got.More || got.Root != "e1" || len(got.Tree.Children) != 1999 {
			t.Errorf("more %v, root %s, %d children", got.More, got.Root, len(got.Tree.Children))
		}
	})
}
