package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rebuilt "github.com/switchboard-run/switchboard/extensions/agent/sent"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// The request that `switchboard trace --request` builds again is the one that the model was
// sent: of each step, with the system prompt, the time and the results of tools, also after
// a kill.
func TestTheRequestOfAStepIsTheOneThatWasSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.start()
	p := w.attach()
	w.model.Queue(openaitest.Say("Hello."))
	p.ask("I am Anna")
	w.model.Queue(openaitest.CallTool("list_channels", "{}"), openaitest.Say("Two."))
	p.ask("Which channels are there?")
	w.settled()
	w.restart()
	requests := w.model.Requests()
	for i, message := range []struct {
		text string
		step int
	}{{"I am Anna", 1}, {"Which channels are there?", 1}, {"Which channels are there?", 2}} {
		var r rebuilt.Request
		out := w.must("trace", w.eventOf(message.text), "--request", fmt.Sprint(message.step), "--json")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		var raw struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal([]byte(requests[i].Raw), &raw); err != nil || len(r.Messages) != len(raw.Messages) {
			t.Fatalf("request %d: %d messages were sent, %d are shown: %v", i, len(raw.Messages), len(r.Messages), err)
		}
		for n, m := range raw.Messages {
			if got := r.Messages[n]; got.Role != m.Role || got.Content != m.Content {
				t.Errorf("request %d, message %d: sent\n%s: %s\nshown\n%s: %s", i, n, m.Role, m.Content, got.Role, got.Content)
			}
		}
		if len(r.Tools) != len(requests[i].Tools) {
			t.Errorf("request %d: %d tools were sent, %d are shown", i, len(requests[i].Tools), len(r.Tools))
		}
	}
}

// eventOf returns the id of the event of a person's message.
func (w *world) eventOf(text string) string {
	w.t.Helper()
	for line := range strings.Lines(w.must("events", "tail", "--topic", "user.message", "--json")) {
		var e struct {
			ID      string
			Payload struct{ Text string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		if e.Payload.Text == text {
			return e.ID
		}
	}
	w.t.Fatalf("there is no message %q", text)
	return ""
}
