package questions

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

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
