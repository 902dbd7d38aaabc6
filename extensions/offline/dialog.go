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

// dialog is the relevant part of a request: the inputs to answer, and the calls
// made for them so far.
type dialog struct {
	inputs  []input
	input            // the current input
	files   []string // references to the files of the current input
	past    []past   // what was said before, the newest last
	only    []string // the reminders to choose from, if a question listed them
	prefers string   // the preferred channel, if memory names one
	steps   []step
	now     time.Time
	tools   map[string]string // names in the request by plain name
}

// input is one input of a turn.
type input struct {
	kind  string // user, or the kind of a labelled input
	text  string
	quote *quote // the message that it replies to; nil: none
}

// step is one call with its result.
type step struct {
	tool      string // plain name
	arguments json.RawMessage
	result    string
	failed    bool
}

// failure is the prefix of a failed call's result.
const failure = "error: "

// preamble matches the facts before the text of a message: the time, the channels.
var preamble = pattern.New(`^\[now\]\n~~~\n((?:.+\n)*?)~~~(?:\n|$)`)

// splitPreamble splits a message into its preamble, which may be empty, and its text.
func splitPreamble(content string) (facts, text string) {
	m := preamble.FindStringSubmatch(content)
	if m == nil {
		return "", content
	}
	return m[1], strings.TrimPrefix(content, m[0])
}

// label matches the first line of an input that is not from a user.
var label = pattern.New(
	`^\[(task|message|result|notice|record|reaction|note|context|summary) from [^\]\n]*\]\n(~{3,})\n`)

// readInput reads a message, which may be labelled and have a quote.
func readInput(content string) input {
	told, content := splitPreamble(content)
	if told != "" && content == "" {
		return input{kind: "note"}
	}
	q, content := splitQuote(content)
	m := label.FindStringSubmatch(content)
	if m == nil {
		return input{"user", typed(content), q}
	}
	return input{m[1], strings.TrimSuffix(strings.TrimPrefix(content, m[0]), "\n"+m[2]), q}
}

// silentKinds are the kinds of inputs that need no answer.
var silentKinds = map[string]bool{"record": true, "reaction": true, "note": true, "context": true, "summary": true}

func readDialog(r *sdk.CompleteRequest, now time.Time) dialog {
	d := dialog{now: now, tools: map[string]string{}}
	for _, t := range r.GetTools() {
		name := plainName(t.GetName())
		if _, taken := d.tools[name]; !taken {
			d.tools[name] = t.GetName()
		}
	}
	messages := r.GetMessages()
	for _, m := range messages {
		told, _ := splitPreamble(m.GetContent())
		switch m.GetRole() {
		case "system":
			d.now = clock(m.GetContent(), d.now)
		case "user":
			d.now = clock(told, d.now)
		}
	}
	t := currentTurn(messages)
	if len(t.inputs) == 0 {
		d.inputs = []input{{kind: "user"}}
		return d
	}
	d.inputs, d.steps, d.past = t.inputs, steps(t.messages), readPast(messages[:t.begin])
	d.prefers = preferred(messages[t.begin:])
	return d
}

// plainName is the name of a tool without its extension.
func plainName(name string) string {
	for _, separator := range []string{"__", "/"} {
		if _, plain, ok := strings.Cut(name, separator); ok {
			return plain
		}
	}
	return name
}

// turn is the messages of one turn, which other turns may have interrupted.
type turn struct {
	begin    int // index of the first input
	inputs   []input
	messages []*extensionv1.Message // answers and results
}

// The run loop's marks of a turn that interrupts another, and of the end of such
// a turn.
const (
	backlog = "[Backlog]\n"
	resumed = "The newer message was answered. Continue the earlier request"
)

// currentTurn returns the turn to answer: the newest, or one that it interrupted
// and that is resumed.
func currentTurn(messages []*extensionv1.Message) turn {
	stack := []turn{{}}
	for i, m := range messages {
		top := &stack[len(stack)-1]
		switch m.GetRole() {
		case "assistant", "tool":
			top.messages = append(top.messages, m)
		case "user":
			in := readInput(m.GetContent())
			switch {
			case in.kind == "note" && strings.HasPrefix(in.text, resumed) && len(stack) > 1:
				stack = stack[:len(stack)-1]
			case silentKinds[in.kind]:
			case strings.HasPrefix(in.text, backlog):
				newer := turn{begin: i}
				for line := range strings.Lines(strings.TrimPrefix(in.text, backlog)) {
					newer.inputs = append(newer.inputs, input{kind: in.kind, text: strings.TrimSpace(line)})
				}
				stack = append(stack, newer)
			case len(top.messages) > 0 || len(top.inputs) == 0: // another turn
				*top = turn{begin: i, inputs: []input{in}}
			default:
				top.inputs = append(top.inputs, in)
			}
		}
	}
	return stack[len(stack)-1]
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
			s := step{tool: plainName(c.GetName()), arguments: c.GetArguments()}
			if inner, arguments, ok := contract.UsedTool(s.arguments); ok && s.tool == useTool {
				s.tool, s.arguments = plainName(inner), arguments
			}
			result, found := results[c.GetCallId()]
			if result == failure+contract.SkippedCall {
				continue // it did not run: call it again
			}
			s.result, s.failed = strings.CutPrefix(result, failure)
			if !found {
				s.result, s.failed = "the tool returned no result", true
			}
			out = append(out, s)
		}
	}
	return out
}

// last returns the last step that called the tool.
func (d dialog) last(tool string) (step, bool) {
	for _, s := range slices.Backward(d.steps) {
		if s.tool == tool {
			return s, true
		}
	}
	return step{}, false
}

// timeLine matches the line with the current time. The last one counts: lines above it
// may be quoted.
var timeLine = pattern.New(`(?m)^\s*Current time: (\S+)(?: \((?:[A-Z][a-z]+, )?([A-Za-z0-9_+/-]+)\))?\s*$`)

// clock reads the time and the zone from the prompt and the preambles.
func clock(prompt string, fallback time.Time) time.Time {
	all := timeLine.FindAllStringSubmatch(prompt, -1)
	if len(all) == 0 {
		return fallback
	}
	m := all[len(all)-1]
	now, err := time.Parse(time.RFC3339, m[1])
	if err != nil {
		return fallback
	}
	if zone, err := time.LoadLocation(m[2]); err == nil && m[2] != "" {
		return now.In(zone)
	}
	return now
}
