package offline

import (
	"cmp"
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

// arguments are those of remember that store the memory as it was.
func (m memory) arguments() map[string]any {
	a := map[string]any{"text": m.Text}
	for name, value := range map[string]string{"kind": m.Kind, "channel_id": m.ChannelID, "due": m.Due} {
		if value != "" {
			a[name] = value
		}
	}
	return a
}

// remember stores a memory. A preference may name a channel.
func (d dialog) remember(w phrases, i grammar.Intent) reply {
	arguments := map[string]any{"text": i.Text}
	switch {
	case i.Flag == "preference":
		if _, listed := d.last(listChannels); !listed {
			if c, ok := d.prepare(listChannels, struct{}{}); ok {
				return reply{calls: []call{c}}
			}
		}
		arguments["kind"] = "preference"
		if id := d.channelIn(i.Text); id != "" {
			arguments["channel_id"] = id
		}
	case i.Do != "remember":
		arguments["kind"] = "open"
		if name := w.listName(i.List); name != "" {
			arguments["text"] = name + ": " + i.Text
		}
	}
	if i.Household {
		arguments["household"] = true
	}
	return d.call(w, rememberTool, arguments)
}

// listName is the name of a list, in which its entries begin; "" for the list of
// things to do.
func (w phrases) listName(said string) string {
	said = strings.ToLower(said)
	if said == "" || slices.Contains(strings.Split(w.text("todo_lists"), ", "), said) {
		return ""
	}
	return strings.Replace(w.text("list_name"), "{list}", said, 1)
}

// showList shows the entries of a list.
func (d dialog) showList(w phrases, i grammar.Intent) reply {
	arguments := map[string]any{"kind": "open"}
	if name := w.listName(i.List); name != "" {
		arguments["about"] = name
	}
	return d.recall(w, listMemoryTool, arguments, w.text("list_empty"))
}

// askMemory answers a question with what memory knows about its words.
func (d dialog) askMemory(w phrases, about string) reply {
	s, instead, done := d.ask(w, recallTool, map[string]any{"query": about})
	if done {
		return instead
	}
	all, readable := readMemories(s)
	if !readable {
		return say(w.done(s.result))
	}
	all.Memories = slices.DeleteFunc(all.Memories, func(m memory) bool { return !answersAbout(m.Text, about) })
	if len(all.Memories) == 0 {
		return say(w.text("no_memories_of", about))
	}
	return say(w.text("here_is") + "\n" + w.memoryLines("- ", all.Memories))
}

// answersAbout reports whether a memory has all words of a question. A question for a
// name is answered by "is called"; one for the person's own name only by that.
func answersAbout(text, about string) bool {
	words, specific := wordsOf(text), false
	for _, q := range wordsOf(about) {
		isName := grammar.Listed("name", q)
		if len([]rune(q)) < 3 || grammar.Listed("question_noise", q) {
			continue
		}
		if !slices.ContainsFunc(words, func(word string) bool {
			return sameStem(q, word) || isName && grammar.Listed("name", word)
		}) {
			return false
		}
		specific = specific || !isName
	}
	return specific || slices.ContainsFunc(grammar.Phrases("own_name"), func(own string) bool {
		return strings.HasPrefix(strings.ToLower(text), own)
	})
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
		in := readInput(m.GetContent())
		if m.GetRole() != "user" || in.kind != "context" {
			continue
		}
		if section := preferences.FindStringSubmatch(in.text); section != nil {
			if channel := preferenceChannel.FindStringSubmatch(section[1]); channel != nil {
				return channel[1]
			}
		}
	}
	return ""
}

// remembered reports the result of remember.
func (d dialog) remembered(w phrases, s step) string {
	var made memory
	if json.Unmarshal([]byte(s.result), &made) != nil || made.Text == "" {
		return w.done(s.result)
	}
	status := cmp.Or(made.Status, "remembered")
	var asked struct {
		Household bool `json:"household"`
	}
	if json.Unmarshal(s.arguments, &asked) == nil && asked.Household && status == "remembered" {
		status = "remembered_household"
	}
	lines := []string{w.text(status, made.Text, made.ID)}
	for _, n := range made.Notes {
		lines = append(lines, w.note(n))
	}
	if len(made.Similar) > 0 {
		lines = append(lines, w.text("also_remember"), w.memoryLines("- ", made.Similar))
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
	s, instead, done := d.ask(w, tool, arguments)
	if done {
		return instead
	}
	m, readable := readMemories(s)
	switch {
	case !readable:
		return say(w.done(s.result))
	case len(m.Memories) == 0:
		return say(none)
	}
	text := w.text("here_is") + "\n" + w.memoryLines("- ", m.Memories)
	if m.More > 0 {
		text += "\n" + w.text("and_more", m.More)
	}
	return say(text)
}

var memoryID = pattern.New(`^m[a-z0-9]*[0-9][a-z0-9]*$`)

// forget finds the memory by its id or words and forgets it, or asks which one
// is meant.
func (d dialog) forget(w phrases, i grammar.Intent) reply {
	name := i.Which.Name
	id, _ := d.focus()
	switch {
	case i.Flag == "all":
		return say(w.text("forget_all"))
	case i.Do == "dropitem":
		name = i.Text
	case i.Which.It != "" && memoryID.MatchString(id):
		name = id
	case i.Which.Nth > 0 && i.Which.Nth <= len(d.shown()):
		name = d.shown()[i.Which.Nth-1]
	}
	if name == "" {
		return say((&grammar.Question{Reason: grammar.Unknown, Language: w.language}).Text())
	}
	if id := strings.ToLower(name); memoryID.MatchString(id) {
		return d.call(w, forgetTool, map[string]any{"ids": []string{id}})
	}
	s, instead, done := d.ask(w, recallTool, map[string]any{"query": name, "limit": 50})
	if done {
		return instead
	}
	m, readable := readMemories(s)
	if !readable {
		return say(w.failed(s.result))
	}
	var exact, matches []memory
	for _, one := range m.Memories {
		if slices.Equal(wordsOf(one.Text), wordsOf(name)) {
			exact = append(exact, one)
		}
		if mentions(one.Text, name, sameStem) {
			matches = append(matches, one)
		}
	}
	if len(exact) == 1 {
		matches = exact
	}
	switch len(matches) {
	case 0:
		return say(w.text("no_memories_of", name))
	case 1:
		return d.call(w, forgetTool, map[string]any{"ids": []string{matches[0].ID}})
	}
	return say(w.text("which_memory") + "\n" + w.memoryLines("", matches))
}

// justRemembered returns what the newest change of the conversation remembered.
func (d dialog) justRemembered() (made memory, ok bool) {
	acts := d.lastActs()
	if len(acts) == 0 || acts[len(acts)-1].tool != rememberTool {
		return memory{}, false
	}
	err := json.Unmarshal([]byte(acts[len(acts)-1].result), &made)
	return made, err == nil && made.ID != "" && made.Text != ""
}

var number = pattern.New(`\d+`)

// amend changes a part of what was just remembered, or asks which part: a number, if
// there is only one, or the words that are named.
func (d dialog) amend(w phrases, m memory, i grammar.Intent) reply {
	was, numbers := i.Which.Name, number.FindAllStringSubmatch(m.Text, -1)
	if was == "" && len(numbers) == 1 && number.FindString(i.Text) == i.Text {
		was = numbers[0][0]
	}
	text, ok := replaceWords(m.Text, was, i.Text)
	if !ok {
		return say(w.text("what_to_change", m.Text))
	}
	arguments := m.arguments()
	arguments["text"] = text
	forget, may := d.prepare(forgetTool, map[string]any{"ids": []string{m.ID}})
	r := d.call(w, rememberTool, arguments)
	if may && len(r.calls) > 0 {
		r.calls = append([]call{forget}, r.calls...)
	}
	return r
}

// replaceWords replaces words that a text has exactly once.
func replaceWords(text, was, with string) (string, bool) {
	padded, was := " "+text+" ", " "+was+" "
	replaced := strings.TrimSpace(strings.Replace(padded, was, " "+with+" ", 1))
	return replaced, was != "  " && with != "" && strings.Count(padded, was) == 1
}

// forgotten reports the result of forget.
func (d dialog) forgotten(w phrases, s step) string {
	var done struct {
		Forgotten []memory `json:"forgotten"`
	}
	if json.Unmarshal([]byte(s.result), &done) != nil || len(done.Forgotten) == 0 {
		return w.done(s.result)
	}
	lines := make([]string, len(done.Forgotten))
	for k, m := range done.Forgotten {
		lines[k] = w.text("forgotten", strings.TrimSpace(m.Text+tag(m.ID)))
	}
	return strings.Join(lines, "\n")
}

// memoryLines lists memories, each after a mark, or numbered.
func (w phrases) memoryLines(mark string, all []memory) string {
	lines := make([]string, len(all))
	for k, m := range all {
		var details []string
		if m.Kind == "preference" || m.Kind == "open" {
			details = append(details, w.text(m.Kind))
		}
		if m.Due != "" {
			details = append(details, w.text("due", m.Due))
		}
		if m.ChannelID != "" {
			details = append(details, m.ChannelID)
		}
		at := m.Created
		if !m.Updated.IsZero() {
			at = m.Updated
		}
		if !at.IsZero() {
			details = append(details, fmt.Sprintf("%d %s %d", at.Day(), w.item("months", int(at.Month())-1), at.Year()))
		}
		line := mark
		if mark == "" {
			line = fmt.Sprintf("%d. ", k+1)
		}
		line += strings.Join(strings.Fields(m.Text), " ")
		if len(details) > 0 {
			line += " (" + strings.Join(details, ", ") + ")"
		}
		lines[k] = line + " [" + m.ID + "]"
	}
	return strings.Join(lines, "\n")
}
