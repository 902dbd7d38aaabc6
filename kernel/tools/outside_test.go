package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// counter is an extension whose tool adds to a number that it keeps.
func counter(w *kerneltest.World, before func()) *kerneltest.Extension {
	x := w.Extension(bus.Actor{ID: "counter", Publish: []string{"counter.changed"}})
	schema := []byte(
		`{"type":"object","properties":{"by":{"type":"integer"}},"required":["by"],"additionalProperties":false}`,
	)
	w.Tool(
		"counter",
		&extensionv1.Tool{Name: "add", Schema: schema},
		func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			if r.GetSession() != "" || r.GetCallId() != "" || r.GetLane() == "" {
				return nil, errors.New("this is no call outside of a turn")
			}
			var version int64
			w.Read(func(j journal.Reader) error {
				v, err := j.KVGet("counter", "n")
				version = v.Version
				return err
			})
			before()
			return &extensionv1.CallResult{Content: "added", Effects: []*busv1.Effect{
				kerneltest.PutAt("n", string(r.GetArguments()), version), kerneltest.Publish("counter.changed", map[string]any{}),
			}}, nil
		},
	)
	return x
}

func stored(w *kerneltest.World) (value string) {
	w.T.Helper()
	w.Read(func(j journal.Reader) error {
		v, err := j.KVGet("counter", "n")
		value = string(v.Value)
		return err
	})
	return value
}

func TestAlone(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		calls := 0
		x := counter(w, func() {
			if calls++; calls == 2 { // somebody else is faster, once
				w.Do(func(tx *bus.Tx) error { _, err := tx.KVPut("counter", "n", []byte("0")); return err })
			}
		})
		r, err := w.Tools.CallOutsideTurn(w.T.Context(), "counter/add", json.RawMessage(`{"by":1}`), contract.Principal{})
		if err != nil || r.GetContent() != "added" || stored(w) != `{"by":1}` {
			t.Fatalf("%v, %v, stored %s", r, err, stored(w))
		}
		events := w.Events("counter.changed")
		if len(events) != 1 || events[0].GetSource() != "counter" || events[0].GetCausationId() != "" {
			t.Errorf("events %v", events)
		}
		if _, err := w.Tools.CallOutsideTurn(
			w.T.Context(),
			"counter/add",
			json.RawMessage(`{"by":2}`),
			contract.Principal{},
		); err != nil || calls != 3 ||
			stored(w) != `{"by":2}` {
			t.Errorf("after a conflict: %v, %d calls, stored %s", err, calls, stored(w))
		}
		for _, raw := range []string{"", "{}", `{"by":"x"}`, `{"by":1,"of":2}`, `nonsense`} {
			if _, err := w.Tools.CallOutsideTurn(
				w.T.Context(),
				"counter/add",
				json.RawMessage(raw),
				contract.Principal{},
			); !errors.Is(
				err,
				contract.ErrInvalid,
			) {
				t.Errorf("arguments %s: %v", raw, err)
			}
		}
		for _, name := range []string{"counter/nothing", "nobody/add", "core/send_to_channel", "counter", ""} {
			if _, err := w.Tools.CallOutsideTurn(w.T.Context(), name, nil, contract.Principal{}); !errors.Is(err, contract.ErrNotFound) {
				t.Errorf("tool %q: %v", name, err)
			}
		}
		if calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
		x.Dies()
		if _, err := w.Tools.CallOutsideTurn(
			w.T.Context(),
			"counter/add",
			json.RawMessage(`{"by":1}`),
			contract.Principal{},
		); !errors.Is(
			err,
			contract.ErrUnavailable,
		) {
			t.Errorf("without the extension: %v", err)
		}
	})
}

// Right after the start of the kernel nobody knows yet what tools there are.
func TestAloneWaitsForAnExtensionThatIsStartedForTheFirstTime(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Know(func(s *directory.Snapshot) { s.Starting = []string{"counter"} })
		result := make(chan error)
		go func() {
			_, err := w.Tools.CallOutsideTurn(w.T.Context(), "counter/add", json.RawMessage(`{"by":1}`), contract.Principal{})
			result <- err
		}()
		w.Wait(5 * time.Second)
		counter(w, func() {})
		w.Know(func(s *directory.Snapshot) { s.Starting = nil })
		if err := <-result; err != nil || stored(w) != `{"by":1}` {
			t.Errorf("%v, stored %s", err, stored(w))
		}
		w.Know(func(s *directory.Snapshot) { s.Starting = []string{"other"} })
		began := time.Now()
		if _, err := w.Tools.CallOutsideTurn(
			w.T.Context(),
			"nobody/add",
			nil,
			contract.Principal{},
		); !errors.Is(err, contract.ErrNotFound) ||
			time.Since(began) > 0 {
			t.Errorf("of an extension that is not there: %v after %s", err, time.Since(began))
		}
	})
}

// TestAloneOfAnOldGeneration: what an extension decides after it was replaced
// has no effect.
func TestAloneOfAnOldGeneration(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		var x *kerneltest.Extension
		x = counter(w, func() {
			x.Dies()
			x.Starts()
		})
		if _, err := w.Tools.CallOutsideTurn(
			w.T.Context(),
			"counter/add",
			json.RawMessage(`{"by":1}`),
			contract.Principal{},
		); !errors.Is(
			err,
			contract.ErrStale,
		) {
			t.Errorf("got %v", err)
		}
		if stored(w) != "" || len(w.Events("counter.changed")) > 0 {
			t.Errorf("it had an effect: %s", stored(w))
		}
	})
}

func TestSend(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		post := w.Channel("post")
		post.Admits("anna")
		type outcome struct {
			status, detail string
			ids, events    int
		}
		send := func(text string, meanwhile func()) outcome {
			t.Helper()
			done := make(chan outcome, 1)
			go func() {
				d, err := w.Tools.Send(w.T.Context(), "post", text)
				if err != nil {
					t.Error(err)
					done <- outcome{}
					return
				}
				done <- outcome{d.Status, d.Detail, len(d.ProviderIDs), len(d.Events)}
			}()
			w.Settle()
			meanwhile()
			return <-done
		}
		if got := send("hello", func() { post.ShowsOne("hello") }); got != (outcome{"delivered", "", 1, 1}) {
			t.Errorf("delivered: %+v", got)
		}
		if got := send(
			"unwanted",
			func() { post.Drops(post.Next(), "no thanks") },
		); got.status != "failed" ||
			got.detail != "no thanks" {
			t.Errorf("refused: %+v", got)
		}
		began := time.Now()
		if got := send(
			"slow",
			func() {},
		); got.status != "queued" || !strings.Contains(got.detail, "no receipt from Post yet") ||
			time.Since(began) != 10*time.Second {
			t.Errorf("slow: %+v after %s", got, time.Since(began))
		}
		post.Sends()
		post.GoesOffline()
		began = time.Now()
		if got := send(
			"later",
			func() {},
		); got.status != "queued" || !strings.Contains(got.detail, "offline now") ||
			time.Since(began) != 0 {
			t.Errorf("offline: %+v after %s", got, time.Since(began))
		}
		post.IsBack()
		post.ShowsOne("later")
		post.IsUnconfigured()
		if _, err := w.Tools.Send(
			w.T.Context(),
			"post",
			"hello",
		); !errors.Is(err, contract.ErrUnavailable) ||
			!strings.Contains(err.Error(), "set TOKEN") {
			t.Errorf("not set up: %v", err)
		}
		if _, err := w.Tools.Send(w.T.Context(), "nobody", "hello"); !errors.Is(err, contract.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	})
}

// A tool that claims to be read-only has no effect where nothing records its call.
func TestAskedToolHasNoEffects(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		liar := w.Extension(bus.Actor{ID: "liar", Tools: []string{"liar/look"}, Publish: []string{"liar.looked"}})
		described := &extensionv1.Tool{Name: "look", ReadOnly: true}
		w.Tool("liar", described, func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Content: "seen", Effects: []*busv1.Effect{kerneltest.Publish("liar.looked", 1)}}, nil
		})
		if r, err := w.Tools.Ask(w.T.Context(), liar.Actor, nil, "liar/look", nil); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("the result is %v, %v", r, err)
		}
		if got := w.Events("liar.looked"); len(got) > 0 {
			t.Errorf("it had effects: %v", got)
		}
	})
}

// What an extension asks while it runs a command sees what the person's other accounts set
// up, as the command does.
func TestAskedForACommandOfALinkedPerson(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		var of contract.Principal
		w.Extension(bus.Actor{ID: "notes"})
		w.Tool("notes", &extensionv1.Tool{Name: "read", ReadOnly: true},
			func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				of = contract.PrincipalOf(r.GetPrincipal())
				return &extensionv1.CallResult{Content: "read"}, nil
			})
		lab := w.Extension(bus.Actor{ID: "lab", Tools: []string{"notes/read"}}).Running()
		payload, err := json.Marshal(contract.Command{
			Name: "look", Principal: contract.Principal{Person: "anna", Own: true}, Accounts: []string{"anna", "anna2"},
		})
		if err != nil {
			t.Fatal(err)
		}
		l := w.Bus.LeaseCall(lab, &bus.Lease{}, &busv1.Event{Topic: contract.TopicCommand + "look", Payload: payload}, 0)
		defer w.Bus.Release(l)
		if _, err := w.Tools.Ask(w.T.Context(), lab, l, "notes/read", nil); err != nil {
			t.Fatal(err)
		}
		if !of.Sees(contract.Principal{Person: "anna2", Own: true}) || of.Sees(contract.Principal{Person: "boris", Own: true}) {
			t.Errorf("it is for %+v", of)
		}
	})
}
