package agent

import (
	"github.com/switchboard-run/switchboard/contract"
)

// A session may hold several conversations at once, each a thread: its inputs
// name it, and what a turn adds belongs to the thread of its input. A model that
// answers in one of them sees that thread and what belongs to none, and nothing
// of the others. Such a session has no summary, which would mix them. An extension
// that ends a thread can leave a record of the result.

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

// maxAside bounds what a model is shown in a thread of rows that belong to none:
// a session of many threads has a record of each that is over.
const maxAside = 20

// ofThread leaves out the rows of other threads, and the older ones of those of
// no thread. Without a thread all are kept.
func ofThread(rows []row, thread string) []row {
	if thread == "" {
		return rows
	}
	kept := make([]row, 0, len(rows))
	var aside []int // where rows of no thread stand in kept
	of, turn := "", int64(0)
	for i, r := range rows {
		if i == 0 || r.turn != turn {
			of, turn = "", r.turn
		}
		if r.GetKind() == contract.EntryInput {
			of = r.GetThread()
		}
		if of == "" {
			aside = append(aside, len(kept))
		}
		if of == "" || of == thread {
			kept = append(kept, r)
		}
	}
	if len(aside) <= maxAside {
		return kept
	}
	old := aside[:len(aside)-maxAside]
	newer := kept[:0]
	for i, r := range kept {
		if len(old) > 0 && old[0] == i {
			old = old[1:]
			continue
		}
		newer = append(newer, r)
	}
	return newer
}
