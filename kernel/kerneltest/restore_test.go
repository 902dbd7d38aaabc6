package kerneltest_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// TestAStoreOfEarlier goes back to what the store was while a send waited and a
// tool was about to be called. Both have happened since: the send comes with a
// mark, and the tool is not called again.
func TestAStoreOfEarlier(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		w.Extension(bus.Actor{ID: "shop"})
		bought := 0
		w.Tool(
			"shop",
			&extensionv1.Tool{Name: "buy"},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				bought++
				return &extensionv1.CallResult{Content: "bought"}, nil
			},
		)
		telegram.Admits("anna", "ben")
		telegram.Says("anna", "hello")
		orchestrator.Hears("hello").Answers("hello yourself")
		telegram.Says("ben", "buy tea")
		turn := orchestrator.Hears("buy tea")
		call := turn.Asks([2]string{"shop/buy", `{}`})[0]
		earlier := t.TempDir()
		backup := filepath.Join(earlier, "switchboard.db")
		if err := w.Store.Backup(w.T.Context(), backup); err != nil {
			t.Fatal(err)
		}
		telegram.Shows("anna: hello yourself")
		if _, err := turn.Call(call); err != nil {
			t.Fatal(err)
		}

		if err := sqlite.MarkUncertain(backup); err != nil {
			t.Fatal(err)
		}
		w.RestartIn(earlier)
		if d := telegram.Take(); !d.GetUncertain() {
			t.Error("a send that has been made since comes without a mark")
		} else {
			telegram.Confirms(d)
		}
		turn = orchestrator.Hears("buy tea")
		if r, err := turn.Call(call); err != nil || !strings.Contains(r.GetContent(), "it is unknown whether") {
			t.Errorf("a call that has been made since: %v, %v", r, err)
		}
		if bought != 1 {
			t.Errorf("it was bought %d times", bought)
		}
		turn.Answers("tea is bought")
		if d := telegram.Take(); !d.GetUncertain() {
			t.Error("an answer that may have been given since comes without a mark")
		} else {
			telegram.Confirms(d)
		}
		telegram.Says("ben", "and milk")
		orchestrator.Hears("and milk").Answers("later")
		if d := telegram.Take(); d.GetUncertain() {
			t.Error("the answer to what came after the restoration is marked")
		}
	})
}

// TestASendOfEarlier goes back to what the store was while an agent was about to
// send to a channel, which has happened since: it is not sent again, and the
// agent is told.
func TestASendOfEarlier(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, phone, orchestrator := w.Channel("telegram"), w.Channel("phone"), w.Agent("orchestrator")
		telegram.Admits("anna")
		phone.Admits("anna")
		phone.Says("anna", "here I am")
		orchestrator.Hears("here I am").Answers("hello")
		phone.Shows("anna: hello")
		telegram.Says("anna", "tell my phone")
		turn := orchestrator.Hears("tell my phone")
		call := turn.Asks([2]string{"core/send_to_channel", `{"channel_id": "phone", "text": "ring"}`})[0]
		earlier := t.TempDir()
		backup := filepath.Join(earlier, "switchboard.db")
		if err := w.Store.Backup(w.T.Context(), backup); err != nil {
			t.Fatal(err)
		}
		if err := sqlite.MarkUncertain(backup); err != nil {
			t.Fatal(err)
		}
		w.RestartIn(earlier)
		turn = orchestrator.Hears("tell my phone")
		if r, err := turn.Call(
			call,
		); err != nil || !r.GetIsError() ||
			!strings.Contains(r.GetContent(), "it is unknown whether") {
			t.Errorf("a send that has been made since: %v, %v", r, err)
		}
		if d := phone.Next(); d != nil {
			t.Errorf("it is sent again: %v", d.GetEvent())
		}
	})
}
