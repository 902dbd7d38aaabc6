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
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// consultTimeout is how long a turn waits for the tools of agent.context.
	consultTimeout = 500 * time.Millisecond
	// maxContext bounds their results in one turn, in bytes; a small window allows less.
	maxContext = 1500 * bytesPerToken
	// minContext is the smallest remainder of maxContext that is filled.
	minContext = 200
	// skipTime is how long a tool that knows nothing, or is not running, is not
	// consulted, unless a tool of its extension is called.
	skipTime = 5 * time.Second
	// maxQuery bounds the query of the tools, in bytes.
	maxQuery = 4 << 10
)

// metaContext returns the context in an input's meta as rows, sorted by tool.
func metaContext(in contract.AgentInput) (rows []*busv1.Entry) {
	texts, _ := in.Meta[contract.MetaContext].(map[string]any)
	left := maxContext
	for _, tool := range slices.Sorted(maps.Keys(texts)) {
		text, _ := texts[tool].(string)
		if text = cutText(strings.TrimSpace(text), left); text == "" || left < minContext {
			continue
		}
		left -= len(text)
		rows = append(rows, &busv1.Entry{Kind: contract.EntryContext, Sender: tool, Text: text})
	}
	return rows
}

// consult calls the read-only tools of agent.context with the turn's inputs before
// its first step, except those whose context an input already has. Results that
// arrive in time are recorded with that step; the turn does without the others.
func (t *turn) consult() error {
	tools := t.a.toConsult(time.Now())
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
	ctx, cancel := context.WithTimeout(t.ctx, consultTimeout)
	defer cancel()
	defer context.AfterFunc(t.a.kernel.Draining(), cancel)() // the tools may be draining, too
	texts := make([]string, len(tools))
	var all sync.WaitGroup
	for i, tool := range tools {
		all.Go(func() {
			r, err := t.a.kernel.Ask(ctx, tool, arguments)
			if r.GetNothing() || errors.Is(err, contract.ErrNotFound) || errors.Is(err, contract.ErrUnavailable) {
				t.a.skipUntil.Store(tool, time.Now().Add(skipTime))
			}
			switch {
			case err != nil:
				t.a.log.Debug("no context from a tool", "tool", tool, "error", err)
			case r.GetIsError():
				t.a.log.Debug("no context from a tool", "tool", tool, "error", r.GetContent())
			default:
				texts[i] = strings.TrimSpace(r.GetContent())
			}
		})
	}
	all.Wait()
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case t.a.kernel.Draining().Err() != nil:
		return sdk.Retry(0, errDraining)
	}
	left := min(maxContext, t.room()/8) - about.bytes
	for i, text := range texts {
		if text = cutText(text, left); text == "" || left < minContext {
			continue
		}
		left -= len(text)
		t.fresh = append(t.fresh, &busv1.Entry{Kind: contract.EntryContext, Sender: tools[i], Text: text})
	}
	return nil
}

// toConsult returns the tools of agent.context that are not skipped now.
func (a *Agent) toConsult(now time.Time) (tools []string) {
	for _, tool := range a.consults {
		if until, ok := a.skipUntil.Load(tool); !ok || now.After(until.(time.Time)) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// called ends the skipping of an extension's tools: the called tool may have changed
// their results.
func (a *Agent) called(tool string) {
	extension, _, _ := strings.Cut(tool, "/")
	for _, other := range a.consults {
		if strings.HasPrefix(other, extension+"/") {
			a.skipUntil.Delete(other)
		}
	}
}

// subject describes a turn to consult tools about.
type subject struct {
	texts []string        // of its inputs
	known map[string]bool // tools whose context it has
	bytes int             // of that context
	begun bool            // it has made its first step
}

func (t *turn) about() subject {
	s := subject{known: map[string]bool{}}
	add := func(e *busv1.Entry) {
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
		add(r.Entry)
	}
	for _, e := range t.fresh {
		add(e)
	}
	return s
}

// query returns the query for tools.
func (s subject) query() string {
	return strings.ToValidUTF8(cutBytes(strings.Join(s.texts, "\n"), maxQuery), "")
}
