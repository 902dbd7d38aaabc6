package agent

import (
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// action is what a turn does next.
type action int

const (
	ask    action = iota // ask the model
	call                 // run calls of the last answer
	capped               // end: all steps are used
	finish               // end: the last answer is the final text
)

// step is the next action of a turn and what it needs.
type step struct {
	do    action
	calls []*busv1.Call // to run now: read-only ones together, others one by one
	asked int           // answers that the turn has
	last  *busv1.Entry  // the newest of them
}

// manners is what a step depends on besides the rows: how the called tools are.
type manners interface {
	readOnly(tool string) bool
	final(tool string) bool
}

// next is the whole logic of a turn: what its recorded rows ask for. The same
// rows lead to the same step, in whatever process and after whatever crash.
func next(rows []row, maxSteps int, tools manners) step {
	var s step
	for _, r := range rows {
		if r.GetKind() == contract.EntryAnswer {
			s.last = r.Entry
			s.asked++
		}
	}
	if s.last == nil {
		return s
	}
	if len(s.last.GetCalls()) == 0 {
		s.do = finish
		return s
	}
	for _, c := range unfinished(rows) {
		together := tools.readOnly(c.GetName())
		if len(s.calls) > 0 && !together {
			break
		}
		s.calls = append(s.calls, c)
		if !together {
			break
		}
	}
	switch {
	case len(s.calls) > 0:
		s.do = call
	case saidAll(rows, s.last, tools):
		s.do = finish
	case s.asked >= maxSteps:
		s.do = capped
	}
	return s
}

// saidAll reports whether a call of the last answer was the last word.
func saidAll(rows []row, last *busv1.Entry, tools manners) bool {
	for _, c := range last.GetCalls() {
		if tools.final(c.GetName()) && slices.ContainsFunc(rows, func(r row) bool {
			return r.GetKind() == contract.EntryResult && r.GetCallId() == c.GetCallId() && !r.GetIsError()
		}) {
			return true
		}
	}
	return false
}

// unfinished is the calls of the last answer that have no result.
func unfinished(rows []row) (calls []*busv1.Call) {
	finished := map[string]bool{}
	var last *busv1.Entry
	for _, r := range rows {
		switch r.GetKind() {
		case contract.EntryAnswer:
			last = r.Entry
		case contract.EntryResult:
			finished[r.GetCallId()] = true
		}
	}
	for _, c := range last.GetCalls() {
		if !finished[c.GetCallId()] && open(c) {
			calls = append(calls, c)
		}
	}
	return calls
}

// open reports whether a call still has to end. One that runs is joined.
func open(c *busv1.Call) bool { return c.GetState() != "done" && c.GetState() != "closed" }
