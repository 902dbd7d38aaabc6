package agent

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// A request that is built again of the rows is the one that was sent: of each step of several
// turns, with tools.
func TestARebuiltRequestIsTheOneThatWasSent(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("notes/add", false)
	w.tool("notes/list", true)
	var sent []*kernelv1.CompleteRequest
	answers := []*said{
		text("Hello."), calls("notes/list", "notes/list"), calls("notes/add"), text("Noted."), text("Bye."),
	}
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		sent = append(sent, proto.CloneOf(r))
		return answers[len(sent)-1].emit(emit)
	}
	spec := &extensionv1.AgentSpec{Instructions: "Be brief."}
	a := w.agent(t, spec)
	for i, said := range []string{"I am Anna", "note it", "bye"} {
		if err := w.deliver(t.Context(), a, input([]string{"e1", "e2", "e3"}[i], user(said))); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := w.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	channels, err := w.Channels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var rebuilt []*kernelv1.CompleteRequest
	for i, e := range w.rows {
		if e.GetKind() != contract.EntryAnswer {
			continue
		}
		var rows []*busv1.Entry
		for _, before := range w.rows[:i] {
			rows = append(rows, proto.CloneOf(before))
		}
		context := w.contextNow()
		context.Turn = e.GetTurn()
		r, err := Rebuild(Past{
			Name: a.name, Spec: spec, Prompts: a.prompts, Tools: tools, Channels: channels, Turn: context, Rows: rows,
			Location: a.zone, Now: time.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		rebuilt = append(rebuilt, withoutPreambles(r)) // as the model of the test gets it
	}
	if len(sent) != 5 || !slices.EqualFunc(sent, rebuilt, func(a, b *kernelv1.CompleteRequest) bool {
		a.Lane = ""
		return proto.Equal(a, b)
	}) {
		for i := range sent {
			t.Errorf("sent\n%v\nrebuilt\n%v", sent[i], rebuilt[i])
		}
	}
}
