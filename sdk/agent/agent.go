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
)

// Defaults of an agent whose manifest does not say.
const (
	defaultSteps  = 20
	defaultTime   = 10 * time.Minute
	defaultTokens = 50_000
	defaultModel  = "default"
	defaultCache  = 16 << 20

	// bytesPerToken is the rule of thumb for the size of a request.
	bytesPerToken = 4
)

// Options refine an agent. The zero value works.
type Options struct {
	// Prompts opens the texts of the agent when it starts; nil: plain ones.
	Prompts func(*sdk.Kernel) (Prompts, error)
	// CacheBytes bounds the histories that are kept in memory between turns;
	// 0: 16 MiB.
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
	echoes    bool
	forgets   bool // hears each input as if it were the first
	persona   string
	consults  []string // tools of agent.context
	offers    []string // patterns of the tools that each request describes; none: all
	prompts   Prompts
	histories *histories
	tools     *etagged[*toolset]
	channels  *etagged[[]Channel]
	composed  composed
	zones     sync.Map     // of *time.Location by name
	unsummed  atomic.Int64 // Unix nanoseconds until which no summary is asked for
	silent    sync.Map     // of time.Time by tool: until then it is not consulted
	places    places       // of requests to the model
	turns     atomic.Int64 // numbers turns that the kernel has not numbered yet
}

type limits struct {
	steps int
	time  time.Duration
	bytes int // of a request
}

// New returns an agent. Call Start before Handle.
func New(o Options) *Agent { return &Agent{options: o} }

// Extension is an extension that is this agent and nothing else.
func Extension(id string, o Options) sdk.Extension {
	a := New(o)
	return sdk.Extension{ID: id, Start: a.Start, HandleAgent: a.Handle}
}

// Start reads the agent section of the manifest. Assign it in Extension.Start.
func (a *Agent) Start(_ context.Context, k *sdk.Kernel) error {
	spec := k.Agent()
	if spec == nil {
		return fmt.Errorf("start agent %s: its manifest has no agent section: add one", k.ID())
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

func (a *Agent) start(k kernel, name string, spec *extensionv1.AgentSpec, p Prompts, zone *time.Location, log hclog.Logger) {
	a.kernel, a.name, a.prompts, a.zone, a.log = k, name, p, zone, log
	a.model = cmp.Or(spec.GetModel(), defaultModel)
	a.echoes, a.forgets = spec.GetEcho(), spec.GetNoHistory()
	a.persona, a.consults, a.offers = spec.GetInstructions(), spec.GetContext(), spec.GetOffers()
	a.limits = limits{
		steps: cmp.Or(int(spec.GetMaxSteps()), defaultSteps),
		time:  cmp.Or(time.Duration(spec.GetTurnTimeoutMs())*time.Millisecond, defaultTime),
		bytes: cmp.Or(int(spec.GetMaxTokens()), defaultTokens) * bytesPerToken,
	}
	a.places = newPlaces(spec.GetCompletions())
	cache := cmp.Or(a.options.CacheBytes, defaultCache)
	if a.forgets {
		cache = 0
	}
	a.histories = newHistories(cache, 2*a.limits.bytes)
	a.tools = newEtagged(a.loadTools)
	a.channels = newEtagged(a.loadChannels)
}

// Handle runs or resumes the turn of one input, to its end. Assign it in
// Extension.HandleAgent.
func (a *Agent) Handle(ctx context.Context, d sdk.Delivery) (sdk.Effects, error) {
	if d.Turn == nil {
		return nil, sdk.Drop(fmt.Sprintf("event %s is no input of a session", d.ID))
	}
	var in contract.AgentInput
	if err := d.Decode(&in); err != nil {
		return nil, err
	}
	effects, err := a.handle(ctx, d, in)
	if err != nil && ctx.Err() != nil && !errors.Is(err, contract.ErrStale) {
		// Draining, or the kernel has ended the turn: neither is a failure.
		return nil, sdk.Retry(0, fmt.Errorf("turn of session %s: %w", d.Turn.GetSession(), context.Cause(ctx)))
	}
	if errors.Is(err, contract.ErrConflict) {
		// Only the holder of the lane writes to this history: a conflict that remains
		// is a failure, which counts, not a reason to retry forever.
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
