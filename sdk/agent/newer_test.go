package agent

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Only the rows that the kernel has recorded since are read.
func TestACachedHistoryLoadsOnlyNewRows(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = says(text("noted"))
	a := w.agent(t, &extensionv1.AgentSpec{Model: "default", MaxSteps: 5, MaxTokens: 50_000})
	send := func(id, said string) {
		if err := w.deliver(t.Context(), a, input(id,
			contract.AgentInput{Kind: contract.InputUser, Text: said})); err != nil {
			t.Fatal(err)
		}
	}
	send("e1", "one")
	w.rows = append(w.rows, &busv1.Entry{
		Seq: int64(len(w.rows) + 1), Kind: contract.EntryInput, InputKind: contract.InputRecord, Input: "e2",
		Sender: "scheduler", Text: "the bread is out",
	})
	send("e3", "two")
	send("e4", "three")
	if n := strings.Count(strings.Join(w.rpcs, " "), "history"); n != 1 {
		t.Errorf("the history was read %d times: %q", n, w.rpcs)
	}
	for i, r := range w.requests[1:] {
		var all []string
		for _, m := range r.GetMessages() {
			all = append(all, m.GetContent())
		}
		if said := strings.Join(all, "|"); strings.Count(said, "the bread is out") != 1 ||
			strings.Index(said, "one") > strings.Index(said, "the bread is out") {
			t.Errorf("request %d: %s", i+2, said)
		}
	}
}
