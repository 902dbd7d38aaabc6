package agent

import (
	"github.com/switchboard-run/switchboard/contract"
)

// A session may hold several conversations at once, called threads. An input names its
// thread, and the rows of a turn belong to the thread of its input. In a thread a model
// sees only that thread and the rows without a thread. Such a session has no summary,
// which would mix threads. An extension that ends a thread can leave a record of the
// result.

// thread returns the thread of the turn; empty: none.
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

// maxUnthreaded is the number of rows without a thread in a request: a session may
// have a record of each of many ended threads.
const maxUnthreaded = 20

// ofThread removes the rows of other threads, and older rows without a thread. If
// thread is empty, it keeps all.
func ofThread(rows []row, thread string) []row {
	if thread == "" {
		return rows
	}
	kept := make([]row, 0, len(rows))
	var unthreaded []int // indexes in kept of rows without a thread
	of, turn := "", int64(0)
	for i, r := range rows {
		if i == 0 || r.turn != turn {
			of, turn = "", r.turn
		}
		if r.GetKind() == contract.EntryInput {
			of = r.GetThread()
		}
		if of == "" {
			unthreaded = append(unthreaded, len(kept))
		}
		if of == "" || of == thread {
			kept = append(kept, r)
		}
	}
	if len(unthreaded) <= maxUnthreaded {
		return kept
	}
	old := unthreaded[:len(unthreaded)-maxUnthreaded]
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
