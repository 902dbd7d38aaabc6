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

// The tools of memory by their plain names.
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

// remember keeps something in mind. A preference may be one for a channel.
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

// channelIn is the one channel whose name or id stands in a text.
func (d dialog) channelIn(text string) (id string) {
	for _, c := range d.known() {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
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

// preferred is the channel of the newest preference that names one, as memory
// told it for this turn.
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

// remembered confirms it with what memory says of it.
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
		lines = append(lines, w.note+n)
	}
	if len(made.Similar) > 0 {
		lines = append(lines, w.pick("Similar, and remembered as well:", "Похожее, тоже помню:"), w.memoryLines(made.Similar))
	}
	return strings.Join(lines, "\n")
}

// readMemories are the memories that a listing tool answered.
func readMemories(s step) (memories, bool) {
	var m memories
	if json.Unmarshal([]byte(s.result), &m) != nil {
		return m, false
	}
	m.Memories = slices.DeleteFunc(m.Memories, func(m memory) bool { return m.ID == "" || m.Text == "" })
	return m, true
}

// recall answers what is remembered about something, or at all.
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
	text := w.pick("I remember:\n", "Я помню:\n") + w.memoryLines(m.Memories)
	if m.More > 0 {
		text += "\n" + fmt.Sprintf(w.pick("and %d more", "и ещё %d"), m.More)
	}
	return say(text)
}

var memoryID = pattern.New(`^m[a-z0-9]*[0-9][a-z0-9]*$`)

// forget finds the memories that are meant and forgets them, if it is clear
// which they are.
func (d dialog) forget(w phrases, i grammar.Forget) reply {
	if i.All {
		return say(w.pick("To have me forget everything, run `switchboard memory forget --all`. Here I forget one thing at a time.",
			"Чтобы стереть всё, выполните `switchboard memory forget --all`. Здесь стирается по одному."))
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
	var exact, meant []memory
	for _, one := range m.Memories {
		if strings.Join(split(one.Text), " ") == strings.Join(split(i.Name), " ") {
			exact = append(exact, one)
		}
		if mentions(one.Text, i.Name) {
			meant = append(meant, one)
		}
	}
	if len(exact) == 1 {
		meant = exact
	}
	switch len(meant) {
	case 0:
		return say(w.knowsNothing(i.Name))
	case 1:
		return d.call(w, forgetTool, map[string]any{"ids": []string{meant[0].ID}})
	}
	return say(fmt.Sprintf(w.pick("Which one? Say for example “forget %s”.\n", "Что именно? Скажите, например, «забудь %s».\n"), meant[0].ID) + w.memoryLines(meant))
}

// forgotten tells what became of a call that forgets.
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
	format := w.pick("I will remember: %s [%s]", "Запомнено: %s [%s]")
	switch m.Status {
	case "updated":
		format = w.pick("I remember it anew: %s [%s]", "Запомнено заново: %s [%s]")
	case "known":
		format = w.pick("I remember that already: %s [%s]", "Это я уже помню: %s [%s]")
	}
	return fmt.Sprintf(format, m.Text, m.ID)
}

func (w phrases) knowsNothing(about string) string {
	return fmt.Sprintf(w.pick("I remember nothing about “%s”.", "О «%s» я ничего не помню."), about)
}

func (w phrases) memoryLines(all []memory) string {
	lines := make([]string, len(all))
	for k, m := range all {
		about := []string{}
		if m.Kind == "preference" {
			about = append(about, w.pick("preference", "предпочтение"))
		}
		if m.Kind == "open" {
			about = append(about, w.pick("open", "не сделано"))
		}
		if m.Due != "" {
			about = append(about, w.pick("due ", "срок ")+m.Due)
		}
		if m.ChannelID != "" {
			about = append(about, m.ChannelID)
		}
		at := m.Created
		if !m.Updated.IsZero() {
			at = m.Updated
		}
		if !at.IsZero() {
			about = append(about, fmt.Sprintf("%d %s %d", at.Day(), w.months[at.Month()-1], at.Year()))
		}
		lines[k] = fmt.Sprintf("- %s (%s) [%s]", strings.Join(strings.Fields(m.Text), " "), strings.Join(about, ", "), m.ID)
		lines[k] = strings.Replace(lines[k], " () ", " ", 1)
	}
	return strings.Join(lines, "\n")
}
