package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Complete asks a model: for an agent during its turn, the model of its manifest or of
// the input; for another extension, one that its manifest names under
// permissions.models. The cost is recorded with the caller and the purpose.
func (s modelsService) Complete(r *kernelv1.CompleteRequest, stream grpc.ServerStreamingServer[extensionv1.Delta],
) error {
	order, err := s.h.order(stream.Context(), r)
	if err != nil {
		return err
	}
	return s.h.Models.Complete(stream.Context(), order, stream.Send)
}

// order is the order of a completion; without a grant it is refused. A tool that is
// called in a turn orders in the name of its own extension.
func (h *Host) order(ctx context.Context, r *kernelv1.CompleteRequest) (models.Order, error) {
	id, model := actorOf(ctx).ID, r.GetModel()
	o := models.Order{Model: model, Request: &extensionv1.CompleteRequest{
		Messages: r.GetMessages(), Tools: r.GetTools(), MaxTokens: r.GetMaxTokens(), Agent: id, Purpose: r.GetPurpose(),
		Recording: r.GetRecording(),
	}}
	var l *bus.Lease
	if r.GetLane() != "" {
		var err error
		if l, err = h.lease(ctx, r.GetLane()); err != nil {
			return o, err
		}
		o.Cause = l.Event
		if l.Session != 0 {
			o.Request.Session = journal.SessionID(l.Session)
			o.Person = cmp.Or(session.InputOf(l.Event).Person, people.Owner)
		}
	}
	if l == nil || l.Agent != id || l.Call != 0 {
		if !slices.Contains(actorOf(ctx).Models, model) {
			return o, fmt.Errorf("%w: the manifest of %q lacks \"permissions: {models: [%s]}\"", contract.ErrDenied, id, model)
		}
		return o, nil
	}
	agent := h.Directory.Current().Agent(id)
	switch {
	case agent == nil:
		return o, fmt.Errorf("%w: %q is not an agent", contract.ErrDenied, id)
	case model == contract.ModelTranscribe && h.knowsModel(model):
		return o, nil // a turn has as many recordings as messages
	case model == agent.Spec.GetModel():
	case model != session.InputOf(l.Event).Meta[contract.MetaModel]: // only who may queue inputs can set it
		return o, fmt.Errorf("%w: the manifest of %q grants the model %q, not %q",
			contract.ErrDenied, id, agent.Spec.GetModel(), model)
	case !h.knowsModel(model):
		return o, fmt.Errorf("%w: there is no model %q: name it with its extension, as openai/%[2]s",
			contract.ErrInvalid, model)
	}
	return o, bounded(l, agent)
}

// spare is how many completions beyond two for each step a turn may order: after
// empty answers, with too long a history, or after the death of a provider.
const spare = 16

// bounded refuses more completions than a turn can need, so that an endless run loop
// ends.
func bounded(l *bus.Lease, agent *directory.Agent) error {
	steps := cmp.Or(int64(agent.Spec.GetMaxSteps()), defaultSteps)
	if n := l.Asks(); n > 2*steps+spare {
		return fmt.Errorf("%w: this turn has asked a model %d times, "+
			"and agent.limits.max_steps in the manifest of %q allows %d steps", contract.ErrInvalid, n-1, agent.ID, steps)
	}
	return nil
}

// defaultSteps is the default of the run loop.
const defaultSteps = 20

// knowsModel reports whether a name is one of the configuration, or a whole one.
func (h *Host) knowsModel(name string) bool {
	_, named := h.Directory.Current().ModelNames[name]
	return named || name == "default" || strings.Contains(name, "/")
}
