package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// reply is either the next calls or the final text.
type reply struct {
	calls []call
	text  string
	aside bool // the exchange means nothing to another model
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
	updateSchedule    = "update_schedule"
	useTool           = "use_tool"
)

// answerAll answers the inputs of a turn in order. It replays the turn to assign
// the finished calls to their inputs: an answer depends only on the input and
// its calls.
func answerAll(d dialog) reply {
	var said []string
	aside := true
	steps := d.steps
	for _, in := range d.inputs {
		d.input, d.steps = in, nil
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
		d.past = nil
		said = append(said, a.text)
		aside = aside && a.aside
	}
	return reply{text: strings.Join(said, "\n\n"), aside: aside}
}

// answer returns the next calls, or the final text.
func answer(d dialog) reply {
	switch d.kind {
	case "user":
		return d.person()
	case "task":
		return d.task()
	case "message":
		w := phrasesFor(d.text)
		return say(w.text("what_i_am") + " " + w.text("no_agents"))
	}
	if strings.TrimSpace(d.text) == "" {
		return say(phrases{grammar.English}.text("nothing_understood"))
	}
	return say(d.text) // pass a notice or a result on to the person
}

// call calls a tool, or says that it is not available.
func (d dialog) call(w phrases, tool string, arguments any) reply {
	c, ok := d.prepare(tool, arguments)
	if !ok {
		return say(w.text("no_tool", tool))
	}
	return reply{calls: []call{c}}
}

// ask returns the step that called a tool which reads something. If done is set, it
// returns the reply to give first: the call, or its failure.
func (d dialog) ask(w phrases, tool string, arguments any) (s step, instead reply, done bool) {
	s, ok := d.last(tool)
	switch {
	case !ok:
		return s, d.call(w, tool, arguments), true
	case s.failed:
		return s, say(w.failed(s.result)), true
	}
	return s, reply{}, false
}

func (d dialog) prepare(tool string, arguments any) (call, bool) {
	name, ok := d.tools[tool]
	if !ok && tool == updateSchedule && d.tools[useTool] != "" { // it can be called without being offered
		name, ok = strings.Replace(d.tools[listSchedules], listSchedules, tool, 1), d.tools[listSchedules] != ""
	}
	if !ok {
		return call{}, false
	}
	b, err := json.Marshal(arguments)
	return call{tool: name, arguments: b}, err == nil
}

// sender matches the start of a message in a group.
var sender = pattern.New(`^[^:\n]{1,64}: `)

// read parses what the user said: as it is, without the sender's name at the
// start of a message in a group, or as the answer to the last question. The text
// becomes the sentence that was understood.
func (d *dialog) read() grammar.Reading {
	names := d.channelNames()
	r := grammar.Parse(d.text, d.now, names...)
	r.Language = d.language(d.text, r.Language)
	text, before := d.text, d.asked()
	if m := sender.FindString(text); m != "" && notUnderstood(r) {
		if s := grammar.Parse(text[len(m):], d.now, names...); !notUnderstood(s) {
			r, text = s, text[len(m):]
		}
		if strings.HasPrefix(before, m) { // the same person
			text, before = strings.TrimPrefix(text, m), before[len(m):]
		} else if r.Intent == nil {
			before = ""
		}
	}
	d.text = text
	if before == "" || len(text) > 200 || d.elsewhere() || !notUnderstood(r) && !answers[r.Do()] {
		return r
	}
	if joined, ok := d.join(before, strings.TrimRight(text, ".!? "), r); ok {
		d.quote = d.lastPast().quote // "move this" and "to six"
		if len(d.files) == 0 {
			d.files = d.lastPast().files
		}
		return joined
	}
	return r
}

// answers are the intents that may answer a question.
var answers = map[string]bool{"yes": true, "no": true, "stop": true, "undo": true, "pick": true, "correct": true,
	"move": true, "cancel": true}

func notUnderstood(r grammar.Reading) bool {
	return r.Question != nil && (r.Question.Reason == grammar.Unknown || r.Question.Reason == grammar.NotUnderstood)
}

// join completes a sentence with the answer to the question about it: "remind me
// tomorrow to call" and "at 9", "cancel the call" and "the second one".
func (d *dialog) join(before, text string, r grammar.Reading) (grammar.Reading, bool) {
	asked, do := grammar.Parse(before, d.now, d.channelNames()...), r.Do()
	switch {
	case asked.Intent != nil:
		return d.choose(before, text, asked, r)
	case notUnderstood(asked):
		return r, false
	case do == "stop", do == "no", do == "undo", do == "cancel" && r.Intent.Which.It != "":
		return grammar.Reading{Language: asked.Language, Intent: &grammar.Intent{Do: "unchanged"}}, true
	case do == "move", do == "cancel":
		return r, false
	}
	sentence, joined := d.complete(before, text)
	d.text = cmp.Or(sentence, d.text)
	return joined, sentence != ""
}

// complete completes a sentence that was asked about with the answer. The sentence is
// empty if they do not fit together.
func (d dialog) complete(before, text string) (string, grammar.Reading) {
	names := d.channelNames()
	asked := grammar.Parse(before, d.now, names...)
	before, text = strings.TrimRight(strings.TrimSpace(before), ".!?"), strings.TrimRight(text, ".!? ")
	if asked.Question == nil || notUnderstood(asked) {
		return "", grammar.Reading{}
	}
	attempts := []string{before + " " + text}
	switch q := asked.Question; q.Reason {
	case grammar.NoText, grammar.NoMessage, grammar.NoFact:
		attempts = append(attempts, strings.TrimRight(before, ": ")+": "+text)
	default:
		at := " " + grammar.Word(asked.Language, "at") + " "
		attempts = append(attempts, before+at+text)
		if q.Said != "" && strings.Count(before, q.Said) == 1 {
			for _, with := range []string{text, at[1:] + text, q.Said + " " + text} {
				attempts = append(attempts, strings.Replace(before, q.Said, with, 1))
			}
		}
	}
	narrower, reading := "", grammar.Reading{}
	for _, a := range attempts {
		r := grammar.Parse(a, d.now, names...)
		if r.Intent != nil {
			return a, r
		}
		if q := r.Question.Reason; narrower == "" && q != asked.Question.Reason && (narrow[q] ||
			q == grammar.NoTime && asked.Question.Reason == grammar.NoText) {
			narrower, reading = a, r
		}
	}
	return narrower, reading
}

// narrow are the questions that may follow an answer: what was asked for is known, but
// something else is not.
var narrow = map[grammar.Reason]bool{grammar.NoClock: true, grammar.AmPm: true, grammar.Past: true,
	grammar.NoSuchTime: true, grammar.AmbiguousDay: true, grammar.Vague: true}

// choose applies an answer to a sentence that was understood, but not carried out:
// it asked which reminder is meant, or whether to cancel all.
func (d *dialog) choose(before, text string, asked, r grammar.Reading) (grammar.Reading, bool) {
	i, do := *asked.Intent, r.Do()
	list := found(numbered, d.lastPast().answer)
	confirms := i.Do == "cancel" && i.Flag == "all"
	if confirms == (len(list) > 0) || !confirms && !choices[i.Do] {
		return grammar.Reading{}, false
	}
	asked.Intent = &i
	switch {
	case do == "no", do == "stop", do == "undo":
		i.Do = "unchanged"
	case confirms && (do == "yes" || do == "pick" && r.Intent.Flag == "all"):
		i.Flag = "confirmed"
	case confirms:
		return grammar.Reading{}, false
	case do == "pick" && r.Intent.Flag == "all" && i.Do == "cancel":
		d.only, i.Flag = list, "confirmed"
	case do == "pick" || do == "cancel" && r.Intent.Which.Nth != 0:
		i.Which = r.Intent.Which
	case r.Intent == nil && len(strings.Fields(text)) <= 6:
		i.Which = grammar.Which{Name: text}
		d.only = list
	default:
		return grammar.Reading{}, false
	}
	d.text = before
	return asked, true
}

// choices are the intents that may ask which reminder or memory is meant.
var choices = map[string]bool{"cancel": true, "move": true, "later": true, "earlier": true, "rename": true,
	"forget": true}

// act carries out a sentence.
func (d dialog) act(r grammar.Reading) reply {
	w := phrases{r.Language}
	// Finished calls come first: a time that was ahead when the turn began may
	// have passed, and would now be refused.
	if done, ok := d.outcome(w); ok {
		return done
	}
	if q := r.Question; q != nil {
		if d.elsewhere() && q.Reason == grammar.Unknown {
			if i, text, ok := d.replyTo(w); ok {
				d.text = text
				return d.change(w, i)
			}
		}
		if d.quote == nil && d.lastPast().delivered != "" && (q.Reason == grammar.Unknown || q.Reason == grammar.NoText) {
			again := grammar.Word(w.language, "again")
			for _, text := range []string{d.text + " " + again, again + " " + d.text} {
				if r := grammar.Parse(text, d.now); r.Intent != nil && r.Intent.Do == "snooze" {
					return d.snooze(w, *r.Intent)
				}
			}
		}
		if q.Reason == grammar.Unknown {
			return reply{text: w.text("nothing_understood"), aside: true}
		}
		return reply{text: q.Text(), aside: notUnderstood(r) || q.Reason == grammar.TooLong}
	}
	i := *r.Intent
	if d.means(i.Which) {
		switch i.Do {
		case "move", "later", "earlier", "rename", "correct", "pause", "resume", "amend":
			return d.change(w, i)
		case "undo":
			return d.undoQuoted(w, i)
		}
	}
	switch i.Do {
	case "remind":
		return d.remind(w, i)
	case "alarm", "timer":
		return d.timer(w, i)
	case "snooze":
		return d.snooze(w, i)
	case "send":
		return d.send(w, i)
	case "list", "next":
		return d.list(w, i)
	case "when":
		return d.when(w, i)
	case "cancel":
		return d.cancel(w, i)
	case "move", "later", "earlier", "rename", "correct", "pause", "resume":
		if m, ok := d.justRemembered(); ok && i.Which.Name == "" {
			return d.amend(w, m, i)
		}
		return d.change(w, i)
	case "amend":
		if m, ok := d.justRemembered(); ok {
			return d.amend(w, m, i)
		}
		return d.change(w, i)
	case "undo":
		return d.undo(w)
	case "stop": // right after something was made, it means that
		made := map[string][]string{
			"":       {scheduleOnce, scheduleRecurring},
			"forget": {rememberTool, scheduleOnce, scheduleRecurring},
		}
		acts := d.lastPast().acts()
		switch {
		case len(acts) > 0 && slices.Contains(made[i.Flag], acts[0].tool):
			return d.undo(w)
		case len(acts) > 0 && i.Flag == "" && acts[0].tool == updateSchedule:
			return say(w.text("undo_or_cancel"))
		}
	case "no":
		if len(d.lastPast().acts()) > 0 {
			return say(w.text("undo_or_cancel"))
		}
	case "pick":
		if m, ok := d.justRemembered(); ok {
			return d.amend(w, m, grammar.Intent{Text: i.Which.Name})
		}
	case "list_channels":
		return d.channels(w)
	case "remember", "todo", "additem":
		return d.remember(w, i)
	case "recall":
		return d.recall(w, recallTool, map[string]any{"query": i.Text}, w.text("no_memories_of", i.Text))
	case "ask_memory":
		return d.askMemory(w, i.Text)
	case "list_memories":
		return d.recall(w, listMemoryTool, map[string]any{}, w.text("no_memories"))
	case "showlist":
		return d.showList(w, i)
	case "forget", "dropitem":
		return d.forget(w, i)
	case "ask_time", "ask_date":
		day, text := d.now, d.now.Format("15:04")+", "
		if at, ok := i.When.(grammar.At); ok {
			day, text = at.Time, ""
		}
		return say(w.text("time_is", text+w.date(day)))
	case "ask_days":
		day, _ := i.When.(grammar.At)
		n := daysBetween(d.now, day.Time)
		return say(w.text("days_until", n, w.item("d", plural(n, w.language)), w.date(day.Time)))
	case "calculate":
		return say(i.Text)
	case "connect":
		return say(w.text("connect_" + i.Flag))
	case "greet":
		return reply{text: w.text("hello") + " " + w.help(), aside: true}
	case "help":
		return reply{text: w.help(), aside: true}
	}
	return say(w.text("say_" + i.Do))
}

// outcome reports the results of the calls that changed something.
func (d dialog) outcome(w phrases) (reply, bool) {
	var lines []string
	cancels := 0
	reports := map[string]func(phrases, step) string{cancelSchedule: d.cancelled, scheduleOnce: d.scheduled,
		scheduleRecurring: d.scheduled, sendToChannel: d.sent, sendToAll: d.sent, updateSchedule: d.changed,
		rememberTool: d.remembered, forgetTool: d.forgotten}
	for _, s := range d.steps {
		report := reports[s.tool]
		if s.tool == cancelSchedule {
			cancels++
		}
		switch {
		case report == nil:
		case s.failed && (status(s.result) == "" || s.tool != sendToChannel && s.tool != sendToAll):
			lines = append(lines, w.failed(s.result))
		default:
			lines = append(lines, report(w, s))
		}
	}
	if list, ok := d.last(listSchedules); ok && cancels == maxCancels {
		if own, _ := d.schedules(list); len(own) > maxCancels {
			lines = append(lines, w.text("more_left", len(own)-maxCancels))
		}
	}
	return say(strings.Join(lines, "\n")), len(lines) > 0
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
	switch reminds := reminder.MatchString(d.text); {
	case named && reminds:
		deliver.Text = w.marked("reminder", deliver.Text)
		return d.send(w, deliver)
	case reminds: // "cancel the order" is its text
		return say(w.marked("reminder", strings.TrimSpace(reminder.ReplaceAllString(d.text, ""))))
	}
	text := d.text
	if r := d.read(); r.Intent != nil {
		return d.act(r)
	}
	if named {
		return d.send(w, deliver)
	}
	return say(w.text("cannot_do", strings.TrimSpace(text)))
}

// reminder matches the start of the prompt of a reminder.
var reminder = pattern.New(`(?i)^\s*(?:pending |due |overdue )?(?:reminder|напоминание)\s*(?:\([^)]*\))?\s*:`)
