package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract"
)

// Answer is what an extension says to who gave the command that it handles. It
// is sent where the command was given, in the commit that acknowledges the
// command; anywhere else it is refused. Extensions need it only in Handle: a
// tool with a Command answers with its result.
func Answer(text string) Effect { return Effect{answer: &text} }

// command is a slash command that a tool of the extension runs.
type command struct {
	name string
	tool *Tool
	form *form
}

// newCommand prepares the command of a tool.
func newCommand(t *Tool, schema json.RawMessage) (*command, error) {
	f, err := newForm(schema)
	if err != nil {
		return nil, fmt.Errorf("the Schema of tool %s: %w", t.Name, err)
	}
	return &command{name: t.Command, tool: t, form: f}, nil
}

// command runs a tool for a person who gave its command. Whatever goes wrong in
// it is the answer.
func (l *life) command(ctx context.Context, c *command, d Delivery) (Effects, error) {
	var given contract.Command
	if err := d.Decode(&given); err != nil {
		return nil, err
	}
	repeatable := c.tool.ReadOnly || c.tool.Idempotent
	if d.Uncertain && !repeatable {
		return Effects{Answer(fmt.Sprintf("/%s was interrupted while it ran, so I do not know whether it had its effect. "+
			"Look first, and give it again if it had not.", c.name))}, nil
	}
	arguments, err := c.arguments(given.Text)
	if err != nil {
		return Effects{Answer(err.Error())}, nil //nolint:nilerr // it is for who gave the command
	}
	result, err := l.run(ctx, c.tool, ToolCall{
		ID: d.ID, Name: c.tool.Name, Arguments: arguments, Session: given.Session, Agent: given.Agent, ReplyTo: given.ReplyTo,
		Channel: given.Channel, Group: given.Group, Sender: given.Sender, Memory: given.Memory, Location: l.kernel.Location(),
		Repeat: d.Uncertain || d.Attempt > 1,
	})
	if err == nil {
		return append(Effects{Answer(c.say(result))}, result.Effects...), nil
	}
	var control *outcomeError
	switch stopped := errors.Is(interrupted(ctx, err), errShutdown); {
	case stopped && !repeatable:
		return nil, Unknown(err)
	case stopped, errors.Is(err, contract.ErrConflict), errors.Is(err, contract.ErrStale),
		errors.As(err, &control) && control.kind == outcomeRetry:
		return nil, err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return Effects{Answer(fmt.Sprintf("/%s took too long and was stopped.", c.name))}, nil
	}
	return Effects{Answer(sentence(err.Error()))}, nil
}

// arguments are the tool's arguments as the text behind the command's name
// gives them. An error is for people.
func (c *command) arguments(text string) (json.RawMessage, error) {
	if c.tool.Parse == nil {
		return c.form.parse(c.name, text)
	}
	raw, err := c.tool.Parse(text)
	if err != nil {
		return nil, errors.New(sentence(err.Error()))
	}
	return raw, c.form.check(c.name, raw)
}

// say is a result for people.
func (c *command) say(r ToolResult) string {
	text := r.Content
	switch {
	case r.IsError:
	case c.tool.Say != nil:
		text = c.tool.Say(r.Content)
	default:
		text = prose(r.Content)
	}
	if text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")); text == "" {
		return "Done."
	}
	return text
}

// prose is content that was written for a model, as people can read it: the text
// of a JSON string, the field text of an object, or the JSON set off.
func prose(content string) string {
	trimmed := strings.TrimSpace(content)
	if trimmed == "" || !strings.ContainsRune(`"{[`, rune(trimmed[0])) {
		return content
	}
	var s string
	if json.Unmarshal([]byte(trimmed), &s) == nil {
		return s
	}
	var object struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal([]byte(trimmed), &object) == nil && object.Text != nil {
		return *object.Text
	}
	var value any
	if json.Unmarshal([]byte(trimmed), &value) != nil {
		return content
	}
	pretty, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return content
	}
	return "```json\n" + string(pretty) + "\n```"
}

// sentence begins an error's text as a sentence does.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return "That did not work."
	}
	if s = string(unicode.ToUpper(first)) + s[size:]; !strings.ContainsAny(s[len(s)-1:], ".!?:`") {
		s += "."
	}
	return s
}
