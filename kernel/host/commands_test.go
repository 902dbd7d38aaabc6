package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// TestACommandIsACallOfItsTool gives the commands of extensions with and without a
// stream of events.
func TestACommandIsACallOfItsTool(t *testing.T) {
	for name, events := range map[string]bool{"tools only": false, "tools and events": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Know(func(s *directory.Snapshot) {
				s.Commands = []command.Slash{
					{Name: "jot", Extension: "notes", Title: "Notes"},
					{Name: "lost", Extension: "notes", Title: "Notes"},
				}
			})
			if err := w.Bus.Subscribe("notes", []bus.Subscription{
				{Pattern: "command.*", Commands: []string{"jot", "lost"}, Ordered: true, AckWait: time.Minute, MaxDeliver: 3},
				{Pattern: "other.*", Ordered: true, AckWait: time.Minute, MaxDeliver: 1},
			}); err != nil {
				t.Fatal(err)
			}
			calls := make(chan *extensionv1.CallRequest, 10)
			heard := make(chan string, 10)
			notes := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.*"}})
			p := handles(func(d *busv1.Delivery) *busv1.Outcome {
				heard <- d.GetEvent().GetTopic()
				return ack()
			})
			p.call = func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				calls <- r
				return &extensionv1.CallResult{
					Content: "noted",
					Effects: []*busv1.Effect{kerneltest.Publish("notes.added", string(r.GetArguments()))},
				}, nil
			}
			notes.runs(p, &extensionv1.Description{Events: events, Tools: []*extensionv1.Tool{
				{
					Name:    "add",
					Command: "jot",
					Schema: []byte(
						`{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"due_seconds":{"type":"integer"}}}`,
					),
				},
			}})

			given := w.Emits(
				"command.jot",
				contract.Command{Name: "jot", Text: "call mum due_seconds=12", Session: "s1", Sender: "Anna", ReplyTo: "x"},
			)
			r := <-calls
			if string(r.GetArguments()) != `{"due_seconds":12,"text":"call mum"}` || r.GetName() != "add" || r.GetCommand() != "jot" ||
				r.GetCallId() != given.GetId() || r.GetSender() != "Anna" || r.GetSession() != "s1" || r.GetTimezone() != "UTC" ||
				r.GetRepeat() {
				t.Errorf("the call is %v", r)
			}
			w.Emits("command.jot", contract.Command{Name: "jot", Text: "due_seconds=soon x"}) // answered without a call
			w.Emits("command.lost", contract.Command{Name: "lost"})
			w.Emits("command.jot", contract.Command{Name: "jot", Text: "again"})
			if r := <-calls; string(r.GetArguments()) != `{"text":"again"}` {
				t.Errorf("the call is %v", r)
			}
			w.Emits("other.thing", "x")
			if events {
				if topic := <-heard; topic != "other.thing" {
					t.Errorf("the stream carries %s", topic)
				}
			}
		})
	}
}
