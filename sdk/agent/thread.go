package agent

import (
	"github.com/switchboard-run/switchboard/contract"
)

// A session may hold several conversations at once, each a thread: its inputs
// name it, and what a turn adds belongs to the thread of its input. A model that
// answers in one of them sees that thread and what belongs to none, and nothing
// of the others. Such a session has no summary, which would mix them: whoever
// ends a thread can leave a record of what came of it.

// thread is the thread of the turn; empty: it belongs to none.
func (t *turn) thread() string {
	for _, e := range t.fresh {
		if e.GetKind() == contract.EntryInput {
			return e.GetThread()
		}
	}
	for _, r := range t.own() {
		if r.GetKind() == contract.EntryInput {
			return r.GetThread()
		}
	}
	return ""
}

// ofThread leaves out the rows of other threads. Without a thread all are kept.
func ofThread(rows []row, thread string) []row {
	if thread == "" {
		return rows
	}
	kept := make([]row, 0, len(rows))
	of, turn := "", int64(0)
	for i, r := range rows {
		if i == 0 || r.turn != turn {
			of, turn = "", r.turn
		}
		if r.GetKind() == contract.EntryInput {
			of = r.GetThread()
		}
		if of == "" || of == thread {
			kept = append(kept, r)
		}
	}
	return kept
}
