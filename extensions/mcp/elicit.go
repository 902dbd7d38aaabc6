package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// elicitLife is how long a question of a server waits: a call takes at most ten minutes.
	elicitLife = 9 * time.Minute
	// maxFields is how many values a server may ask for at once.
	maxFields = 8

	elicitRef = "elicit "
)

// answers hands the answers of people to the questions that wait.
type answers struct {
	mu      sync.Mutex
	waiting map[string]chan contract.UserAnswer // by reference
}

func (a *answers) expect(ref string) <-chan contract.UserAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]chan contract.UserAnswer{}
	}
	a.waiting[ref] = make(chan contract.UserAnswer, 1)
	return a.waiting[ref]
}

// give hands an answer to its question, if that waits.
func (a *answers) give(answer contract.UserAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.waiting[answer.Ref]
	delete(a.waiting, answer.Ref)
	if c != nil {
		c <- answer
	}
}

// elicit asks the person whose call it is on behalf of a server. A server that asks while no
// call runs, or while calls of several conversations do, gets no answer.
func (s *server) elicit(ctx context.Context, x *session, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	to, ok := x.calls.only()
	if !ok || p == nil {
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	defer x.calls.hold(s.e.callTimeout)()
	message := cut(strings.Map(words.Printable, p.Message), 500)
	if p.Mode == "url" || p.URL != "" {
		text := words.Sprintf("The MCP server %s asks you to open this address: %s", s.Name, cut(p.URL, 500)) +
			"\n\n> " + message
		notice := contract.UserNotify{Text: text, ReplyTo: to.replyTo, Translate: true}
		_, err := s.e.k.Commit(ctx, sdk.Publish(contract.TopicUserNotify, notice))
		return &mcp.ElicitResult{Action: "accept"}, err
	}
	fields, err := fieldsOf(p.RequestedSchema)
	if err != nil {
		return &mcp.ElicitResult{Action: "decline"}, nil //nolint:nilerr // the server gets an answer
	}
	asks := words.Sprintf("The MCP server %s asks:", s.Name) + "\n\n> " + message
	content := map[string]any{}
	for i, f := range fields {
		text := asks
		if i > 0 {
			text = words.Sprintf("The MCP server %s also asks:", s.Name)
		}
		answer, action := s.askFor(ctx, to, text, f)
		if action != "accept" {
			return &mcp.ElicitResult{Action: action}, nil
		}
		if answer != nil {
			content[f.name] = answer
		}
	}
	if len(fields) == 0 {
		confirm := field{name: "ok", kind: "boolean"}
		answer, action := s.askFor(ctx, to, asks, confirm)
		if action == "accept" && answer != true {
			action = "decline"
		}
		return &mcp.ElicitResult{Action: action}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// field is a value that a server asks for.
type field struct {
	name, title, kind string
	options, titles   []string
	required, several bool
	// fallback is the value that the server proposes; nil: none.
	fallback any
}

// fieldsOf returns the fields of a form.
func fieldsOf(schema any) (all []field, err error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	type choice struct{ Const, Title string }
	var form struct {
		Properties map[string]struct {
			Type, Title, Description string
			Enum, EnumNames          []string
			Default                  any
			OneOf                    []choice
			Items                    struct {
				Enum  []string
				AnyOf []choice
			}
		}
		Required []string
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, err
	}
	if len(form.Properties) > maxFields {
		return nil, errors.New("the form has too many fields")
	}
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		p := form.Properties[name]
		f := field{name: name, kind: p.Type, options: p.Enum, titles: p.EnumNames}
		f.required, f.fallback = slices.Contains(form.Required, name), p.Default
		for _, c := range slices.Concat(p.OneOf, p.Items.AnyOf) {
			f.options, f.titles = append(f.options, c.Const), append(f.titles, c.Title)
		}
		if p.Type == "array" {
			f.options, f.several = append(f.options, p.Items.Enum...), true
		}
		title := strings.Trim(name+": "+strings.TrimSpace(p.Title+" "+p.Description), ": ")
		f.title = cut(strings.Map(words.Printable, title), 200)
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b field) int { // what is required comes first
		if a.required == b.required {
			return 0
		}
		if a.required {
			return -1
		}
		return 1
	})
	return all, nil
}

// Words that people answer with.
var (
	wordCancel = words.Sprintf("Cancel")
	wordSkip   = words.Sprintf("Skip")
	wordYes    = words.Sprintf("Yes")
	wordNo     = words.Sprintf("No")
)

const maxChoices = 18 // of the options of a question, without cancel and skip

// askFor asks for one field, again after an answer that does not fit. A nil answer leaves it
// out.
func (s *server) askFor(ctx context.Context, to place, text string, f field) (answer any, action string) {
	problem := ""
	for range 5 {
		lines := []string{text, f.title}
		if problem != "" {
			lines = append(lines, problem)
		}
		q := contract.UserAsk{
			Kind: contract.AskAnswer, ReplyTo: to.replyTo, Topic: topicAnswered, Translate: true,
			ExpiresSeconds: int64(elicitLife / time.Second), Ref: elicitRef + rand.Text(),
		}
		switch {
		case f.kind == "boolean":
			q.Kind, q.Options = contract.AskChoose, []string{wordYes, wordNo, wordCancel}
		case len(f.options) > 0 && len(f.options) <= maxChoices && !f.several:
			q.Kind, q.Options = contract.AskChoose, append(f.shown(), wordCancel)
		default:
			if len(f.options) > 0 {
				lines = append(lines, words.Sprintf("One of: %s", strings.Join(f.options, ", ")))
			}
			lines = append(lines, words.Sprintf("Write “cancel” to refuse."))
		}
		if !f.required && q.Kind == contract.AskChoose {
			q.Options = append(q.Options, wordSkip)
		} else if !f.required {
			lines = append(lines, words.Sprintf("Write “skip” to leave it out."))
		}
		if !f.required && f.fallback != nil {
			lines = append(lines, words.Sprintf("If you skip it, it is: %s",
				cut(strings.Map(words.Printable, fmt.Sprint(f.fallback)), 100)))
		}
		q.Text = strings.TrimSpace(strings.Join(lines, "\n"))
		given, ok := s.e.askPerson(ctx, q)
		switch {
		case !ok:
			return nil, "cancel"
		case words.Means(given, wordCancel):
			return nil, "decline"
		case words.Means(given, wordSkip) && !f.required:
			return f.fallback, "accept"
		}
		if answer, problem = f.value(given); problem == "" {
			return answer, "accept"
		}
	}
	return nil, "cancel"
}

// shown are the options as people see them.
func (f field) shown() (all []string) {
	for i, o := range f.options {
		if i < len(f.titles) && f.titles[i] != "" {
			o = f.titles[i]
		}
		all = append(all, cut(strings.Map(words.Printable, o), 60))
	}
	return all
}

// value is the answer as the form wants it, or why it does not fit.
func (f field) value(given string) (answer any, problem string) {
	given = strings.TrimSpace(given)
	switch {
	case f.kind == "boolean":
		return words.Means(given, wordYes), ""
	case f.several:
		var all []string
		for part := range strings.SplitSeq(given, ",") {
			part = strings.TrimSpace(part)
			if len(f.options) > 0 && !slices.Contains(f.options, part) {
				return nil, words.Sprintf("%q is none of them.", part)
			}
			all = append(all, part)
		}
		return all, ""
	case len(f.options) > 0:
		if i := slices.IndexFunc(f.shown(), func(o string) bool { return words.Means(given, o) }); i >= 0 {
			return f.options[i], ""
		}
		if slices.Contains(f.options, given) {
			return given, ""
		}
		return nil, words.Sprintf("%q is none of them.", given)
	case f.kind == "integer":
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil {
			return nil, words.Sprintf("%q is no whole number.", given)
		}
		return n, ""
	case f.kind == "number":
		n, err := strconv.ParseFloat(given, 64)
		if err != nil {
			return nil, words.Sprintf("%q is no number.", given)
		}
		return n, ""
	}
	return given, ""
}

// askPerson asks a question and waits for the answer; false: there is none. A question that
// is not needed any more is withdrawn.
func (e *extension) askPerson(ctx context.Context, q contract.UserAsk) (answer string, ok bool) {
	answered := e.answers.expect(q.Ref)
	if _, err := e.k.Commit(ctx, sdk.Publish(contract.TopicUserAsk, q, sdk.Dedupe(q.Ref))); err != nil {
		e.answers.give(contract.UserAnswer{Ref: q.Ref})
		return "", false
	}
	select {
	case a := <-answered:
		return a.Answer, a.Outcome == contract.AskAnswered
	case <-ctx.Done():
	}
	e.answers.give(contract.UserAnswer{Ref: q.Ref})
	withdraw, cancel := context.WithTimeout(e.background, stopGrace)
	defer cancel()
	if _, err := e.k.Commit(withdraw, sdk.Withdraw(q.Ref)); err != nil {
		e.log.Debug("withdraw a question of an MCP server", "error", err)
	}
	return "", false
}
