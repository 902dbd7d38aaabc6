package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// A model sees the thread of its input and the rows without a thread.
func TestAModelSeesOneThread(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"with the history in memory": false,
		"with a new process for each input": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.model = says(text("noted"))
			spec := &extensionv1.AgentSpec{Model: "default", MaxSteps: 5, MaxTokens: 50_000}
			a := w.agent(t, spec)
			in := func(id, kind, thread, said string) {
				if fresh {
					a = w.agent(t, spec)
				}
				e := input(id, contract.AgentInput{Kind: kind, Sender: "lead", Text: said, Thread: thread})
				if err := w.deliver(t.Context(), a, e); err != nil {
					t.Fatal(err)
				}
			}
			in("e1", contract.InputMessage, "x1", "apple")
			in("e2", contract.InputRecord, "x2", "sent-pear")
			in("e3", contract.InputRecord, "x1", "sent-apple")
			in("e4", contract.InputMessage, "x2", "pear")
			in("e5", contract.InputRecord, "", "x1 is over")
			in("e6", contract.InputMessage, "x2", "plum")
			in("e7", contract.InputMessage, "x3", "fig")
			in("e8", contract.InputMessage, "", "everything")
			for i, want := range []string{
				"apple",
				"sent-pear pear",
				"sent-pear pear 'x1 is over' plum",
				"'x1 is over' fig",
				"apple sent-pear sent-apple pear 'x1 is over' plum fig everything",
			} {
				var got []string
				for _, m := range w.requests[i].GetMessages() {
					if m.GetRole() != "user" {
						continue
					}
					said := strings.Split(m.GetContent(), "\n")[2]
					if strings.Contains(said, " ") {
						said = "'" + said + "'"
					}
					got = append(got, said)
				}
				if text := strings.Join(got, " "); text != want {
					t.Errorf("request %d: %s\nwant %s", i+1, text, want)
				}
			}
			for i, e := range w.rows {
				if e.GetKind() == contract.EntryInput && e.GetThread() == "" && i != len(w.rows)-2 && e.GetText() != "x1 is over" {
					t.Errorf("row %d has lost its thread: %v", i, e)
				}
			}
		})
	}
}

func TestRowsOfATurnBelongToTheThreadOfItsInput(t *testing.T) {
	t.Parallel()
	rows := []row{
		{Entry: &busv1.Entry{Kind: contract.EntryInput, Thread: "x1", Text: "a"}, turn: 1},
		{Entry: &busv1.Entry{Kind: contract.EntryAnswer, Text: "b"}, turn: 1},
		{Entry: &busv1.Entry{Kind: contract.EntryResult, Text: "c"}, turn: 1},
		{Entry: &busv1.Entry{Kind: contract.EntryInput, Text: "d"}, turn: 2},
		{Entry: &busv1.Entry{Kind: contract.EntryAnswer, Text: "e"}, turn: 2},
		{Entry: &busv1.Entry{Kind: contract.EntryNote, Text: "f"}, turn: 3},
		{Entry: &busv1.Entry{Kind: contract.EntryInput, Thread: "x2", Text: "g"}, turn: 3},
		{Entry: &busv1.Entry{Kind: contract.EntryAnswer, Text: "h"}, turn: 3},
	}
	for thread, want := range map[string]string{"": "abcdefgh", "x1": "abcdef", "x2": "defgh", "x3": "def"} {
		got := ""
		for _, r := range ofThread(rows, thread) {
			got += r.GetText()
		}
		if got != want {
			t.Errorf("thread %q: %s, want %s", thread, got, want)
		}
	}
}

// A session of many threads holds a record of each that is over: a model is shown
// the newest of them, and all of its own thread.
func TestOnlyTheNewestRowsWithoutAThreadAreShown(t *testing.T) {
	t.Parallel()
	var rows []row
	want := ""
	for i := range 3 * maxUnthreaded {
		over := row{Entry: &busv1.Entry{Kind: contract.EntryInput, InputKind: contract.InputRecord,
			Text: fmt.Sprintf("o%d ", i)}}
		own := row{Entry: &busv1.Entry{Kind: contract.EntryInput, Thread: "x1", Text: fmt.Sprintf("m%d ", i)},
			turn: int64(i + 1)}
		rows = append(rows, over, own)
		if i >= 2*maxUnthreaded {
			want += over.GetText()
		}
		want += own.GetText()
	}
	got := ""
	for _, r := range ofThread(rows, "x1") {
		got += r.GetText()
	}
	if got != want {
		t.Errorf("shown are %s, want %s", got, want)
	}
}
