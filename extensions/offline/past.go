package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// past is a finished turn of the conversation, or a reminder that was delivered.
type past struct {
	said      string   // by the user; empty if it was not the user who spoke
	quote     *quote   // that said replied to
	files     []string // references to the files that came with it
	delivered string   // the text of the reminder
	steps     []step
	answer    string
	at        time.Time
}

// sentHere matches the record of a message that was sent to the conversation.
var sentHere = pattern.New(`(?s)^You sent this to the user here, from outside this conversation[^\n]*:\n\n(.*)$`)

// readPast reads the finished turns.
func readPast(messages []*extensionv1.Message) []past {
	var all []past
	var turn []*extensionv1.Message
	var at time.Time
	end := func() {
		if len(all) > 0 {
			all[len(all)-1].steps = steps(turn)
		}
		turn = nil
	}
	for _, m := range messages {
		switch m.GetRole() {
		case "user":
			told, _ := splitPreamble(m.GetContent())
			at = clock(told, at)
			in := readInput(m.GetContent())
			sent := sentHere.FindStringSubmatch(in.text)
			switch {
			case in.kind == "record" && sent != nil:
				end()
				all = append(all, past{delivered: sent[1], at: at})
			case silentKinds[in.kind]:
			case in.kind == "user":
				end()
				said, files, _ := withoutFiles(in.text)
				all = append(all, past{said: said, quote: in.quote, files: files, at: at})
			default:
				end()
				all = append(all, past{at: at})
			}
		case "assistant", "tool":
			turn = append(turn, m)
			if len(all) > 0 && m.GetContent() != "" && m.GetRole() == "assistant" {
				all[len(all)-1].answer = m.GetContent()
			}
		}
	}
	end()
	return all
}

// reading are the tools that change nothing.
var reading = []string{listChannels, listSchedules, recallTool, listMemoryTool}

// acts returns the steps of the turn that changed something.
func (p past) acts() []step {
	return slices.DeleteFunc(slices.Clone(p.steps), func(s step) bool {
		return slices.Contains(reading, s.tool) || s.failed
	})
}

// lastPast returns the newest turn, empty if there is none.
func (d dialog) lastPast() past { return slices.Concat([]past{{}}, d.past)[len(d.past)] }

// asked returns what the user said last, with the question that it answered, if it was
// answered without a change: the answer may have been a question.
func (d dialog) asked() string {
	before := ""
	for _, p := range d.past[max(0, len(d.past)-3):] {
		sentence, _ := d.complete(before, p.said)
		before = cmp.Or(sentence, p.said)
		if len(p.acts()) > 0 {
			before = ""
		}
	}
	return before
}

// undoWindow is how long a change can be undone.
const undoWindow = 5 * time.Minute

// lastActs returns the newest changes that can still be undone.
func (d dialog) lastActs() []step {
	for _, p := range slices.Backward(d.past) {
		if acts := p.acts(); len(acts) > 0 {
			if !p.at.IsZero() && d.now.Sub(p.at) > undoWindow {
				return nil
			}
			return acts
		}
	}
	return nil
}

var (
	ids      = pattern.New(`\[([a-z][a-z0-9_]*)\]`)
	numbered = pattern.New(`(?m)^\d+\. .*\[([a-z][a-z0-9_]*)\]$`)
)

// found returns the ids that a pattern finds in an answer.
func found(p *pattern.Pattern, answer string) []string {
	var all []string
	for _, m := range p.FindAllStringSubmatch(answer, -1) {
		all = append(all, m[1])
	}
	return all
}

// shown returns the ids of the last numbered list.
func (d dialog) shown() []string {
	for _, p := range slices.Backward(d.past) {
		if all := found(numbered, p.answer); len(all) > 0 {
			return all
		}
	}
	return nil
}

// focus returns the id of the one reminder or memory that the conversation was last
// about, or the text of the reminder that was delivered last.
func (d dialog) focus() (id, delivered string) {
	for _, p := range slices.Backward(d.past) {
		if p.delivered != "" {
			return "", p.delivered
		}
		if all := found(ids, p.answer); len(all) == 1 {
			return all[0], ""
		} else if len(all) > 1 {
			return "", ""
		}
	}
	return "", ""
}

// undo undoes the last changes.
func (d dialog) undo(w phrases) reply {
	acts := d.lastActs()
	if len(acts) > 0 && (acts[0].tool == scheduleOnce || acts[0].tool == scheduleRecurring) {
		if _, instead, _ := d.listed(w); len(instead.calls) > 0 {
			return instead // to name what is cancelled
		}
	}
	var r reply
	for _, s := range acts {
		var made struct {
			ID, Status string
			Forgotten  []memory
		}
		var arguments struct{ ID string }
		_ = json.Unmarshal([]byte(s.result), &made) // a result in another form has no id
		_ = json.Unmarshal(s.arguments, &arguments) // checked by the tool
		add := func(tool string, a map[string]any) {
			if c, ok := d.prepare(tool, a); ok {
				r.calls = append(r.calls, c)
			}
		}
		switch s.tool {
		case sendToChannel, sendToAll:
			return say(w.text("cannot_undo_message"))
		case scheduleOnce, scheduleRecurring:
			add(cancelSchedule, map[string]any{"id": made.ID})
		case cancelSchedule, updateSchedule:
			if made.Status != "too_late" {
				add(updateSchedule, map[string]any{"id": arguments.ID, "action": "undo"})
			}
		case rememberTool:
			if made.Status == "remembered" {
				add(forgetTool, map[string]any{"ids": []string{made.ID}})
			}
		case forgetTool:
			for _, m := range made.Forgotten {
				add(rememberTool, m.arguments())
			}
		}
	}
	if len(r.calls) == 0 {
		return say(w.text("nothing_to_undo"))
	}
	return r
}

// language is that of the current message, or of an earlier one if it has no letters.
func (d dialog) language(text string, read grammar.Language) grammar.Language {
	for i := len(d.past); ; i-- {
		if strings.ContainsFunc(text, unicode.IsLetter) {
			if i < len(d.past) {
				return phrasesFor(text).language
			}
			return read
		}
		if i == 0 {
			return read
		}
		text = d.past[i-1].said
	}
}
