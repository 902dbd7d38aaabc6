package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// The names of memory's tools, without the extension.
const (
	rememberTool   = "remember"
	recallTool     = "recall"
	forgetTool     = "forget"
	listMemoryTool = "list_memories"
)

// memory is one entry of recall and list_memories, and the result of remember.
type memory struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Text      string    `json:"text"`
	ChannelID string    `json:"channel_id"`
	Due       string    `json:"due"`
	Overdue   bool      `json:"overdue"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Status    string    `json:"status"`
	Similar   []memory  `json:"similar"`
	Notes     []string  `json:"notes"`
}

type memories struct {
	Memories []memory `json:"memories"`
	More     int      `json:"more"`
}

// remember stores a memory. A preference may name a channel.
func (d dialog) remember(w phrases, i grammar.Remember) reply {
	arguments := map[string]any{"text": i.Text}
	if i.Preference {
		if _, listed := d.last(listChannels); !listed {
			if c, ok := d.prepare(listChannels, struct{}{}); ok {
				return reply{calls: []call{c}}
			}
		}
		arguments["kind"] = "preference"
		if id := d.channelIn(i.Text); id != "" {
			arguments["channel_id"] = id
		}
	}
	return d.call(w, rememberTool, arguments)
}

// channelIn returns the channel whose name or id is in a text, "" if there are
// none or several.
func (d dialog) channelIn(text string) (id string) {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for _, c := range d.known() {
		for _, word := range words {
			if !grammar.SameChannel(word, c.ID, c.Name) {
				continue
			}
			if id != "" && id != c.ID {
				return ""
			}
			id = c.ID
		}
	}
	return id
}

var (
	preferences       = pattern.New(`(?s)(?:^|\n)Preferences:\n(.*?)(?:\n\n|$)`)
	preferenceChannel = pattern.New(`(?m)^- .*\(channel ([a-z][a-z0-9_]*);[^()]*\) \[[a-z0-9]+\]$`)
)

// preferred returns the channel of the newest preference that names one, from
// the context that memory gave for this turn.
func preferred(messages []*extensionv1.Message) string {
	for _, m := range messages {
		kind, text := readLabel(m.GetContent())
		if m.GetRole() != "user" || kind != "context" {
			continue
		}
		if section := preferences.FindStringSubmatch(text); section != nil {
			if channel := preferenceChannel.FindStringSubmatch(section[1]); channel != nil {
				return channel[1]
			}
		}
	}
	return ""
}

// remembered reports the result of remember.
func (d dialog) remembered(w phrases, s step) string {
	if s.failed {
		return w.failed(s.result)
	}
	var made memory
	if json.Unmarshal([]byte(s.result), &made) != nil || made.Text == "" {
		return w.done(s.result)
	}
	lines := []string{w.remembered(made)}
	for _, n := range made.Notes {
		lines = append(lines, w.note(n))
	}
	if len(made.Similar) > 0 {
		lines = append(lines, w.pick("I also remember:", "Я также помню:"), w.memoryLines(made.Similar))
	}
	return strings.Join(lines, "\n")
}

// readMemories reads the result of a tool that lists memories.
func readMemories(s step) (memories, bool) {
	var m memories
	if json.Unmarshal([]byte(s.result), &m) != nil {
		return m, false
	}
	m.Memories = slices.DeleteFunc(m.Memories, func(m memory) bool { return m.ID == "" || m.Text == "" })
	return m, true
}

// recall lists the memories about something, or all.
func (d dialog) recall(w phrases, tool string, arguments map[string]any, none string) reply {
	s, ok := d.last(tool)
	switch {
	case !ok:
		return d.call(w, tool, arguments)
	case s.failed:
		return say(w.failed(s.result))
	}
	m, readable := readMemories(s)
	switch {
	case !readable:
		return say(w.done(s.result))
	case len(m.Memories) == 0:
		return say(none)
	}
	text := w.pick("Here's what I remember:\n", "Вот что я помню:\n") + w.memoryLines(m.Memories)
	if m.More > 0 {
		text += "\n" + fmt.Sprintf(w.pick("and %d more", "и ещё %d"), m.More)
	}
	return say(text)
}

var memoryID = pattern.New(`^m[a-z0-9]*[0-9][a-z0-9]*$`)

// forget finds the memory by its id or words and forgets it, or asks which one
// is meant.
func (d dialog) forget(w phrases, i grammar.Forget) reply {
	if i.All {
		return say(w.pick(
			"In a chat I can only forget one thing at a time. To erase everything, run `switchboard memory forget "+
				"--all`.",
			"В чате можно стирать только по одной записи. Чтобы стереть всё, выполните `switchboard memory forget "+
				"--all`."))
	}
	if id := strings.ToLower(i.Name); memoryID.MatchString(id) {
		return d.call(w, forgetTool, map[string]any{"ids": []string{id}})
	}
	s, ok := d.last(recallTool)
	switch {
	case !ok:
		return d.call(w, recallTool, map[string]any{"query": i.Name, "limit": 50})
	case s.failed:
		return say(w.failed(s.result))
	}
	m, readable := readMemories(s)
	if !readable {
		return say(w.failed(s.result))
	}
	var exact, matches []memory
	for _, one := range m.Memories {
		if slices.Equal(wordsOf(one.Text), wordsOf(i.Name)) {
			exact = append(exact, one)
		}
		if mentions(one.Text, i.Name) {
			matches = append(matches, one)
		}
	}
	if len(exact) == 1 {
		matches = exact
	}
	switch len(matches) {
	case 0:
		return say(w.noMemoriesOf(i.Name))
	case 1:
		return d.call(w, forgetTool, map[string]any{"ids": []string{matches[0].ID}})
	}
	which := w.pick("Which one? For example, say “forget %s”.\n", "Что именно? Скажите, например, «забудь %s».\n")
	return say(fmt.Sprintf(which, matches[0].ID) + w.memoryLines(matches))
}

// forgotten reports the result of forget.
func (d dialog) forgotten(w phrases, s step) string {
	if s.failed {
		return w.failed(s.result)
	}
	var done struct {
		Forgotten []memory `json:"forgotten"`
	}
	if json.Unmarshal([]byte(s.result), &done) != nil || len(done.Forgotten) == 0 {
		return w.done(s.result)
	}
	lines := make([]string, len(done.Forgotten))
	for k, m := range done.Forgotten {
		lines[k] = fmt.Sprintf(w.pick("Forgotten: %s", "Забыто: %s"), strings.TrimSpace(m.Text+" ["+m.ID+"]"))
	}
	return strings.Join(lines, "\n")
}

func (w phrases) remembered(m memory) string {
	format := w.pick("OK, I'll remember: %s [%s]", "Хорошо, запомню: %s [%s]")
	switch m.Status {
	case "updated":
		format = w.pick("OK, I've updated that: %s [%s]", "Хорошо, обновлено: %s [%s]")
	case "known":
		format = w.pick("I already know that: %s [%s]", "Я это уже помню: %s [%s]")
	}
	return fmt.Sprintf(format, m.Text, m.ID)
}

func (w phrases) noMemoriesOf(name string) string {
	return fmt.Sprintf(w.pick("I don't remember anything about “%s”.", "Не помню ничего о «%s»."), name)
}

func (w phrases) memoryLines(all []memory) string {
	lines := make([]string, len(all))
	for k, m := range all {
		var details []string
		if m.Kind == "preference" {
			details = append(details, w.pick("preference", "предпочтение"))
		}
		if m.Kind == "open" {
			details = append(details, w.pick("to do", "не сделано"))
		}
		if m.Due != "" {
			details = append(details, w.pick("due ", "срок ")+m.Due)
		}
		if m.ChannelID != "" {
			details = append(details, m.ChannelID)
		}
		at := m.Created
		if !m.Updated.IsZero() {
			at = m.Updated
		}
		if !at.IsZero() {
			details = append(details, fmt.Sprintf("%d %s %d", at.Day(), w.months[at.Month()-1], at.Year()))
		}
		line := "- " + strings.Join(strings.Fields(m.Text), " ")
		if len(details) > 0 {
			line += " (" + strings.Join(details, ", ") + ")"
		}
		lines[k] = line + " [" + m.ID + "]"
	}
	return strings.Join(lines, "\n")
}
