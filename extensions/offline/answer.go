package offline

import (
	"encoding/json"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// reply is either the next calls or the final text.
type reply struct {
	calls []call
	text  string
}

type call struct {
	tool      string // its name in the request
	arguments json.RawMessage
}

func say(text string) reply { return reply{text: text} }

// The names of the tools, without their extensions.
const (
	listChannels      = "list_channels"
	sendToChannel     = "send_to_channel"
	sendToAll         = "send_to_all_channels"
	scheduleOnce      = "schedule_once"
	scheduleRecurring = "schedule_recurring"
	listSchedules     = "list_schedules"
	cancelSchedule    = "cancel_schedule"
)

// answerAll answers the inputs of a turn in order. It replays the turn to assign
// the finished calls to their inputs: an answer depends only on the input and
// its calls.
func answerAll(d dialog) reply {
	var said []string
	steps := d.steps
	for _, in := range d.inputs {
		d.kind, d.text, d.steps = in.kind, in.text, nil
		if len(d.inputs) == 1 {
			d.steps = steps
		}
		a := answer(d)
		for len(a.calls) > 0 {
			made := len(d.steps) + len(a.calls)
			if made > len(steps) {
				return a
			}
			d.steps = steps[:made]
			a = answer(d)
		}
		steps = steps[len(d.steps):]
		d.previous = ""
		said = append(said, a.text)
	}
	return say(strings.Join(said, "\n\n"))
}

// answer returns the next calls, or the final text.
func answer(d dialog) reply {
	switch d.kind {
	case "user":
		return d.act(d.read())
	case "task":
		return d.task()
	case "message":
		return say(phrasesFor(d.text).noAgents)
	}
	if strings.TrimSpace(d.text) == "" {
		return say(english.unknown)
	}
	return say(d.text) // pass a notice or a result on to the person
}

// call calls a tool, or says that it is not available.
func (d dialog) call(w phrases, tool string, arguments any) reply {
	c, ok := d.prepare(tool, arguments)
	if !ok {
		return say(w.noTool(tool))
	}
	return reply{calls: []call{c}}
}

func (d dialog) prepare(tool string, arguments any) (call, bool) {
	name, ok := d.tools[tool]
	if !ok {
		return call{}, false
	}
	b, err := json.Marshal(arguments)
	return call{tool: name, arguments: b}, err == nil
}

// sender matches the start of a message in a group.
var sender = pattern.New(`^[^:\n]{1,64}: `)

// read parses what the user said: as it is, without the sender's name at the
// start of a message in a group, or as the answer to the last question.
func (d dialog) read() grammar.Reading {
	names := d.channelNames()
	r := grammar.Parse(d.text, d.now, names...)
	if !notUnderstood(r) {
		return r
	}
	text, before := d.text, d.previous
	if m := sender.FindString(text); m != "" {
		if s := grammar.Parse(text[len(m):], d.now, names...); !notUnderstood(s) {
			return s
		}
		if strings.HasPrefix(before, m) { // the same person
			text, before = text[len(m):], before[len(m):]
		}
	}
	if joined, ok := d.join(before, text, names); ok {
		return joined
	}
	return r
}

func notUnderstood(r grammar.Reading) bool {
	return r.Question != nil && (r.Question.Reason == grammar.Unknown || r.Question.Reason == grammar.NotUnderstood)
}

// join completes an incomplete sentence with the answer to the question about
// it: "remind me tomorrow to call" and "at 9".
func (d dialog) join(before, text string, names []string) (grammar.Reading, bool) {
	text = strings.TrimRight(strings.TrimSpace(text), ".!?")
	if before == "" || text == "" || len(text) > 200 {
		return grammar.Reading{}, false
	}
	asked := grammar.Parse(before, d.now, names...)
	before = strings.TrimRight(strings.TrimSpace(before), ".!?")
	var attempts []string
	switch q := asked.Question; {
	case q == nil:
		if _, ok := asked.Intent.(grammar.Cancel); !ok {
			return grammar.Reading{}, false
		}
		attempts = []string{before + " " + text}
	case notUnderstood(asked):
		return grammar.Reading{}, false
	case q.Reason == grammar.NoText, q.Reason == grammar.NoMessage, q.Reason == grammar.NoFact:
		attempts = []string{strings.TrimRight(before, ": ") + ": " + text}
	default:
		at := " at "
		if asked.Language == grammar.Russian {
			at = " в "
		}
		attempts = []string{before + " " + text, before + at + text}
		if q.Said != "" && strings.Count(before, q.Said) == 1 {
			for _, with := range []string{text, at[1:] + text, q.Said + " " + text} {
				attempts = append(attempts, strings.Replace(before, q.Said, with, 1))
			}
		}
	}
	for _, a := range attempts {
		if r := grammar.Parse(a, d.now, names...); r.Intent != nil {
			return r, true
		}
	}
	return grammar.Reading{}, false
}

// act carries out a sentence.
func (d dialog) act(r grammar.Reading) reply {
	w := phrasesIn(r.Language)
	// Finished calls come first: a time that was ahead when the turn began may
	// have passed, and would now be refused.
	if done, ok := d.outcome(w); ok {
		return done
	}
	if q := r.Question; q != nil {
		if q.Reason == grammar.Unknown {
			return say(w.unknown)
		}
		return say(q.Text())
	}
	switch i := r.Intent.(type) {
	case grammar.Remind:
		return d.remind(w, i)
	case grammar.Send:
		return d.send(w, i)
	case grammar.ListReminders:
		return d.list(w)
	case grammar.Cancel:
		return d.cancel(w, i)
	case grammar.ListChannels:
		return d.channels(w)
	case grammar.Remember:
		return d.remember(w, i)
	case grammar.Recall:
		return d.recall(w, recallTool, map[string]any{"query": i.About}, w.noMemoriesOf(i.About))
	case grammar.ListMemories:
		return d.recall(w, listMemoryTool, map[string]any{},
			w.pick("I don't remember anything yet.", "Я пока ничего не помню."))
	case grammar.Forget:
		return d.forget(w, i)
	case grammar.Thanks:
		return say(w.welcome)
	case grammar.Greeting:
		return say(w.hello)
	default:
		return say(w.help)
	}
}

// outcome reports the result of a finished call that changed something.
func (d dialog) outcome(w phrases) (reply, bool) {
	for _, tool := range []string{scheduleOnce, scheduleRecurring} {
		if s, ok := d.last(tool); ok {
			return say(d.scheduled(w, s)), true
		}
	}
	for _, tool := range []string{sendToChannel, sendToAll} {
		if s, ok := d.last(tool); ok {
			return say(d.sent(w, s)), true
		}
	}
	if _, ok := d.last(cancelSchedule); ok {
		return say(d.cancelled(w)), true
	}
	if s, ok := d.last(rememberTool); ok {
		return say(d.remembered(w, s)), true
	}
	if s, ok := d.last(forgetTool); ok {
		return say(d.forgotten(w, s)), true
	}
	return reply{}, false
}

// task carries out a task from another part of the assistant. Its prompt names a
// text and a channel, or is a sentence like a user's.
func (d dialog) task() reply {
	w := phrasesFor(d.text)
	if done, ok := d.outcome(w); ok {
		return done
	}
	if _, listed := d.last(listChannels); !listed {
		if c, ok := d.prepare(listChannels, struct{}{}); ok { // the prompt may name a channel
			return reply{calls: []call{c}}
		}
	}
	deliver, named := grammar.ParseTask(d.text, d.channelNames()...)
	if named && reminder.MatchString(d.text) {
		return d.send(w, grammar.Send{Channel: deliver.Channel, Text: w.reminder + deliver.Text})
	}
	if r := d.read(); r.Intent != nil {
		return d.act(r)
	}
	switch {
	case named:
		return d.send(w, grammar.Send{Channel: deliver.Channel, Text: deliver.Text})
	case reminder.MatchString(d.text):
		return say(w.reminder + strings.TrimSpace(reminder.ReplaceAllString(d.text, "")))
	}
	return say(w.cannotDo(d.text))
}

// reminder matches the start of the prompt of a reminder.
var reminder = pattern.New(`(?i)^\s*(?:pending |due |overdue )?(?:reminder|напоминание)\s*(?:\([^)]*\))?\s*:`)
