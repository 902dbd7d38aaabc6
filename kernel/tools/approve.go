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
	shown := readable(r.call.Arguments)
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	return fmt.Sprintf("%s wants to run %s:\n\n%s\n%s\n%s", who, r.call.Name, fence, shown, fence)
}

// readable formats arguments for people: indented, cut to maxShown, and with
// characters escaped that hide or reorder others.
func readable(raw []byte) string {
	var indented bytes.Buffer
	text := string(arguments(raw))
	if json.Indent(&indented, []byte(text), "", "  ") == nil {
		text = strings.TrimSpace(indented.String())
	}
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
