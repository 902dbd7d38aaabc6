package agent

import (
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// action is the kind of a step.
type action int

const (
	ask    action = iota // ask the model
	call                 // run calls of the last answer
	capped               // end: the turn has used all its steps
	finish               // end: the last answer is the final text
)

// step is the next step of a turn.
type step struct {
	do    action
	calls []*busv1.Call // to run now: read-only ones concurrently, others one by one
	asked int           // the number of answers in the turn
	last  *busv1.Entry  // the newest answer
}

// toolInfo describes tools. A step depends only on it and the rows.
type toolInfo interface {
	readOnly(tool string) bool
	final(tool string) bool
}

// next is the logic of a turn: it derives the next step from the recorded rows. The
// same rows always lead to the same step, also after a crash.
func next(rows []row, maxSteps int, tools toolInfo) step {
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
		parallel := tools.readOnly(c.GetName())
		if len(s.calls) > 0 && !parallel {
			break
		}
		s.calls = append(s.calls, c)
		if !parallel {
			break
		}
	}
	switch {
	case len(s.calls) > 0:
		s.do = call
	case finalCallDone(rows, s.last, tools):
		s.do = finish
	case s.asked >= maxSteps:
		s.do = capped
	}
	return s
}

// finalCallDone reports whether a call of a final tool in the last answer succeeded.
func finalCallDone(rows []row, last *busv1.Entry, tools toolInfo) bool {
	for _, c := range last.GetCalls() {
		if tools.final(c.GetName()) && slices.ContainsFunc(rows, func(r row) bool {
			return r.GetKind() == contract.EntryResult && r.GetCallId() == c.GetCallId() && !r.GetIsError()
		}) {
			return true
		}
	}
	return false
}

// unfinished returns the calls of the last answer that have no result.
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

// open reports whether a call has not ended; it may be running.
func open(c *busv1.Call) bool { return c.GetState() != "done" && c.GetState() != "closed" }
