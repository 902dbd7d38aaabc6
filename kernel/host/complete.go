package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
)

// Complete asks a model: for the agent whose turn is being run, the one that its
// manifest or the input of the turn names; for any other extension, what its manifest names under
// permissions.models. What it took is recorded with who asked, and why.
func (s modelsService) Complete(r *kernelv1.CompleteRequest, stream grpc.ServerStreamingServer[extensionv1.Delta]) error {
	asker, err := s.h.asker(stream.Context(), r)
	if err != nil {
		return err
	}
	request := &extensionv1.CompleteRequest{
		Messages: r.GetMessages(), Tools: r.GetTools(), MaxTokens: r.GetMaxTokens(), Agent: asker.name, Session: asker.session,
		Purpose: r.GetPurpose(),
	}
	order := models.Order{Model: r.GetModel(), Cause: asker.cause(), Request: request}
	return s.h.Models.Complete(stream.Context(), order, stream.Send)
}

// asker is who a completion is for.
type asker struct {
	lease   *bus.Lease // nil: it is asked outside of everything
	name    string     // of the agent, or of the extension
	session string     // whose turn it belongs to; may be empty
}

// cause is the event that a completion follows from; nil if there is none.
func (a asker) cause() *busv1.Event {
	if a.lease == nil {
		return nil
	}
	return a.lease.Event
}

// asker says for whom a completion is, and refuses what no manifest grants. A
// tool that is called in a turn asks in its own extension's name.
func (h *Host) asker(ctx context.Context, r *kernelv1.CompleteRequest) (asker, error) {
	actor := actorOf(ctx)
	a := asker{name: actor.ID}
	if r.GetLane() != "" {
		var err error
		if a.lease, err = h.lease(ctx, r.GetLane()); err != nil {
			return asker{}, err
		}
		if a.lease.Session != 0 {
			a.session = journal.SessionID(a.lease.Session)
		}
	}
	if a.lease != nil && a.lease.Agent == actor.ID && a.lease.Call == 0 {
		agent := h.Directory.Current().Agent(actor.ID)
		switch {
		case agent == nil:
			return asker{}, fmt.Errorf("%w: %q is no agent (any more)", contract.ErrDenied, actor.ID)
		case r.GetModel() == agent.Spec.GetModel():
		case r.GetModel() != modelOf(a.lease.Event):
			return asker{}, fmt.Errorf("%w: the manifest of %q grants the model %q, not %q", contract.ErrDenied, actor.ID, agent.Spec.GetModel(), r.GetModel())
		case !h.knowsModel(r.GetModel()):
			return asker{}, fmt.Errorf("%w: there is no model %q: name it with its extension, as openai/%[2]s", contract.ErrInvalid, r.GetModel())
		}
		return a, bounded(a.lease, agent)
	}
	if !slices.Contains(actor.Models, r.GetModel()) {
		return asker{}, fmt.Errorf("%w: the manifest of %q lacks \"permissions: {models: [%s]}\"", contract.ErrDenied, actor.ID, r.GetModel())
	}
	return a, nil
}

// spare is how many completions beyond two for each step a turn may take: for
// answers that were empty, too long a history, a provider that died.
const spare = 16

// bounded refuses what a turn cannot need: a run loop that goes on without end
// is stopped here.
func bounded(l *bus.Lease, agent *directory.Agent) error {
	steps := cmp.Or(int64(agent.Spec.GetMaxSteps()), defaultSteps)
	if n := l.Asks(); n > 2*steps+spare {
		return fmt.Errorf("%w: this turn has asked a model %d times, and agent.limits.max_steps in the manifest of %q allows %d steps",
			contract.ErrInvalid, n-1, agent.ID, steps)
	}
	return nil
}

// defaultSteps is that of the run loop.
const defaultSteps = 20

// modelOf is the model that an input names for its turn. Only who may make
// inputs can have it do so.
func modelOf(input *busv1.Event) string {
	var in contract.AgentInput
	if json.Unmarshal(input.GetPayload(), &in) != nil {
		return ""
	}
	model, _ := in.Meta[contract.MetaModel].(string)
	return model
}

// knowsModel reports whether a name is one of the configuration, or a whole one.
func (h *Host) knowsModel(name string) bool {
	_, named := h.Directory.Current().ModelNames[name]
	return named || name == "default" || strings.Contains(name, "/")
}
