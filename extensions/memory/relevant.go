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
	// relevantBytes is the most bytes that relevant returns, about 1,500 tokens.
	relevantBytes = 6000
	// preferenceBytes and openBytes are the shares of preferences and open items;
	// the rest is for memories that match the query.
	preferenceBytes, openBytes = 2400, 1600

	relevantMost  = 12  // matches of the query
	relevantScore = 0.3 // lowest score of a match, as a share of the best
	relevantText  = 500 // letters of a text
)

// relevant returns the memories that an agent needs before it answers, as
// Markdown; empty if there are none.
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
	err := m.use(ctx, c, a.Scope, func(all *rows, allowed reach) error {
		written := map[string]bool{}
		nothing = !c.Principal.Confined && !all.any(allowed.granted) // for all people and conversations of an agent
		now := m.now().In(m.zoneOf(c))
		preferences := all.filter(func(r row) bool { return r.Kind == item.Preference && allowed.use(r.Item) })
		// Preferred channels come first, so that they are always included.
		slices.SortStableFunc(preferences, func(a, b row) int {
			return cmp.Compare(min(1, len(b.ChannelID)), min(1, len(a.ChannelID)))
		})
		due := all.filter(func(r row) bool { return r.IsDue(now) && allowed.use(r.Item) })
		slices.SortFunc(due, dueFirst)
		var matches []row
		best := 0.0
		for _, h := range all.find(a.Query, func(r row) bool { return allowed.use(r.Item) }) {
			best = max(best, h.score)
			if h.score >= best*relevantScore && len(matches) < relevantMost {
				matches = append(matches, h.row)
			}
		}
		m.section(&b, "Preferences", preferences, preferenceBytes, written, c)
		m.section(&b, "Open items that are due", due, min(b.Len()+openBytes, preferenceBytes+openBytes), written, c)
		m.section(&b, "Remembered", matches, relevantBytes, written, c)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.ToolResult{Content: strings.TrimSpace(b.String()), Nothing: nothing}, nil
}

// section writes the memories that are not written yet, up to a total length.
func (m *memory) section(
	b *strings.Builder, title string, all []row, maxBytes int, written map[string]bool, c sdk.ToolCall,
) {
	const more = len("- (and 100000 more)\n")
	begun, left := false, 0
	for _, r := range all {
		if written[r.ID] {
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
		details := v.details("")
		if len(v.Files) > 0 {
			details += "; recall it to use the file"
		}
		line := fmt.Sprintf("- %s (%s%s) [%s]\n", shorten(v.Text, relevantText), kind, details, v.ID)
		if !begun {
			line = "\n" + title + ":\n" + line
		}
		if b.Len()+len(line)+more > maxBytes {
			left++
			continue
		}
		begun = true
		written[r.ID] = true
		b.WriteString(line)
	}
	if begun && left > 0 {
		fmt.Fprintf(b, "- (and %d more)\n", left)
	}
}
