package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// noted adds records to the history of an idle session.
func (w *world) noted(n, size int) {
	for i := range n {
		w.rows = append(w.rows, &busv1.Entry{
			Seq: w.seq() + 1, Kind: contract.EntryInput, InputKind: contract.InputRecord, Sender: "scheduler",
			Text: fmt.Sprintf("reminder %d.", i+1) + strings.Repeat(" ", size),
		})
	}
}

// If not all records fit, the newest are shown.
func TestTheNewestOfManyRecordsAreShown(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"with the history in memory": false, "with a new process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.model = says(text("noted"))
			spec := &extensionv1.AgentSpec{Model: "default", MaxSteps: 5, MaxTokens: 20_000}
			a := w.agent(t, spec)
			send := func(id, said string) string {
				if fresh {
					a = w.agent(t, spec)
				}
				if err := w.deliver(t.Context(), a,
					input(id, contract.AgentInput{Kind: contract.InputUser, Text: said})); err != nil {
					t.Fatal(err)
				}
				var all []string
				for _, m := range w.requests[len(w.requests)-1].GetMessages() {
					all = append(all, m.GetContent())
				}
				return strings.Join(all, "\n")
			}
			send("e1", "hello")
			w.noted(3*maxRows, 0)
			if seen := send("e2", "what was that?"); !strings.Contains(seen, fmt.Sprintf("reminder %d.", 3*maxRows)) {
				t.Errorf("the newest record is not shown:\n%s", seen)
			}
		})
	}
}

// More new rows than one read returns are read completely.
func TestManyNewRowsAreReadCompletely(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = says(text("noted"))
	a := w.agent(t, &extensionv1.AgentSpec{Model: "default", MaxSteps: 5, MaxTokens: 50_000})
	if err := w.deliver(t.Context(), a, input("e1",
		contract.AgentInput{Kind: contract.InputUser, Text: "hello"})); err != nil {
		t.Fatal(err)
	}
	w.noted(20, maxHistory/10)
	h, err := a.loadHistory(t.Context(), w.contextNow())
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.rows {
		if i > 0 && h.rows[i].GetSeq() != h.rows[i-1].GetSeq()+1 {
			t.Errorf("row %d is followed by row %d", h.rows[i-1].GetSeq(), h.rows[i].GetSeq())
		}
	}
}
