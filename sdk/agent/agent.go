package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/document"
)

// Defaults of settings that the manifest leaves out.
const (
	defaultSteps = 20
	defaultTime  = 10 * time.Minute
	defaultModel = "default"
	defaultCache = 16 << 20
)

// Options are the options of an agent. The zero value works.
type Options struct {
	// Prompts returns the agent's texts when it starts; nil: Plain.
	Prompts func(*sdk.Kernel) (Prompts, error)
	// Documents reads the documents that come with inputs.
	Documents document.Reader
	// CacheBytes bounds the histories cached between turns; 0: 16 MiB.
	CacheBytes int
}

// Agent runs the turns of one agent. It is safe for concurrent use.
type Agent struct {
	options Options

	kernel    kernel
	log       hclog.Logger
	name      string
	zone      *time.Location
	limits    limits
	model     string
	windows   windows
	echoes    bool
	noHistory bool // handles each input as if it were the first
	persona   string
	consults  []string // tools of agent.context
	offers    []string // patterns of the tools that each request describes; none: all
	prompts   Prompts
	histories *histories
	tools     *etagged[*toolset]
	channels  *etagged[[]Channel]
	systems   systemCache
	zones     sync.Map     // of *time.Location by name
	noSummary atomic.Int64 // no summary is requested until then, in Unix nanoseconds
	skipUntil sync.Map     // of time.Time by tool: it is not consulted until then
	slots     slots        // of requests to the model
	// transcripts are of the recordings of all turns.
	transcripts transcripts
	turns       atomic.Int64 // numbers turns that the kernel has not numbered yet
}

type limits struct {
	steps  int
	time   time.Duration
	tokens int // of a request; 0: see room
}

// New returns an agent. Call Start before Handle.
func New(o Options) *Agent { return &Agent{options: o} }

// Extension returns an extension that is only an agent.
func Extension(id string, o Options) sdk.Extension {
	a := New(o)
	return sdk.Extension{ID: id, Start: a.Start, HandleAgent: a.Handle}
}

// Start reads the agent section of the manifest. Assign it to Extension.Start.
func (a *Agent) Start(_ context.Context, k *sdk.Kernel) error {
	spec := k.Agent()
	if spec == nil {
		return fmt.Errorf("start agent %s: the manifest has no agent section: add one", k.ID())
	}
	prompts := Prompts(Plain{})
	if a.options.Prompts != nil {
		p, err := a.options.Prompts(k)
		if err != nil {
			return fmt.Errorf("start agent %s: %w", k.ID(), err)
		}
		prompts = p
	}
	name := k.Name()
	if name == "" {
		name = k.ID()
	}
	a.start(link{Kernel: k, services: k.Services()}, name, spec, prompts, k.Location(), k.Log())
	return nil
}

func (a *Agent) start(
	k kernel, name string, spec *extensionv1.AgentSpec, p Prompts, zone *time.Location, log hclog.Logger,
) {
	a.kernel, a.name, a.prompts, a.zone, a.log = k, name, p, zone, log
	a.model = cmp.Or(spec.GetModel(), defaultModel)
	a.echoes, a.noHistory = spec.GetEcho(), spec.GetNoHistory()
	a.persona, a.consults, a.offers = spec.GetInstructions(), spec.GetContext(), spec.GetOffers()
	a.limits = limits{
		steps:  cmp.Or(int(spec.GetMaxSteps()), defaultSteps),
		time:   cmp.Or(time.Duration(spec.GetTurnTimeoutMs())*time.Millisecond, defaultTime),
		tokens: int(spec.GetMaxTokens()),
	}
	a.slots = newSlots(spec.GetCompletions())
	cache := cmp.Or(a.options.CacheBytes, defaultCache)
	if a.noHistory {
		cache = 0
	}
	a.histories = newHistories(cache, 2*cmp.Or(a.limits.tokens, defaultTokens)*bytesPerToken)
	a.tools = newEtagged(a.loadTools)
	a.channels = newEtagged(a.loadChannels)
}

// Handle runs or resumes the turn of one input until it ends. Assign it to
// Extension.HandleAgent.
func (a *Agent) Handle(ctx context.Context, d sdk.Delivery) (sdk.Effects, error) {
	if d.Turn == nil {
		return nil, sdk.Drop(fmt.Sprintf("event %s is not an input of a session", d.ID))
	}
	var in contract.AgentInput
	if err := d.Decode(&in); err != nil {
		return nil, err
	}
	effects, err := a.handle(ctx, d, in)
	if err != nil && ctx.Err() != nil && !errors.Is(err, contract.ErrStale) {
		// The extension drains, or the kernel has ended the turn: neither is a failure.
		return nil, sdk.Retry(0, fmt.Errorf("turn of session %s: %w", d.Turn.GetSession(), context.Cause(ctx)))
	}
	if errors.Is(err, contract.ErrConflict) {
		// Only the holder of the lane writes to this history. A remaining conflict is a
		// failure, which counts, so that it is not retried forever.
		return nil, errors.New(err.Error())
	}
	return effects, err
}

func (a *Agent) handle(ctx context.Context, d sdk.Delivery, in contract.AgentInput) (sdk.Effects, error) {
	switch {
	case in.Kind == contract.InputRecord && !d.Turn.GetResumed():
		return a.record(d, in), nil
	case a.echoes:
		return a.echo(d, in), nil
	}
	t, err := a.begin(ctx, d, in)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.run()
}
