package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// noted has the kernel write down records while nothing is to be done.
func (w *world) noted(n, size int) {
	for i := range n {
		w.rows = append(w.rows, &busv1.Entry{
			Seq: w.seq() + 1, Kind: contract.EntryInput, InputKind: contract.InputRecord, Sender: "scheduler",
			Text: fmt.Sprintf("reminder %d.", i+1) + strings.Repeat(" ", size),
		})
	}
}

// Each record stands for itself: of more than fit, the newest are shown.
func TestOfManyRecordsTheNewestAreShown(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"with the history in memory": false, "with a new process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.model = says(text("noted"))
			spec := &extensionv1.AgentSpec{Model: "default", MaxSteps: 5, MaxTokens: 20_000}
			a := w.agent(t, spec)
			hear := func(id, said string) string {
				if fresh {
					a = w.agent(t, spec)
				}
				if err := w.deliver(t.Context(), a, input(id, contract.AgentInput{Kind: contract.InputUser, Text: said})); err != nil {
					t.Fatal(err)
				}
				var all []string
				for _, m := range w.requests[len(w.requests)-1].GetMessages() {
					all = append(all, m.GetContent())
				}
				return strings.Join(all, "\n")
			}
			hear("e1", "hello")
			w.noted(3*maxRows, 0)
			if seen := hear("e2", "what was that?"); !strings.Contains(seen, fmt.Sprintf("reminder %d.", 3*maxRows)) {
				t.Errorf("the newest record is not shown:\n%s", seen)
			}
		})
	}
}

// What is new may be more than is read at once: then none of it is left out.
func TestMoreIsNewThanIsReadAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = says(text("noted"))
	a := w.agent(t, &extensionv1.AgentSpec{Model: "default", MaxSteps: 5, MaxTokens: 50_000})
	if err := w.deliver(t.Context(), a, input("e1", contract.AgentInput{Kind: contract.InputUser, Text: "hello"})); err != nil {
		t.Fatal(err)
	}
	w.noted(20, maxHistory/10)
	h, err := a.recall(t.Context(), w.contextNow())
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.rows {
		if i > 0 && h.rows[i].GetSeq() != h.rows[i-1].GetSeq()+1 {
			t.Errorf("behind row %d stands row %d", h.rows[i-1].GetSeq(), h.rows[i].GetSeq())
		}
	}
}
