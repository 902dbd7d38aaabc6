package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// headings are the headings of the kinds in lists for people.
var headings = map[item.Kind]string{
	item.Preference: words.Sprintf("Preferences"), item.Open: words.Sprintf("Open items"),
	item.Fact: words.Sprintf("Facts"),
}

func (m *memory) list(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Kind   string `json:"kind"`
		About  string `json:"about"`
		Scope  string `json:"scope"`
		Limit  int    `json:"limit"`
		Offset int    `json:"offset"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	if a.Limit <= 0 {
		a.Limit = defaultList
	}
	out := listing{Memories: []view{}}
	var listed []row
	err := m.use(ctx, c, a.Scope, func(all *rows, allowed reach) error {
		about := map[string]bool{}
		for _, h := range all.find(a.About, func(row) bool { return true }) {
			about[h.ID] = true
		}
		found := inOrder(all.filter(func(r row) bool {
			return allowed.use(r.Item) && (a.Kind == "" || string(r.Kind) == a.Kind) && (a.About == "" || about[r.ID])
		}))
		found = found[min(a.Offset, len(found)):]
		out.More = max(0, len(found)-a.Limit)
		found = found[:len(found)-out.More]
		out.Memories = m.views(found, c)
		listed = found
		for _, id := range all.brokenIDs() {
			if !allowed.damaged() {
				break
			}
			out.Unreadable = append(out.Unreadable, unreadable{id, all.unreadable[id].err.Error()})
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out.Filtered = a.Kind != "" || a.About != "" || a.Scope != "" || a.Offset > 0
	out.Text = out.text("")
	return withFiles(c, out, listed)
}

// inOrder sorts preferences first, then open items by due date, then facts.
// Otherwise it keeps the order of all, which is the newest first.
func inOrder(all []row) []row {
	slices.SortStableFunc(all, func(a, b row) int {
		if c := cmp.Compare(slices.Index(item.Kinds, a.Kind), slices.Index(item.Kinds, b.Kind)); c != 0 {
			return c
		}
		return a.Due.Compare(b.Due)
	})
	return all
}

func (l listing) text(language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	switch {
	case len(l.Memories)+len(l.Unreadable) > 0:
	case l.Filtered:
		return say("No memories found.")
	default:
		return say("I don't remember anything yet. To save something: /remember TEXT")
	}
	var b strings.Builder
	kind := item.Kind("")
	for _, v := range l.Memories {
		if v.Kind != kind {
			kind = v.Kind
			fmt.Fprintf(&b, "\n%s:\n", say(headings[kind]))
		}
		fmt.Fprintf(&b, "- %s (%s) [%s]\n", oneLine(v.Text), v.details(language), v.ID)
	}
	if l.More > 0 {
		b.WriteString(say("and %d more", l.More) + "\n")
	}
	for _, u := range l.Unreadable {
		b.WriteString(say("%s is damaged: %s", u.ID, words.Translate(language, u.Error)) + "\n")
	}
	return strings.TrimSpace(b.String())
}
