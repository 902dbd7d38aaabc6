package offline

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
	"github.com/switchboard-run/switchboard/sdk"
)

// dialog is what matters of a request: the inputs to answer, and what has been
// called for them so far.
type dialog struct {
	inputs   []heard
	heard           // the input that is being answered
	previous string // what the user said before, if that was answered without a call
	prefers  string // the channel that memory says is preferred, if it names one
	steps    []step
	now      time.Time
	tools    map[string]string // names on the wire by plain name
}

// heard is one input.
type heard struct {
	kind string // user, or the kind of a labelled input
	text string
}

// step is one call with its result.
type step struct {
	tool      string // plain name
	arguments json.RawMessage
	result    string
	failed    bool
}

// failure is how the run loop marks the result of a failed call.
const failure = "error: "

// toldBlock is what stands before the text of a message: the time, the channels.
var toldBlock = pattern.New(`^\[now\]\n~~~\n((?:.+\n)*?)~~~(?:\n|$)`)

// splitTold returns what a message tells besides its text, and the text.
func splitTold(content string) (told, text string) {
	m := toldBlock.FindStringSubmatch(content)
	if m == nil {
		return "", content
	}
	return m[1], strings.TrimPrefix(content, m[0])
}

// label is the first line of an input that no user wrote.
var label = pattern.New(`^\[(task|message|result|notice|record|note|context|summary) from [^\]\n]*\]\n(~{3,})\n`)

// readLabel returns the kind and the text of a labelled message.
func readLabel(content string) (kind, text string) {
	told, content := splitTold(content)
	if told != "" && content == "" {
		return "note", ""
	}
	m := label.FindStringSubmatch(content)
	if m == nil {
		return "user", content
	}
	return m[1], strings.TrimSuffix(strings.TrimPrefix(content, m[0]), "\n"+m[2])
}

// aside are kinds that need no answer of their own.
var aside = map[string]bool{"record": true, "note": true, "context": true, "summary": true}

func readDialog(r *sdk.CompleteRequest, now time.Time) dialog {
	d := dialog{now: now, tools: map[string]string{}}
	for _, t := range r.GetTools() {
		name := t.GetName()
		plain := name
		if _, rest, ok := strings.Cut(name, "__"); ok {
			plain = rest
		} else if _, rest, ok := strings.Cut(name, "/"); ok {
			plain = rest
		}
		if _, taken := d.tools[plain]; !taken {
			d.tools[plain] = name
		}
	}
	messages := r.GetMessages()
	for _, m := range messages {
		told, _ := splitTold(m.GetContent())
		switch m.GetRole() {
		case "system":
			d.now = clock(m.GetContent(), d.now)
		case "user":
			d.now = clock(told, d.now)
		}
	}
	t := running(messages)
	if len(t.inputs) == 0 {
		d.inputs = []heard{{kind: "user"}}
		return d
	}
	d.inputs, d.steps, d.previous = t.inputs, steps(t.messages), previous(messages[:t.begin])
	d.prefers = preferred(messages[t.begin:])
	return d
}

// stretch is what belongs to one turn: it may have been interrupted by others.
type stretch struct {
	begin    int // index of the first input
	inputs   []heard
	messages []*extensionv1.Message // answers and results
}

// How a run loop shows that a turn is interrupted, and that it goes on.
const (
	backlog = "[Backlog]\n"
	goesOn  = "The newer message was answered. Go on with the earlier request"
)

// running is the turn that the request is about: the last one that began, or one
// below it that goes on.
func running(messages []*extensionv1.Message) stretch {
	stack := []stretch{{}}
	for i, m := range messages {
		top := &stack[len(stack)-1]
		switch m.GetRole() {
		case "assistant", "tool":
			top.messages = append(top.messages, m)
		case "user":
			kind, text := readLabel(m.GetContent())
			switch {
			case kind == "note" && strings.HasPrefix(text, goesOn) && len(stack) > 1:
				stack = stack[:len(stack)-1]
			case aside[kind]:
			case strings.HasPrefix(text, backlog):
				above := stretch{begin: i}
				for line := range strings.Lines(strings.TrimPrefix(text, backlog)) {
					above.inputs = append(above.inputs, heard{kind, strings.TrimSpace(line)})
				}
				stack = append(stack, above)
			case len(top.messages) > 0 || len(top.inputs) == 0: // another turn
				*top = stretch{begin: i, inputs: []heard{{kind, text}}}
			default:
				top.inputs = append(top.inputs, heard{kind, text})
			}
		}
	}
	return stack[len(stack)-1]
}

// previous is what the user said before, if the answer to it called nothing:
// then it may have been a question back.
func previous(messages []*extensionv1.Message) string {
	for _, m := range slices.Backward(messages) {
		switch m.GetRole() {
		case "tool":
			return ""
		case "user":
			kind, text := readLabel(m.GetContent())
			if aside[kind] {
				continue
			}
			if kind != "user" {
				return ""
			}
			return text
		}
	}
	return ""
}

func steps(messages []*extensionv1.Message) []step {
	results := map[string]string{}
	for _, m := range messages {
		if m.GetRole() == "tool" {
			results[m.GetCallId()] = m.GetContent()
		}
	}
	var out []step
	for _, m := range messages {
		for _, c := range m.GetCalls() {
			_, name, ok := strings.Cut(c.GetName(), "__")
			if !ok {
				if _, name, ok = strings.Cut(c.GetName(), "/"); !ok {
					name = c.GetName()
				}
			}
			s := step{tool: name, arguments: c.GetArguments()}
			result, there := results[c.GetCallId()]
			if result == failure+contract.SkippedCall {
				continue // it was not run: it is called again
			}
			s.result, s.failed = strings.CutPrefix(result, failure)
			if !there {
				s.result, s.failed = "there is no result", true
			}
			out = append(out, s)
		}
	}
	return out
}

// last returns the last step of the tool.
func (d dialog) last(tool string) (step, bool) {
	for _, s := range slices.Backward(d.steps) {
		if s.tool == tool {
			return s, true
		}
	}
	return step{}, false
}

// timeLine is the line that says what time it is. The last one counts: what
// stands above may be quoted.
var timeLine = pattern.New(`(?m)^\s*Current time: (\S+)(?: \((?:[A-Z][a-z]+, )?([A-Za-z0-9_+/-]+)\))?\s*$`)

// clock reads the time and the zone from what a model is told.
func clock(prompt string, otherwise time.Time) time.Time {
	all := timeLine.FindAllStringSubmatch(prompt, -1)
	if len(all) == 0 {
		return otherwise
	}
	m := all[len(all)-1]
	now, err := time.Parse(time.RFC3339, m[1])
	if err != nil {
		return otherwise
	}
	if zone, err := time.LoadLocation(m[2]); err == nil && m[2] != "" {
		return now.In(zone)
	}
	return now
}
