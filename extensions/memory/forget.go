package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// forgotten is the result of forget and forget_all.
type forgotten struct {
	Forgotten []forgottenItem `json:"forgotten"`
	Unknown   []string        `json:"unknown,omitempty"`
	Text      string          `json:"text"`
}

type forgottenItem struct {
	ID        string    `json:"id"`
	Text      string    `json:"text,omitempty"`
	Kind      item.Kind `json:"kind,omitempty"`
	ChannelID string    `json:"channel_id,omitempty"`
	Due       item.Due  `json:"due,omitzero"`
}

func (m *memory) forget(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		IDs []string `json:"ids"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	out := forgotten{Forgotten: []forgottenItem{}}
	var effects sdk.Effects
	err := m.use(ctx, c, "", func(all *rows, allowed reach) error {
		var drop []row
		seen := map[string]bool{}
		for _, id := range a.IDs {
			id = cleanID(id)
			if seen[id] {
				continue
			}
			seen[id] = true
			if b, ok := all.unreadable[id]; ok && c.Agent == "" && allowed.damaged() {
				drop = append(drop, brokenRow(id, b))
				out.Forgotten = append(out.Forgotten, forgottenItem{ID: id})
			} else if x, ok := all.byID[id]; ok && allowed.use(x.Item) {
				drop = append(drop, x)
				out.Forgotten = append(out.Forgotten, forgottenItem{x.ID, x.Text, x.Kind, x.ChannelID, x.Due})
			} else {
				out.Unknown = append(out.Unknown, id)
			}
		}
		effects = m.store.write(nil, drop)
		return nil
	})
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case len(out.Forgotten) == 0:
		return sdk.ToolResult{}, words.Errorf("nothing was forgotten: there is no memory %s",
			strings.Join(out.Unknown, ", "))
	}
	out.Text = out.text("")
	return sdk.JSON(out, effects...)
}

func (f forgotten) text(language string) string {
	lines := make([]string, 0, len(f.Forgotten)+1)
	for _, g := range f.Forgotten {
		lines = append(lines, strings.TrimSuffix(words.Say(language, "Forgotten: %s %s", g.ID, quoted(g.Text)), " “”"))
	}
	if len(f.Unknown) > 0 {
		lines = append(lines, words.Say(language, "Not found: %s", strings.Join(f.Unknown, ", ")))
	}
	return strings.Join(lines, "\n")
}

func brokenRow(id string, b broken) row {
	r := row{version: b.version}
	r.ID = id
	return r
}

func (m *memory) forgetAll(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Scope string `json:"scope"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	var drop []row
	var effects sdk.Effects
	err := m.use(ctx, c, a.Scope, func(all *rows, allowed reach) error {
		drop = all.within(allowed)
		if c.Agent == "" && a.Scope == "" && allowed.damaged() {
			for id, b := range all.unreadable {
				drop = append(drop, brokenRow(id, b))
			}
		}
		effects = m.store.write(nil, drop)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]any{"forgotten": len(drop), "text": fmt.Sprintf("forgotten: %d", len(drop))}, effects...)
}
