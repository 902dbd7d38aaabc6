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

const (
	// relevantBytes bounds what relevant says: about 1,500 tokens.
	relevantBytes = 6000
	// preferenceBytes and openBytes are what preferences and open items may
	// take of it; the rest is for what fits the query.
	preferenceBytes, openBytes = 2400, 1600

	relevantMost  = 12  // that fit the query
	relevantScore = 0.3 // of the best one's, to be said
	relevantText  = 500 // letters of a text
)

// relevant says what an agent should know before it answers, as Markdown; empty
// if there is nothing.
func (m *memory) relevant(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Query string `json:"query"`
		Scope string `json:"scope"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	var b strings.Builder
	nothing := false
	err := m.use(ctx, c, a.Scope, func(all *rows, may func(string) bool) error {
		said := map[string]bool{}
		nothing = !all.any(may)
		now := m.now().In(m.zoneOf(c))
		preferences := all.pick(func(r row) bool { return r.Kind == item.Preference && may(r.Scope) })
		// A preferred channel decides where messages go: it is never left out.
		slices.SortStableFunc(preferences, func(a, b row) int { return cmp.Compare(min(1, len(b.ChannelID)), min(1, len(a.ChannelID))) })
		due := all.pick(func(r row) bool { return r.IsDue(now) && may(r.Scope) })
		slices.SortFunc(due, dueFirst)
		var fitting []row
		best := 0.0
		for _, h := range all.find(a.Query, func(r row) bool { return may(r.Scope) }) {
			best = max(best, h.score)
			if h.score >= best*relevantScore && len(fitting) < relevantMost {
				fitting = append(fitting, h.row)
			}
		}
		m.section(&b, "Preferences", preferences, preferenceBytes, said, c)
		m.section(&b, "Open items that are due", due, min(b.Len()+openBytes, preferenceBytes+openBytes), said, c)
		m.section(&b, "Remembered", fitting, relevantBytes, said, c)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.ToolResult{Content: strings.TrimSpace(b.String()), Nothing: nothing}, nil
}

// section writes memories that were not said yet, as long as there is room.
func (m *memory) section(b *strings.Builder, title string, all []row, room int, said map[string]bool, c sdk.ToolCall) {
	const more = len("- (and 100000 more)\n")
	begun, left := false, 0
	for _, r := range all {
		if said[r.ID] {
			continue
		}
		if left > 0 {
			left++
			continue
		}
		v := m.view(r.Item, c)
		kind := ""
		if v.Kind == item.Open && title == "Remembered" {
			kind = "open item; "
		}
		line := fmt.Sprintf("- %s (%s%s) [%s]\n", shorten(v.Text, relevantText), kind, v.about(), v.ID)
		if !begun {
			line = "\n" + title + ":\n" + line
		}
		if b.Len()+len(line)+more > room {
			left++
			continue
		}
		begun = true
		said[r.ID] = true
		b.WriteString(line)
	}
	if begun && left > 0 {
		fmt.Fprintf(b, "- (and %d more)\n", left)
	}
}
