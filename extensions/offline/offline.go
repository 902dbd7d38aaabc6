// Package offline serves the model offline/grammar, which answers when no
// language model is configured. It is no language model: it understands the
// sentences of package grammar, English and Russian, and says so.
//
// It works as every model does, through the tools it is offered: it asks for
// list_channels to find the channel that was named, then for send_to_channel,
// schedule_once, schedule_recurring, list_schedules or cancel_schedule, or for
// remember, recall, list_memories or forget, and puts its final words together
// from what these have answered. What a tool refuses is told as it is. It never
// claims what no tool has confirmed, and never acts on a sentence that it
// understood in part.
//
// An answer follows from the request alone; nothing is kept between two. The
// time and the zone are those of the newest line "Current time: <RFC 3339>
// (<weekday>, <zone>)" that a message tells, else of the system prompt, else those
// of the machine.
package offline

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id, Model its one model.
const (
	ID    = "offline"
	Model = "grammar"
)

// New is the extension, ready to be served.
func New() sdk.Extension {
	return sdk.Extension{ID: ID, Models: model{now: time.Now}}
}

type model struct{ now func() time.Time }

// Complete answers with the calls to make next, or with the final text.
func (m model) Complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	switch r.GetModel() {
	case "", "default", Model:
	default:
		return fmt.Errorf("there is no model %s/%s, only %s/%s: %w", ID, r.GetModel(), ID, Model, contract.ErrNotFound)
	}
	if p := r.GetPurpose(); p != "" {
		return fmt.Errorf("the offline model only answers people, it makes no %s: %w", p, contract.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	a := answerAll(readDialog(r, m.now()))
	name := ID + "/" + Model
	for i, c := range a.calls {
		call := &busv1.Call{ProviderId: "offline_" + strconv.Itoa(i), Name: c.tool, Arguments: c.arguments}
		if err := emit(&sdk.Delta{Call: call, Model: name}); err != nil {
			return err
		}
	}
	if len(a.calls) > 0 {
		return emit(&sdk.Delta{Finish: "tool_calls"})
	}
	if err := emit(&sdk.Delta{Text: a.text, Model: name}); err != nil {
		return err
	}
	return emit(&sdk.Delta{Finish: "stop"})
}
