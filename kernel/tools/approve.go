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
	// approvalLife is how long a call waits for somebody's yes.
	approvalLife = time.Hour
	// maxShown is how many characters of arguments a person is shown.
	maxShown = 1500
)

// approval has a person decide about a call. The answer is stored before the tool
// runs, so that they are asked once; from then on the call is like any other. A
// refusal is for the model.
func (r *running) approval(ctx context.Context) (refusal string, err error) {
	q, reason, err := r.ask(ctx, questions.Question{Kind: contract.AskApprove, Text: r.approvalText()}, approvalLife)
	switch {
	case err != nil:
		return "", err
	case reason == interrupted:
		return interrupted, nil
	case reason != "":
		return fmt.Sprintf("%s needs the approval of the user, and was not run: %s.", r.call.Name, reason), nil
	case q.Answer != questions.Yes:
		return fmt.Sprintf("The user declined: %s was not run. Do not try it again unless they ask for it.", r.call.Name), nil
	}
	return "", nil
}

func (r *running) approvalText() string {
	who := r.lease.Agent
	if a := r.Directory.Current().Agent(who); a != nil && a.Name != "" {
		who = a.Name
	}
	shown := readable(r.call.Arguments)
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	return fmt.Sprintf("%s wants to run %s:\n\n%s\n%s\n%s", who, r.call.Name, fence, shown, fence)
}

// readable is arguments as a person can read them, cut to a length that is read,
// and without characters that hide or reorder others.
func readable(raw []byte) string {
	var indented bytes.Buffer
	text := string(arguments(raw))
	if json.Indent(&indented, []byte(text), "", "  ") == nil {
		text = strings.TrimSpace(indented.String())
	}
	var b strings.Builder
	n := 0
	for _, c := range text {
		switch n++; {
		case n > maxShown:
		case c != '\n' && !unicode.IsPrint(c):
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			b.WriteRune(c)
		}
	}
	if n > maxShown {
		fmt.Fprintf(&b, "\n... and %d more characters that are not shown", n-maxShown)
	}
	return b.String()
}
