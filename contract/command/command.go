// Package command runs slash commands, with which a person calls a tool. It parses the
// person's text into arguments, by the tool's schema, and turns the tool's result into
// an answer. The kernel uses it, so commands behave the same for extensions in every
// language.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Tool is the tool that a command calls.
type Tool struct {
	*extensionv1.Tool
	Schema func() *schema.Schema // of its arguments; nil: none
}

// ErrTimeout is the cause of a context that ends because a command took too long.
var ErrTimeout = errors.New("the command took too long")

// conflictPause keeps commands that race for one key from spinning.
const conflictPause = 20 * time.Millisecond

// Run runs a delivered command; call calls the tool. It returns the outcome of the
// delivery, and the answer to the person.
func Run(
	ctx context.Context, d *busv1.Delivery, t *Tool, timezone string,
	call func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error),
) (o *busv1.Outcome, answer string) {
	o = &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK}
	var given contract.Command
	if err := json.Unmarshal(d.GetEvent().GetPayload(), &given); err != nil {
		o.Kind, o.Reason = busv1.Outcome_KIND_DROP, fmt.Sprintf("read the command: %v", err)
		return o, ""
	}
	repeatable := t.GetReadOnly() || t.GetIdempotent()
	if d.GetUncertain() && !repeatable {
		return o, words.Say(given.Language, "/%s was interrupted, so I don't know whether it took effect. "+
			"Check, and send it again if it didn't.", given.Name)
	}
	if given.Group && given.Principal.Group == "" { // queued by an earlier version
		given.Principal.Confined = true
	}
	arguments, err := t.arguments(&given)
	if err != nil {
		return o, err.Error()
	}
	result, err := call(ctx, &extensionv1.CallRequest{
		CallId: d.GetEvent().GetId(), Name: t.GetName(), Arguments: arguments, Lane: d.GetToken(),
		Session: given.Session, Agent: given.Agent, ReplyTo: given.ReplyTo, Channel: given.Channel,
		Timezone: cmp.Or(given.Timezone, timezone), Sender: given.Sender, Group: given.Group, Memory: given.Memory,
		Repeat: d.GetUncertain() || d.GetAttempt() > 1, Command: given.Name,
		Person: given.Principal.Person, Principal: given.Caller().Proto(), Language: given.Language,
	})
	switch {
	case err == nil:
		o.Effects = result.GetEffects()
		return o, answerOf(result, given.Language)
	case errors.Is(context.Cause(ctx), ErrTimeout):
		return o, words.Say(given.Language, "/%s took too long and was stopped.", given.Name)
	case errors.Is(err, contract.ErrUnavailable), errors.Is(err, contract.ErrConflict),
		errors.Is(err, contract.ErrStale):
		o.Kind, o.RetryAfterMs = busv1.Outcome_KIND_RETRY, conflictPause.Milliseconds()
	case gone(err):
		o.Kind = busv1.Outcome_KIND_UNKNOWN
	default:
		return o, sentence(err.Error(), given.Language)
	}
	o.Reason = err.Error()
	return o, ""
}

func gone(err error) bool {
	return errors.Is(err, contract.ErrGone) || errors.Is(err, context.Canceled)
}

// arguments parses the text after the command into arguments. An error is written for
// the person.
func (t *Tool) arguments(c *contract.Command) (json.RawMessage, error) {
	var s *schema.Schema
	if t.Schema != nil {
		s = t.Schema()
	}
	f := newForm(c.Name, t.GetSchema(), s)
	f.language = c.Language
	return f.parse(c.Text)
}
