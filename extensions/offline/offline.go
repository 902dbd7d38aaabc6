// Package offline serves the model offline/grammar, which answers when no
// language model is configured. It understands only the English and Russian
// sentences of package grammar, and says so.
//
// Like every model, it acts through tools: it calls list_channels to find a
// channel by its name, then send_to_channel, schedule_once, schedule_recurring,
// list_schedules, update_schedule, cancel_schedule, remember, recall, list_memories or
// forget, and answers with their results. It passes on the error of a tool. It never
// reports an action that no tool has confirmed, and never acts on a sentence
// that it understood only partly.
//
// An answer follows from the request alone; nothing is kept between two. What "it",
// "the second one", "no, at 7" and "undo" refer to is in the earlier turns of the
// request. What it did not understand is marked as an aside, which stays out of the
// history that other models read later. The
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

// ID is the id of the extension, Model that of its only model.
const (
	ID    = "offline"
	Model = "grammar"
)

// New returns the extension.
func New() sdk.Extension {
	return sdk.Extension{ID: ID, Models: model{now: time.Now}}
}

type model struct{ now func() time.Time }

// Complete answers with the next tool calls, or with the final text.
func (m model) Complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	switch r.GetModel() {
	case "", "default", Model:
	default:
		return fmt.Errorf("model %s/%s: only %s/%s exists: %w", ID, r.GetModel(), ID, Model, contract.ErrNotFound)
	}
	if p := r.GetPurpose(); p != "" {
		return fmt.Errorf("model %s/%s: cannot be used for purpose %q, it only answers people: %w",
			ID, Model, p, contract.ErrInvalid)
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
	finish := "stop"
	if a.aside {
		finish = contract.FinishAside
	}
	return emit(&sdk.Delta{Finish: finish})
}
