package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// headings stand above the kinds where people read them.
var headings = map[item.Kind]string{item.Preference: "Preferences", item.Open: "Open items", item.Fact: "Facts"}

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
	err := m.use(ctx, c, a.Scope, func(all *rows, may func(string) bool) error {
		about := map[string]bool{}
		for _, h := range all.find(a.About, func(row) bool { return true }) {
			about[h.ID] = true
		}
		wanted := inOrder(all.pick(func(r row) bool {
			return may(r.Scope) && (a.Kind == "" || string(r.Kind) == a.Kind) && (a.About == "" || about[r.ID])
		}))
		wanted = wanted[min(a.Offset, len(wanted)):]
		out.More = max(0, len(wanted)-a.Limit)
		out.Memories = m.views(wanted[:len(wanted)-out.More], c)
		for _, id := range all.brokenIDs() {
			out.Unreadable = append(out.Unreadable, unreadable{id, all.unreadable[id].err.Error()})
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out.Text = out.forPeople()
	if len(out.Memories)+len(out.Unreadable) == 0 && (a.Kind != "" || a.About != "" || a.Scope != "" || a.Offset > 0) {
		out.Text = "Nothing of that is remembered."
	}
	return sdk.JSON(out)
}

// inOrder puts preferences first, then open items, those due in front, then
// facts; all is the newest first.
func inOrder(all []row) []row {
	slices.SortStableFunc(all, func(a, b row) int {
		if c := cmp.Compare(slices.Index(item.Kinds, a.Kind), slices.Index(item.Kinds, b.Kind)); c != 0 {
			return c
		}
		return a.Due.Compare(b.Due)
	})
	return all
}

func (l listing) forPeople() string {
	if len(l.Memories)+len(l.Unreadable) == 0 {
		return "Nothing is remembered."
	}
	var b strings.Builder
	kind := item.Kind("")
	for _, v := range l.Memories {
		if v.Kind != kind {
			kind = v.Kind
			fmt.Fprintf(&b, "\n%s:\n", headings[kind])
		}
		fmt.Fprintf(&b, "- %s (%s) [%s]\n", oneLine(v.Text), v.about(), v.ID)
	}
	if l.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", l.More)
	}
	for _, u := range l.Unreadable {
		fmt.Fprintf(&b, "%s cannot be read: %s\n", u.ID, u.Error)
	}
	return strings.TrimSpace(b.String())
}
