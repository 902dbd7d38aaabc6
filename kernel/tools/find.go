package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// maxFound is how many tools a search returns with their schemas.
const maxFound = 10

var findTool = coreTool{
	description: &extensionv1.Tool{
		Name: "find_tools", ReadOnly: true,
		Description: "Find more tools by words, and call them with use_tool.",
		Schema: []byte(`{"type":"object","properties":{"query":{"type":"string"}},` +
			`"required":["query"],"additionalProperties":false}`),
	},
	read: findTools,
}

// useTool is replaced by the call that it names when it is stored; a call that runs
// here named none.
var useTool = coreTool{
	description: &extensionv1.Tool{
		Name: "use_tool", ReadOnly: true,
		Description: "Call a tool that find_tools returned.",
		Schema: []byte(`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},` +
			`"required":["name"],"additionalProperties":false}`),
	},
	read: func(context.Context, *Runner, *bus.Lease, []byte) (any, error) {
		return nil, errors.New("use_tool calls another tool: give its name, as find_tools returns it, and its arguments")
	},
}

type foundTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	score       int
}

// findTools searches the tools that requests of the agent do not describe: those
// that fit best come first, maxFound of them with their schemas. If none fits, it
// lists all of them without schemas.
func findTools(_ context.Context, r *Runner, l *bus.Lease, raw []byte) (any, error) {
	var args struct{ Query string }
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	if l == nil {
		return nil, errors.New("find_tools searches the tools of an agent: only its turns can call it")
	}
	words := strings.FieldsFunc(strings.ToLower(args.Query), notWord)
	dir := r.Directory.Current()
	all := []foundTool{}
	for i := range dir.Tools {
		if t := &dir.Tools[i]; dir.MayUse(l.Agent, t) && !dir.Offered(l.Agent, t) {
			all = append(all, foundTool{t.Name, t.Tool.GetDescription(), t.Tool.GetSchema(), score(t, words)})
		}
	}
	slices.SortStableFunc(all, func(a, b foundTool) int { return cmp.Compare(b.score, a.score) })
	fit := slices.IndexFunc(all, func(f foundTool) bool { return f.score == 0 })
	if fit > 0 {
		all = all[:fit]
	}
	for i := range all {
		if fit == 0 || i >= maxFound {
			all[i].Schema = nil
		}
	}
	return map[string]any{"tools": all}, nil
}

// score rates how well a tool fits words: those in its name count most.
func score(t *directory.Tool, words []string) (score int) {
	names, about := strings.FieldsFunc(strings.ToLower(t.Name), notWord), strings.ToLower(t.Tool.GetDescription())
	for _, word := range words {
		switch {
		case slices.ContainsFunc(names, func(n string) bool { return alike(n, word) }):
			score += 4
		case len(word) > 2 && strings.Contains(about, strings.TrimSuffix(word, "s")):
			score++
		}
	}
	return score
}

// alike reports whether two words are equal, or one begins with the other.
func alike(a, b string) bool {
	return a == b || min(len(a), len(b)) > 2 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func notWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
