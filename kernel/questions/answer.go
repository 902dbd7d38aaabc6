package questions

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Answers of a question of kind approve.
const (
	Yes = "yes"
	No  = "no"
)

// approvals are the words for yes and no; polite ones say neither.
var approvals = map[string]string{
	"yes": Yes, "y": Yes, "yep": Yes, "yeah": Yes, "ok": Yes, "okay": Yes, "sure": Yes, "go ahead": Yes, "of course": Yes,
	"да": Yes, "ок": Yes, "окей": Yes, "ага": Yes, "конечно": Yes, "хорошо": Yes, "давай": Yes,
	"no": No, "n": No, "nope": No, "нет": No, "не надо": No, "не нужно": No,
	"please": "", "thanks": "", "thank you": "", "пожалуйста": "", "спасибо": "",
}

var word = regexp.MustCompile(`[\pL\pN]+`)

// parseApproval returns the answer of a text that has no words but those of approvals,
// and not both yes and no.
func parseApproval(text string) (answer string, ok bool) {
	words := word.FindAllString(strings.ToLower(text), -1)
	for i := 0; i < len(words); i++ {
		means, known := approvals[words[i]]
		if !known && i+1 < len(words) {
			means, known = approvals[words[i]+" "+words[i+1]]
			i++
		}
		if !known || means != "" && answer != "" && answer != means {
			return "", false
		}
		answer = cmp.Or(means, answer)
	}
	return answer, answer != ""
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
		return parseApproval(text)
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
