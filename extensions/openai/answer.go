package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

var errEOF = io.EOF

// The limits of one answer.
const (
	maxText      = 4 << 20
	maxArguments = 1 << 20
)

// emitError is an error of emit, not of the server.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// answer assembles one answer from the chunks of a stream.
type answer struct {
	emit     func(*sdk.Delta) error
	model    string
	maxCalls int

	started   bool
	text      int // bytes so far
	arguments int
	calls     []call
	finish    string
	refused   bool
	usage     *sdk.Usage
}

type call struct {
	index     int // from the server; -1 if it sends none
	id, name  string
	arguments []byte
}

// add adds one chunk. It passes on text at once, and collects calls.
func (a *answer) add(chunk *api.ChatCompletionStreamResponse) error {
	if u := chunk.Usage; u != nil {
		a.usage = &sdk.Usage{InputTokens: int64(u.PromptTokens), OutputTokens: int64(u.CompletionTokens)}
		if d := u.PromptTokensDetails; d != nil {
			a.usage.CachedTokens = int64(d.CachedTokens)
		}
	}
	for i := range chunk.Choices {
		c := &chunk.Choices[i]
		if c.Index != 0 {
			continue // only one choice was requested
		}
		text := c.Delta.Content
		if c.Delta.Refusal != "" {
			text += c.Delta.Refusal
			a.refused = true
		}
		if err := a.say(text); err != nil {
			return err
		}
		for k := range c.Delta.ToolCalls {
			if err := a.call(&c.Delta.ToolCalls[k]); err != nil {
				return err
			}
		}
		if f := c.Delta.FunctionCall; f != nil {
			zero := 0
			if err := a.call(&api.ToolCall{Index: &zero, Function: *f}); err != nil {
				return err
			}
		}
		if c.FinishReason != "" && c.FinishReason != api.FinishReasonNull {
			a.finish = string(c.FinishReason)
		}
	}
	return nil
}

func (a *answer) say(text string) error {
	if text == "" {
		return nil
	}
	if a.text += len(text); a.text > maxText {
		return fmt.Errorf("%w: text is longer than %d bytes", errInvalid, maxText)
	}
	return a.pass(&sdk.Delta{Text: text})
}

func (a *answer) pass(d *sdk.Delta) error {
	if !a.started {
		a.started = true
		d.Model = a.model
	}
	if err := a.emit(d); err != nil {
		return &emitError{err}
	}
	return nil
}

// call adds a fragment of a call. Some servers send no index, or the same for all
// calls: then a new id starts a new call.
func (a *answer) call(t *api.ToolCall) error {
	index := -1
	if t.Index != nil {
		index = *t.Index
	}
	var c *call
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].index == index {
			c = &a.calls[i]
			break
		}
	}
	if c == nil || (t.ID != "" && c.id != "" && t.ID != c.id) {
		if len(a.calls) >= a.maxCalls {
			return fmt.Errorf("%w: more than %d calls", errInvalid, a.maxCalls)
		}
		a.calls = append(a.calls, call{index: index})
		c = &a.calls[len(a.calls)-1]
	}
	if t.ID != "" {
		c.id = t.ID
	}
	if c.name == "" {
		c.name = t.Function.Name
	}
	if a.arguments += len(t.Function.Arguments); a.arguments > maxArguments {
		return fmt.Errorf("%w: arguments of calls are longer than %d bytes", errInvalid, maxArguments)
	}
	c.arguments = append(c.arguments, t.Function.Arguments...)
	return nil
}

// end finishes the answer. Without a finish reason it was cut off, and its calls
// are not passed on.
func (a *answer) end() error {
	if a.finish == "" {
		return errCutOff
	}
	for i := range a.calls {
		c := &a.calls[i]
		if len(bytes.TrimSpace(c.arguments)) == 0 {
			c.arguments = []byte("{}")
		}
		call := &busv1.Call{ProviderId: c.id, Name: c.name, Arguments: c.arguments}
		if err := a.pass(&sdk.Delta{Call: call}); err != nil {
			return err
		}
	}
	return a.pass(&sdk.Delta{Usage: a.usage, Finish: a.reason()})
}

// spent passes on the token counts of a failed answer, if the server sent them.
func (a *answer) spent() error {
	if !a.started || a.usage == nil {
		return nil
	}
	return a.emit(&sdk.Delta{Usage: a.usage})
}

// reason returns the contract's finish reason.
func (a *answer) reason() string {
	switch {
	case a.refused || a.finish == string(api.FinishReasonContentFilter):
		return "refusal"
	case a.finish == string(api.FinishReasonLength):
		return "length"
	case len(a.calls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

// Errors of an answer.
var (
	errInvalid = errors.New("invalid answer")
	errCutOff  = errors.New("the answer was cut off")
	errNoSSE   = errors.New("the answer is not an event stream")
)

// checkContentType refuses an answer that is not an event stream, such as the
// page of a proxy.
func checkContentType(t string) error {
	for _, wrong := range []string{"text/html", "application/json", "application/xml", "text/xml", "image/"} {
		if strings.HasPrefix(t, wrong) {
			return fmt.Errorf("%w but %s", errNoSSE, t)
		}
	}
	return nil
}
