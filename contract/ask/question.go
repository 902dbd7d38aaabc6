// Package ask is how people are asked: the text of a question with how to answer it, and
// which answer a text gives. The kernel uses it for every channel.
package ask

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Question is what a person sees of a question.
type Question struct {
	ID      string   `json:"id"`   // q7
	Kind    string   `json:"kind"` // contract.AskApprove, ...
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	// Language is that of the texts around the question, an IETF tag.
	Language string `json:"language,omitempty"`
}

var idForm = regexp.MustCompile(`^[qQ][0-9]{1,12}$`)

// ParseID parses the id of a question as a person types it.
func ParseID(text string) (id string, ok bool) {
	if !idForm.MatchString(text) {
		return "", false
	}
	return strings.ToLower(text), true
}

// ParseAnswer returns the answer that a text gives, if it is one: yes or no, the
// number or text of an option, or any text, depending on the kind of the question.
func (q *Question) ParseAnswer(text string) (answer string, ok bool) {
	text = strings.TrimSpace(text)
	bare := strings.ToLower(strings.TrimRight(text, ".!"))
	switch q.Kind {
	case contract.AskApprove:
		return words.Approval(text)
	case contract.AskChoose:
		if n, err := strconv.Atoi(bare); err == nil && n >= 1 && n <= len(q.Options) {
			return q.Options[n-1], true
		}
		i := slices.IndexFunc(q.Options, func(o string) bool {
			return strings.EqualFold(strings.TrimSpace(o), text) || strings.EqualFold(strings.TrimSpace(o), bare)
		})
		if i < 0 {
			return "", false
		}
		return q.Options[i], true
	}
	return text, text != ""
}

// Message is the question as people see it, with how to answer.
func (q *Question) Message() string {
	lines := []string{strings.TrimSpace(q.Text), ""}
	for i, o := range q.Options {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, o))
	}
	if len(q.Options) > 0 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, q.Instructions()), "\n")
}

// Instructions says how to answer.
func (q *Question) Instructions() string {
	switch q.Kind {
	case contract.AskApprove:
		return words.Say(q.Language, "Reply yes or no. (Question %s; from elsewhere: /approve %s or /deny %s)",
			q.ID, q.ID, q.ID)
	case contract.AskChoose:
		return words.Say(q.Language, "Reply with a number from 1 to %d. (Question %s; from elsewhere: /answer %s NUMBER)",
			len(q.Options), q.ID, q.ID)
	}
	return words.Say(q.Language, "Your next message here is the answer. (Question %s; from elsewhere: /answer %s TEXT)",
		q.ID, q.ID)
}

// maxBrief is the longest Brief, in characters.
const maxBrief = 100

// Brief is the question in one line.
func (q *Question) Brief() string {
	line, _, more := strings.Cut(strings.TrimSpace(q.Text), "\n")
	if r := []rune(line); len(r) > maxBrief {
		line, more = string(r[:maxBrief]), true
	}
	if more {
		line = strings.TrimRight(line, " :") + " ..."
	}
	return line
}

// Summary is Brief with the options.
func (q *Question) Summary() string {
	lines := []string{q.Brief()}
	for i, o := range q.Options {
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, o))
	}
	return strings.Join(lines, "\n")
}

const (
	maxLife    = 30 * 24 * time.Hour
	maxOptions = 20
)

// Check explains why a question of an extension is invalid; empty: it is valid.
func Check(a contract.UserAsk) string {
	switch {
	case strings.TrimSpace(a.Text) == "":
		return "the question has no text"
	case !slices.Contains([]string{contract.AskApprove, contract.AskChoose, contract.AskAnswer}, a.Kind):
		return fmt.Sprintf("unknown kind of question %q: use %s, %s or %s",
			a.Kind, contract.AskApprove, contract.AskChoose, contract.AskAnswer)
	case a.Kind == contract.AskChoose && (len(a.Options) < 2 || len(a.Options) > maxOptions):
		return fmt.Sprintf("a question of kind %s has 2 to %d options, not %d",
			contract.AskChoose, maxOptions, len(a.Options))
	case a.Kind != contract.AskChoose && len(a.Options) > 0:
		return fmt.Sprintf("only a question of kind %s has options", contract.AskChoose)
	case slices.ContainsFunc(a.Options, func(o string) bool { return strings.TrimSpace(o) == "" }):
		return "an option is empty"
	case a.ExpiresSeconds < 0 || a.ExpiresSeconds > int64(maxLife/time.Second):
		return fmt.Sprintf("expires_seconds is 0 (a day) to %d, not %d", int64(maxLife/time.Second), a.ExpiresSeconds)
	}
	return ""
}
