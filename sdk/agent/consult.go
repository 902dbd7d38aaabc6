package agent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

const (
	// consultTime is how long the tools of agent.context are waited for.
	consultTime = 500 * time.Millisecond
	// consultBytes is the most of what they answer that a model is sent.
	consultBytes = 1500 * bytesPerToken
	// leastContext is the room that is worth filling.
	leastContext = 200
	// silence is how long a tool that knows nothing, or is not there, is not asked
	// again, unless a tool of its extension was called.
	silence = 5 * time.Second
	// maxQuery is the most bytes of the inputs that they are asked about.
	maxQuery = 4 << 10
)

// given returns the context that came with an input as rows, sorted by the tools
// that would return it.
func given(in contract.AgentInput) (rows []*busv1.Entry) {
	texts, _ := in.Meta[contract.MetaContext].(map[string]any)
	left := consultBytes
	for _, tool := range slices.Sorted(maps.Keys(texts)) {
		text, _ := texts[tool].(string)
		if text = cutText(strings.TrimSpace(text), left); text == "" || left < leastContext {
			continue
		}
		left -= len(text)
		rows = append(rows, &busv1.Entry{Kind: contract.EntryContext, Sender: tool, Text: text})
	}
	return rows
}

// consult asks the read-only tools of agent.context what they know about the
// turn's inputs, before its first step, except for what an input brings along.
// What they say in time is recorded with that step; a turn goes on without the
// others.
func (t *turn) consult() error {
	tools := t.a.consulted(time.Now())
	if len(tools) == 0 || t.persona != nil {
		return nil
	}
	about := t.about()
	tools = slices.DeleteFunc(tools, func(tool string) bool { return about.known[tool] })
	if about.begun || len(tools) == 0 {
		return nil
	}
	arguments, err := json.Marshal(map[string]string{"query": about.query()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.ctx, consultTime)
	defer cancel()
	said := make([]string, len(tools))
	var all sync.WaitGroup
	for i, tool := range tools {
		all.Go(func() {
			r, err := t.a.kernel.Ask(ctx, tool, arguments)
			if r.GetNothing() || errors.Is(err, contract.ErrNotFound) || errors.Is(err, contract.ErrUnavailable) {
				t.a.silent.Store(tool, time.Now().Add(silence))
			}
			switch {
			case err != nil:
				t.a.log.Debug("a turn goes on without what a tool knows about it", "tool", tool, "error", err)
			case r.GetIsError():
				t.a.log.Debug("a turn goes on without what a tool knows about it", "tool", tool, "error", r.GetContent())
			default:
				said[i] = strings.TrimSpace(r.GetContent())
			}
		})
	}
	all.Wait()
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	left := consultBytes - about.bytes
	for i, text := range said {
		if text = cutText(text, left); text == "" || left < leastContext {
			continue
		}
		left -= len(text)
		t.fresh = append(t.fresh, &busv1.Entry{Kind: contract.EntryContext, Sender: tools[i], Text: text})
	}
	return nil
}

// consulted is the tools of agent.context that are worth asking now.
func (a *Agent) consulted(now time.Time) (tools []string) {
	for _, tool := range a.consults {
		if until, ok := a.silent.Load(tool); !ok || now.After(until.(time.Time)) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// called notes that a tool may have changed what its extension knows.
func (a *Agent) called(tool string) {
	extension, _, _ := strings.Cut(tool, "/")
	for _, other := range a.consults {
		if strings.HasPrefix(other, extension+"/") {
			a.silent.Delete(other)
		}
	}
}

// subject is what a turn is about.
type subject struct {
	texts []string        // of its inputs
	known map[string]bool // tools whose context it has
	bytes int             // of that
	begun bool            // its first step was made
}

func (t *turn) about() subject {
	s := subject{known: map[string]bool{}}
	hear := func(e *busv1.Entry) {
		switch e.GetKind() {
		case contract.EntryInput:
			s.texts = append(s.texts, e.GetText())
		case contract.EntryContext:
			s.known[e.GetSender()] = true
			s.bytes += len(e.GetText())
		case contract.EntryAnswer:
			s.begun = true
		}
	}
	for _, r := range t.own() {
		hear(r.Entry)
	}
	for _, e := range t.fresh {
		hear(e)
	}
	return s
}

// query is what tools are asked about it.
func (s subject) query() string {
	return strings.ToValidUTF8(cutBytes(strings.Join(s.texts, "\n"), maxQuery), "")
}
