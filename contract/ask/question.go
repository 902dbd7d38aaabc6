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
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Question is what a person sees of a question, and its outcome.
type Question struct {
	ID      string   `json:"id"`   // q7
	Kind    string   `json:"kind"` // contract.AskApprove, ...
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	// Lasting: the owner may also approve for good.
	Lasting bool `json:"lasting,omitempty"`
	// Language is that of the texts around the question, an IETF tag.
	Language string `json:"language,omitempty"`
	Deadline int64  `json:"deadline"` // Unix microseconds

	Outcome string `json:"outcome,omitempty"` // contract.AskAnswered, ...; empty: it is open
	Answer  string `json:"answer,omitempty"`
	By      string `json:"by,omitempty"`
	EndedAt int64  `json:"ended_at,omitempty"` // Unix microseconds
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
		if answer, ok = words.LastingApproval(text); ok && q.Lasting {
			return answer, true
		}
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
	switch {
	case q.Kind == contract.AskApprove && q.Lasting:
		return words.Say(q.Language, "Reply yes or no. With \"always here\" or \"always\" I won't ask again. "+
			"(Question %s; from elsewhere: /approve %s or /deny %s)", q.ID, q.ID, q.ID)
	case q.Kind == contract.AskApprove:
		return words.Say(q.Language, "Reply yes or no. (Question %s; from elsewhere: /approve %s or /deny %s)",
			q.ID, q.ID, q.ID)
	case q.Kind == contract.AskChoose:
		return words.Say(q.Language, "Reply with a number from 1 to %d. (Question %s; from elsewhere: /answer %s NUMBER)",
			len(q.Options), q.ID, q.ID)
	}
	return words.Say(q.Language, "Your next message here is the answer. (Question %s; from elsewhere: /answer %s TEXT)",
		q.ID, q.ID)
}

// Actions are the answers as buttons; none if any text is an answer.
func (q *Question) Actions() (all []contract.Action) {
	answer := func(label, command string) { all = append(all, contract.Action{Label: label, Command: command}) }
	switch q.Kind {
	case contract.AskApprove:
		answer(words.Say(q.Language, "Yes"), "/approve "+q.ID)
		answer(words.Say(q.Language, "No"), "/deny "+q.ID)
		if q.Lasting {
			answer(words.Say(q.Language, "Always here"), "/approve "+q.ID+" "+words.AlwaysHere)
			answer(words.Say(q.Language, "Always"), "/approve "+q.ID+" "+words.Always)
		}
	case contract.AskChoose:
		for i, o := range q.Options {
			answer(o, fmt.Sprintf("/answer %s %d", q.ID, i+1))
		}
	}
	return all
}

// Settled confirms an answer of a person, in their language. With lasting, the answer also
// approves the calls to come.
func (q *Question) Settled(language, answer string, lasting bool) string {
	switch {
	case lasting:
		return words.Say(language, "Question %s: approved, and I won't ask again. To undo it: switchboard approvals revoke",
			q.ID)
	case q.Kind == contract.AskApprove && answer == words.Yes:
		return words.Say(language, "Question %s: approved.", q.ID)
	case q.Kind == contract.AskApprove:
		return words.Say(language, "Question %s: declined.", q.ID)
	}
	return words.Say(language, "Question %s is answered: %s", q.ID, answer)
}

// TooLate explains to a person, in their language, that the question ended before their
// answer came. Now is in Unix microseconds.
func (q *Question) TooLate(language string, now int64) string {
	switch {
	case q.Outcome == contract.AskAnswered && q.By != "":
		return words.Say(language, "Question %s was already answered by %s: %s", q.ID, q.By, q.Answer)
	case q.Outcome == contract.AskAnswered:
		return words.Say(language, "Question %s was already answered: %s", q.ID, q.Answer)
	case q.Outcome == contract.AskExpired, q.Outcome == "" && q.Deadline <= now:
		return words.Say(language, "Question %s has expired.", q.ID)
	}
	return words.Say(language, "Question %s is closed: the answer is no longer needed.", q.ID)
}

// Expired says that the question was not answered in time, and what that means.
func (q *Question) Expired() string {
	means := words.Say(q.Language, "I'm no longer waiting for the answer.")
	if q.Kind == contract.AskApprove {
		means = words.Say(q.Language, "That counts as no.")
	}
	return words.Say(q.Language, "Question %s wasn't answered in time: %s\n\n%s", q.ID, q.Brief(), means)
}

// TranslatedQuestion translates a question, if its asker wants that, into a language, an IETF
// tag.
func TranslatedQuestion(language string, a contract.UserAsk) contract.UserAsk {
	if !a.Translate {
		return a
	}
	a.Text, a.Options = words.Translate(language, a.Text), slices.Clone(a.Options)
	for i, o := range a.Options {
		a.Options[i] = words.Translate(language, o)
	}
	return a
}

// Translated translates a notice, if it is one of the kernel or its source wants that, into a
// language, an IETF tag.
func Translated(language, source string, n contract.UserNotify) contract.UserNotify {
	if source != contract.KernelSource && !n.Translate {
		return n
	}
	n.Text, n.Actions = words.Translate(language, n.Text), slices.Clone(n.Actions)
	for i, a := range n.Actions {
		n.Actions[i].Label = words.Translate(language, a.Label)
	}
	return n
}

// consentCommand is the command with which the owner allows what an extension asks for.
const consentCommand = "extensions"

// Typed appends to a text what to type instead of pressing buttons.
func Typed(text string, actions []contract.Action) string {
	if len(actions) == 0 {
		return text
	}
	lines := []string{strings.TrimRight(text, "\n"), ""}
	for _, a := range actions {
		lines = append(lines, fmt.Sprintf("%s: %s", a.Label, a.Command))
	}
	return strings.Join(lines, "\n")
}

// CheckActions explains why an extension may not attach actions; empty: it may. Known are
// the commands of all extensions. The kernel may attach the one that decides about them.
func CheckActions(extension string, all []contract.Action, known []command.Slash) string {
	if len(all) > contract.MaxActions {
		return fmt.Sprintf("a message has at most %d actions, not %d", contract.MaxActions, len(all))
	}
	for _, a := range all {
		name, _, ok := command.Parse(a.Command)
		switch {
		case !ok || len(a.Command) > contract.MaxActionCommand || strings.TrimSpace(a.Label) == "":
			return fmt.Sprintf("an action has a label and a command of at most %d bytes such as \"/done 7\", not %q and %q",
				contract.MaxActionCommand, a.Label, a.Command)
		case !slices.ContainsFunc(known, func(c command.Slash) bool {
			return c.Name == name && (c.Extension == extension || extension == contract.KernelSource && name == consentCommand)
		}):
			return fmt.Sprintf("the action /%s is not a command of %s", name, extension)
		}
	}
	return ""
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
