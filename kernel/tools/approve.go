package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/questions"
)

const (
	// approvalLife is how long a call waits for the user's approval.
	approvalLife = time.Hour
	// maxShown is how many characters of the arguments the user sees.
	maxShown = 1500
)

// approval asks the user to approve a call. The answer is stored before the tool
// runs, so a repeated call does not ask again. A refusal is for the model.
func (r *running) approval(ctx context.Context) (refusal string, err error) {
	q, refusal, err := r.ask(ctx, questions.Question{Kind: contract.AskApprove, Text: r.approvalText()}, approvalLife,
		r.call.Name+" needs the approval of the user, and was not run: %s.")
	if err == nil && refusal == "" && q.Answer != questions.Yes {
		refusal = fmt.Sprintf("The user declined: %s was not run. Do not try it again unless they ask for it.", r.call.Name)
	}
	return refusal, err
}

func (r *running) approvalText() string {
	who := r.lease.Agent
	if a := r.Directory.Current().Agent(who); a != nil && a.Name != "" {
		who = a.Name
	}
	shown := readable(listed(arguments(r.call.Arguments)))
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	what := r.call.Name + ":"
	if t := r.Directory.Current().Tool(r.call.Name); t != nil && t.Tool.GetDescription() != "" {
		what += "\n" + readable(summary(t.Tool.GetDescription()))
	}
	return fmt.Sprintf("%s wants to run %s\n\n%s\n%s\n%s", who, what, fence, shown, fence)
}

// summary is the first sentence of a description.
func summary(description string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	first, _, cut := strings.Cut(line, ". ")
	if cut {
		first += "."
	}
	return first
}

// listed formats arguments for people, a line for each. The lines of a longer text
// are indented, so none can pass for another argument.
func listed(raw []byte) string {
	in := json.NewDecoder(bytes.NewReader(raw))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return string(raw)
	}
	var lines []string
	for in.More() {
		var value json.RawMessage
		name, err := in.Token()
		if err != nil || in.Decode(&value) != nil {
			return string(raw)
		}
		var text string
		if json.Unmarshal(value, &text) != nil || strings.TrimSpace(text) == "" {
			text = string(value)
		}
		lines = append(lines, strings.ReplaceAll(fmt.Sprintf("%v: %s", name, text), "\n", "\n    "))
	}
	return strings.Join(lines, "\n")
}

// readable escapes what hides or reorders other characters, and cuts to maxShown.
func readable(text string) string {
	var b strings.Builder
	all := []rune(text)
	for _, c := range all[:min(len(all), maxShown)] {
		if c != '\n' && !unicode.IsPrint(c) {
			fmt.Fprintf(&b, "\\u%04x", c)
		} else {
			b.WriteRune(c)
		}
	}
	if more := len(all) - maxShown; more > 0 {
		fmt.Fprintf(&b, "\n... and %d more characters that are not shown", more)
	}
	return b.String()
}
