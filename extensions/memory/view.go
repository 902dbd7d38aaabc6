package memory

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// view is a memory in the tools' results.
type view struct {
	ID        string    `json:"id"`
	Kind      item.Kind `json:"kind"`
	Text      string    `json:"text"`
	Scope     string    `json:"scope,omitempty"` // unless personal
	ChannelID string    `json:"channel_id,omitempty"`
	Due       item.Due  `json:"due,omitzero"`
	DueLocal  string    `json:"due_local,omitempty"`
	IsDue     bool      `json:"is_due,omitempty"`  // the due time or day has come
	Overdue   bool      `json:"overdue,omitempty"` // the due time or day is over
	By        string    `json:"by,omitempty"`
	Files     []string  `json:"attachments,omitempty"`   // references
	InGroup   bool      `json:"said_in_group,omitempty"` // in another conversation, which is not the household's
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated,omitzero"` // unless equal to created
}

func (m *memory) view(i item.Item, c sdk.ToolCall) view {
	zone := m.zoneOf(c)
	now := m.now().In(zone)
	v := view{
		ID: i.ID, Kind: i.Kind, Text: i.Text, ChannelID: i.ChannelID, Due: i.Due, DueLocal: i.Due.Local(zone),
		IsDue: i.IsDue(now), Overdue: i.Overdue(now),
		Files: references(i),
		By:    i.By, InGroup: i.Group() != "" && i.Group() != c.Principal.Group, Created: i.Created.In(zone),
	}
	if !i.Updated.Equal(i.Created) {
		v.Updated = i.Updated.In(zone)
	}
	if i.Scope != item.Personal {
		v.Scope = i.Scope
	}
	return v
}

func (m *memory) views(all []row, c sdk.ToolCall) []view {
	out := make([]view, len(all))
	for k, r := range all {
		out[k] = m.view(r.Item, c)
	}
	return out
}

// date returns the day of the last update.
func (v view) date(language string) string {
	at := v.Updated
	if at.IsZero() {
		at = v.Created
	}
	return words.Day(language, at)
}

// due returns the due time or day.
func (v view) due(language string) string {
	if at, err := time.Parse("Mon 2 Jan 2006 15:04", v.DueLocal); err == nil {
		return words.Time(language, at)
	}
	if day, err := time.Parse("Mon 2 Jan 2006", v.DueLocal); err == nil {
		return words.Say(language, day.Format("Mon")) + " " + words.Day(language, day)
	}
	return v.DueLocal
}

// details returns the fields other than the text, for people and, in English, for
// prompts.
func (v view) details(language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	var parts []string
	switch {
	case v.Overdue:
		parts = append(parts, say("overdue since %s", v.due(language)))
	case v.DueLocal != "":
		parts = append(parts, say("due %s", v.due(language)))
	}
	if v.ChannelID != "" {
		parts = append(parts, say("channel %s", v.ChannelID))
	}
	if len(v.Files) > 0 {
		parts = append(parts, say("with %s", strings.Join(v.Files, " ")))
	}
	if v.By != "" {
		parts = append(parts, say("told by %s", v.By))
	}
	if v.InGroup {
		parts = append(parts, say("said in a group"))
	}
	parts = append(parts, v.date(language))
	if v.Scope != "" {
		parts = append(parts, say("scope %s", v.Scope))
	}
	return strings.Join(parts, "; ")
}

// line formats a memory for people.
func (v view) line() string {
	kind := ""
	if v.Kind != item.Fact {
		kind = string(v.Kind) + "; "
	}
	return fmt.Sprintf("%s  %s (%s%s)", v.ID, oneLine(v.Text), kind, v.details(""))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shorten cuts a text to a number of letters.
func shorten(s string, letters int) string {
	s = oneLine(s)
	if r := []rune(s); len(r) > letters {
		return string(r[:letters-1]) + "…"
	}
	return s
}

func quoted(s string) string { return "“" + shorten(s, 80) + "”" }
