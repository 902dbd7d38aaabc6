package agent

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// unknownOutcome replaces the missing result of a closed call.
const unknownOutcome = "cancelled, outcome unknown"

// minResult is how many bytes of the result of a call a request holds at least.
const minResult = 1000

// request builds the next request: the system prompt, the newest whole turns that fit,
// and this turn. It begins like the last one unless that no longer fits.
func (t *turn) request(hint string) (*kernelv1.CompleteRequest, error) {
	if err := t.compose(); err != nil {
		return nil, err
	}
	if err := t.loadPictures(); err != nil {
		return nil, err
	}
	return t.composed(hint), nil
}

// composed is the next request, once the system prompt and the pictures are there.
func (t *turn) composed(hint string) *kernelv1.CompleteRequest {
	rows, summary, own := t.visible()
	view := view{
		group: t.context.GetGroup(), inputLimit: t.inputLimit(), current: t.id, tools: t.tools, pictures: t.pictures,
		omitted:     omit(rows[own:], t.room()-t.fixed(summary)),
		resultLimit: max(minResult, min(contract.MaxToolResult, (t.room()-t.fixed(summary))/2)),
	}
	messages := make([]*extensionv1.Message, 1, len(rows)+len(t.fresh)+3)
	messages[0] = &extensionv1.Message{Role: "system", Content: t.system}
	if summary != nil {
		messages = append(messages, &extensionv1.Message{Role: "user", Content: render(summary, false, view.inputLimit)})
	}
	messages = view.messages(messages, rows)
	fresh := make([]row, len(t.fresh))
	for i, e := range t.fresh {
		fresh[i] = newRow(e, t.id)
	}
	messages = view.messages(messages, fresh)
	if hint != "" {
		note := labelled(contract.EntryNote, "switchboard", hint)
		messages = append(messages, &extensionv1.Message{Role: "user", Content: note})
	}
	return &kernelv1.CompleteRequest{
		Model: t.modelName(), Messages: messages, Tools: t.tools.described,
	}
}

// visible returns the recorded rows of the next request, the summary at its beginning,
// and the index of this turn's first row.
func (t *turn) visible() (rows []row, summary *busv1.Entry, own int) {
	rows = ofThread(t.history.rows, t.thread())
	own = len(rows)
	if i := slices.IndexFunc(rows, func(r row) bool { return r.turn == t.id }); i >= 0 {
		own = i
	}
	for _, e := range t.fresh {
		if e.GetKind() == contract.EntrySummary {
			summary = e
		}
	}
	if summary == nil {
		summary = summaryOf(rows)
	}
	start := min(own, firstAfter(rows, summary.GetCovers()))
	if fits := window(rows, own, t.budget(summary), maxRows); fits > start {
		start = stableStart(rows, fits, window(rows, own, t.budget(summary)/2, maxRows/2))
	}
	return rows[start:], summary, own - start
}

// stableStart chooses the first row of a request when not all fit: the start of a turn
// from low to high that remains the choice while many rows are added. It is the turn
// whose first seq passes a multiple of the largest power of two.
func stableStart(rows []row, low, high int) int {
	best, most := low, 0
	last := int64(-1) // first seq of the previous turn
	for i, r := range rows[:min(high+1, len(rows))] {
		if i > 0 && rows[i-1].turn == r.turn {
			continue
		}
		if passed := bits.Len64(uint64(last ^ r.GetSeq())); last >= 0 && i >= low && passed > most { //nolint:gosec // bits
			best, most = i, passed
		}
		last = r.GetSeq()
	}
	return best
}

// budget returns the size that the recorded rows may have in a request, in bytes.
func (t *turn) budget(summary *busv1.Entry) int {
	n := t.room() - t.fixed(summary)
	for _, e := range t.fresh {
		if e != summary {
			n -= newRow(e, t.id).bytes
		}
	}
	return n
}

// fixed returns the size of the tools, the system prompt, the summary and the pictures.
func (t *turn) fixed(summary *busv1.Entry) int {
	return len(t.system) + t.tools.bytes + len(summary.GetText()) + t.pictures.bytes()
}

// omit chooses the results to leave out of a turn that exceeds the budget by itself:
// the oldest first, never those of the last answer, and down to half of the budget at
// once, so that most requests begin like the previous one.
func omit(rows []row, budget int) map[string]bool {
	omitted := map[string]bool{}
	size, next, answer := 0, 0, 0
	for i, r := range rows {
		if size += r.bytes; r.GetKind() == contract.EntryAnswer {
			answer = i
		}
		if size <= budget {
			continue
		}
		for ; next < answer && size > budget/2; next++ {
			if o := rows[next]; o.GetKind() == contract.EntryResult && o.bytes > 4*entryOverhead {
				omitted[o.GetCallId()] = true
				size -= o.bytes - 2*entryOverhead
			}
		}
	}
	return omitted
}

// view renders rows as messages for a model.
type view struct {
	group       bool
	inputLimit  int
	resultLimit int   // of the result of a call, in bytes
	current     int64 // the current turn, whose rows may still change
	omitted     map[string]bool
	tools       *offer
	pictures    pictures // of the current turn
}

// messages appends rows in the order that model APIs require: an answer is followed by
// exactly the results of its calls. Rows of other turns are rendered once.
func (v view) messages(out []*extensionv1.Message, rows []row) []*extensionv1.Message {
	var results map[string]*busv1.Entry
	for i := range rows {
		r := &rows[i]
		if len(r.rendered) > 0 && r.turn != v.current {
			out = append(out, r.rendered...)
			continue
		}
		if results == nil && len(r.GetCalls()) > 0 {
			results = resultsOf(rows[i:])
		}
		switch {
		case r.GetKind() == contract.EntrySummary, r.GetKind() == contract.EntryContext && r.turn != v.current:
			continue // request adds the summary; context is sent only in its own turn
		case r.GetBacklog():
			if i == 0 || !rows[i-1].GetBacklog() || rows[i-1].turn != r.turn {
				out = append(out, v.backlog(rows[i:]))
			}
			continue
		}
		n := len(out)
		out = v.row(out, r.Entry, results)
		if r.turn == v.current && len(out) > n {
			v.pictures.show(out[n], r.Entry)
			out = v.pictures.showAgain(out, r.Entry, results)
		}
		if r.turn != v.current && complete(r.Entry, results) {
			r.rendered = slices.Clone(out[n:])
		}
	}
	return out
}

// backlog renders the inputs that interrupted a turn as one message.
func (v view) backlog(rows []row) *extensionv1.Message {
	m := &extensionv1.Message{Role: "user"}
	var b strings.Builder
	b.WriteString(withPreamble(rows[0].GetPreamble(), "[Backlog]"))
	for _, r := range rows {
		if !r.GetBacklog() || r.turn != rows[0].turn {
			break
		}
		b.WriteString("\n")
		b.WriteString(render(r.Entry, v.group, v.inputLimit))
	}
	m.Content = b.String()
	for _, r := range rows {
		if r.GetBacklog() && r.turn == rows[0].turn && r.turn == v.current {
			v.pictures.show(m, r.Entry)
		}
	}
	return m
}

func resultsOf(rows []row) map[string]*busv1.Entry {
	results := map[string]*busv1.Entry{}
	for _, r := range rows {
		if r.GetKind() == contract.EntryResult {
			results[r.GetCallId()] = r.Entry
		}
	}
	return results
}

func complete(e *busv1.Entry, results map[string]*busv1.Entry) bool {
	for _, c := range e.GetCalls() {
		if results[c.GetCallId()] == nil {
			return false
		}
	}
	return true
}

func (v view) row(out []*extensionv1.Message, e *busv1.Entry, results map[string]*busv1.Entry) []*extensionv1.Message {
	switch e.GetKind() {
	case contract.EntryResult: // added with its call
		return out
	case contract.EntryAnswer:
		return v.answer(out, e, results)
	default:
		text := ""
		if e.GetText() != "" || e.GetKind() != contract.EntryNote {
			text = render(e, v.group, v.inputLimit)
		}
		return append(out, &extensionv1.Message{Role: "user", Content: withPreamble(e.GetPreamble(), text)})
	}
}

func (v view) answer(
	out []*extensionv1.Message, e *busv1.Entry, results map[string]*busv1.Entry,
) []*extensionv1.Message {
	if e.GetText() == "" && len(e.GetCalls()) == 0 {
		return out
	}
	said := &extensionv1.Message{Role: "assistant", Content: e.GetText()}
	out = append(out, said)
	for _, c := range e.GetCalls() {
		name, arguments := v.tools.render(c.GetName(), c.GetArguments())
		said.Calls = append(said.Calls, &busv1.Call{
			CallId: c.GetCallId(), ProviderId: c.GetProviderId(), Name: name, Arguments: arguments,
		})
		out = append(out, &extensionv1.Message{
			Role: "tool", CallId: c.GetCallId(), Name: name, Content: v.result(results[c.GetCallId()]),
		})
	}
	return out
}

func (v view) result(e *busv1.Entry) string {
	switch {
	case e == nil:
		return unknownOutcome
	case v.omitted[e.GetCallId()]:
		return fmt.Sprintf("[left out: a result of %d bytes that you have read]", len(e.GetText()))
	case e.GetIsError():
		return "error: " + cutText(e.GetText(), v.resultLimit)
	default:
		return cutText(e.GetText(), v.resultLimit)
	}
}
