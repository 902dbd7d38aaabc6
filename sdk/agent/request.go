package agent

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

const (
	// unknownOutcome is the result of a call that was closed without one.
	unknownOutcome = "cancelled, outcome unknown"
	// promptAge is how long a turn uses the same system prompt.
	promptAge = time.Minute
)

// request is what the model is asked next: the system prompt, the newest whole
// turns that fit, and this turn.
func (t *turn) request(hint string) (*kernelv1.CompleteRequest, error) {
	if err := t.compose(); err != nil {
		return nil, err
	}
	rows := t.history.rows
	first := len(rows)
	for i, r := range rows {
		if r.turn == t.id {
			first = i
			break
		}
	}
	if len(t.fresh) > 0 {
		rows = rows[:len(rows):len(rows)]
		for _, e := range t.fresh {
			rows = append(rows, newRow(e, t.id))
		}
	}
	budget := t.a.limits.bytes - len(t.system) - t.tools.bytes
	omitted := omit(rows[first:], budget)
	view := view{group: t.context.GetGroup(), inputLimit: max(4096, budget/2), omitted: omitted}
	messages := append(
		[]*extensionv1.Message{{Role: "system", Content: t.system}},
		view.messages(rows[window(rows, first, budget):])...)
	if hint != "" {
		messages = append(messages, &extensionv1.Message{Role: "user", Content: labelled(contract.EntryNote, "switchboard", hint)})
	}
	return &kernelv1.CompleteRequest{Model: t.a.model, Messages: messages, Tools: t.tools.offered}, nil
}

// compose renders the system prompt unless the last one is still good.
func (t *turn) compose() error {
	now := time.Now()
	if t.system != "" && now.Sub(t.systemAt) < promptAge {
		return nil
	}
	scene := Scene{
		Name: t.a.name, Instructions: t.a.persona, Group: t.context.GetGroup(), Channels: t.channels,
		Now: now.In(t.zone), Zone: t.zone.String(), tools: t.tools,
	}
	if id := t.context.GetChannel(); id != "" {
		scene.Channel = Channel{ID: id, Name: t.context.GetChannelName()}
		for _, c := range t.channels {
			if c.ID == id {
				scene.Channel = c
			}
		}
		if scene.Channel.Name == "" {
			scene.Channel.Name = id
		}
	}
	system, err := t.a.prompts.System(scene)
	if err != nil {
		return fmt.Errorf("write the system prompt of %s: %w", t.a.name, err)
	}
	t.system, t.systemAt = strings.TrimSpace(system), now
	return nil
}

// omit chooses the results of a turn that are left out because it has become
// too large on its own: the oldest first, never those of the last answer.
func omit(rows []row, budget int) map[string]bool {
	size, last := 0, 0
	for i, r := range rows {
		size += r.bytes
		if r.GetKind() == contract.EntryAnswer {
			last = i
		}
	}
	var omitted map[string]bool
	for _, r := range rows[:last] {
		if size <= budget {
			break
		}
		if r.GetKind() == contract.EntryResult && r.bytes > 4*entryOverhead {
			if omitted == nil {
				omitted = map[string]bool{}
			}
			omitted[r.GetCallId()] = true
			size -= r.bytes - 2*entryOverhead
		}
	}
	return omitted
}

// view is how rows are shown to a model.
type view struct {
	group      bool
	inputLimit int
	omitted    map[string]bool
}

// messages is rows in the form that model APIs accept wherever the rows begin:
// the results of an answer's calls follow it, all of them and no others.
func (v view) messages(rows []row) []*extensionv1.Message {
	results := map[string]*busv1.Entry{}
	for _, r := range rows {
		if r.GetKind() == contract.EntryResult {
			results[r.GetCallId()] = r.Entry
		}
	}
	out := make([]*extensionv1.Message, 0, len(rows))
	for _, r := range rows {
		switch r.GetKind() {
		case contract.EntryResult: // stands behind its call
		case contract.EntryAnswer:
			out = v.answer(out, r.Entry, results)
		default:
			out = append(out, &extensionv1.Message{Role: "user", Content: shown(r.Entry, v.group, v.inputLimit)})
		}
	}
	return out
}

func (v view) answer(out []*extensionv1.Message, e *busv1.Entry, results map[string]*busv1.Entry) []*extensionv1.Message {
	if e.GetText() == "" && len(e.GetCalls()) == 0 {
		return out
	}
	said := &extensionv1.Message{Role: "assistant", Content: e.GetText()}
	out = append(out, said)
	for _, c := range e.GetCalls() {
		name := WireName(c.GetName())
		said.Calls = append(said.Calls, &busv1.Call{
			CallId: c.GetCallId(), ProviderId: c.GetProviderId(), Name: name, Arguments: c.GetArguments(),
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
		return fmt.Sprintf("[left out: a result of %d bytes, read before]", len(e.GetText()))
	case e.GetIsError():
		return "error: " + e.GetText()
	default:
		return e.GetText()
	}
}
