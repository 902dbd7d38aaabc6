package modelapi

import (
	"bytes"
	"strings"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// The limits of one answer.
const (
	maxText      = 4 << 20
	maxArguments = 1 << 20
)

// Answer assembles one answer from the events of a stream.
type Answer struct {
	emit     func(*sdk.Delta) error
	emitErr  error // that ended the answer; not the server's
	model    string
	window   int64 // of the model; 0: not known
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
	index     int
	id, name  string
	arguments []byte
}

// Finish reasons of the contract.
const (
	FinishStop    = "stop"
	FinishLength  = "length"
	FinishCalls   = "tool_calls"
	FinishRefusal = "refusal"
)

// Say passes on a piece of text at once.
func (a *Answer) Say(text string) error {
	if text == "" {
		return nil
	}
	if a.text += len(text); a.text > maxText {
		return words.Errorf("%w: text is longer than %d bytes", errInvalid, maxText)
	}
	return a.pass(&sdk.Delta{Text: text})
}

// Used records the token counts; the last ones count.
func (a *Answer) Used(u *sdk.Usage) { a.usage = u }

// Usage returns the recorded token counts; nil: there are none.
func (a *Answer) Usage() *sdk.Usage { return a.usage }

// Finish records the finish reason. FinishStop means FinishCalls if there are calls.
func (a *Answer) Finish(reason string) { a.finish = reason }

// Refuse records that the model refuses to answer, before its finish reason.
func (a *Answer) Refuse() { a.refused = true }

func (a *Answer) pass(d *sdk.Delta) error {
	if !a.started {
		a.started = true
		d.Model, d.Context = a.model, a.window
	}
	a.emitErr = a.emit(d)
	return a.emitErr
}

// Call adds a fragment of the call with the index; -1: the server sends none. Some send
// the same for all calls: then a new id starts a new call.
func (a *Answer) Call(index int, id, name, arguments string) error {
	var c *call
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].index == index {
			c = &a.calls[i]
			break
		}
	}
	if c == nil || (id != "" && c.id != "" && id != c.id) {
		if len(a.calls) >= a.maxCalls {
			return words.Errorf("%w: more than %d calls", errInvalid, a.maxCalls)
		}
		a.calls = append(a.calls, call{index: index})
		c = &a.calls[len(a.calls)-1]
	}
	if id != "" {
		c.id = id
	}
	if c.name == "" {
		c.name = name
	}
	if a.arguments += len(arguments); a.arguments > maxArguments {
		return words.Errorf("%w: arguments of calls are longer than %d bytes", errInvalid, maxArguments)
	}
	c.arguments = append(c.arguments, arguments...)
	return nil
}

// end finishes the answer. Without a finish reason it was cut off, and its calls
// are not passed on.
func (a *Answer) end() error {
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
	switch {
	case a.refused:
		a.finish = FinishRefusal
	case a.finish == FinishStop && len(a.calls) > 0:
		a.finish = FinishCalls
	}
	return a.pass(&sdk.Delta{Usage: a.usage, Finish: a.finish})
}

// spent passes on the token counts of a failed answer, if the server sent them.
func (a *Answer) spent() error {
	if !a.started || a.usage == nil {
		return nil
	}
	return a.emit(&sdk.Delta{Usage: a.usage})
}

// Errors of an answer.
var (
	errInvalid = words.Errorf("invalid answer")
	errCutOff  = words.Errorf("the answer was cut off")
	errNoSSE   = words.Errorf("the answer is not an event stream")
)

// checkContentType refuses an answer that is not an event stream, such as the
// page of a proxy.
func checkContentType(t string) error {
	for _, wrong := range []string{"text/html", "application/json", "application/xml", "text/xml", "image/"} {
		if strings.HasPrefix(t, wrong) {
			return words.Errorf("%w, but its type is %s", errNoSSE, t)
		}
	}
	return nil
}
