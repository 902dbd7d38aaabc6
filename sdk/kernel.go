package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Kernel is the extension's side of the kernel's services. It is safe for
// concurrent use. A ctx that a handler was given carries its lane token: calls
// made with it belong to that delivery, and are refused once it has lost its
// lane (contract.ErrStale). Errors wrap the sentinels of package contract;
// contract.ErrGone means that the kernel is not there any more, and the
// process is about to end.
type Kernel struct {
	init     *extensionv1.InitRequest
	log      hclog.Logger
	location *time.Location

	bus      kernelv1.BusClient
	kv       kernelv1.KVClient
	channels kernelv1.ChannelsClient
	sessions kernelv1.SessionsClient
	tools    kernelv1.ToolsClient
	models   kernelv1.ModelsClient
	runtime  kernelv1.RuntimeClient

	ctx   context.Context // ends with the connection
	close context.CancelFunc

	leaving context.Context // ends when the extension is asked to finish
	leave   context.CancelFunc

	committing sync.Mutex // while there is no stream
	commits    atomic.Pointer[commitStream]

	readiness readiness
}

// NewKernel wraps a connection to the kernel's services as Init described it.
// Serve does this; tests may.
func NewKernel(conn grpc.ClientConnInterface, init *extensionv1.InitRequest, log hclog.Logger) *Kernel {
	location, err := time.LoadLocation(init.GetTimezone())
	if err != nil {
		location = time.Local
	}
	ctx, cancel := context.WithCancel(context.Background())
	leaving, leave := context.WithCancel(ctx)
	return &Kernel{
		init: init, log: log, location: location,
		ctx: ctx, close: cancel,
		leaving: leaving, leave: leave,
		bus:      kernelv1.NewBusClient(conn),
		kv:       kernelv1.NewKVClient(conn),
		channels: kernelv1.NewChannelsClient(conn),
		sessions: kernelv1.NewSessionsClient(conn),
		tools:    kernelv1.NewToolsClient(conn),
		models:   kernelv1.NewModelsClient(conn),
		runtime:  kernelv1.NewRuntimeClient(conn),
	}
}

// Leaving ends when the extension is asked to finish. Handlers may go on for a
// while then; who waits for somebody else need not.
func (k *Kernel) Leaving() context.Context { return k.leaving }

// ID is the extension's id.
func (k *Kernel) ID() string { return k.init.GetId() }

// Name is what people see.
func (k *Kernel) Name() string { return k.init.GetName() }

// Config decodes the configuration into v: manifest and config.yaml merged,
// already checked against the manifest's schema.
func (k *Kernel) Config(v any) error {
	if len(k.init.GetConfig()) == 0 {
		return nil
	}
	if err := json.Unmarshal(k.init.GetConfig(), v); err != nil {
		return fmt.Errorf("configuration of %s: %w", k.ID(), err)
	}
	return nil
}

// Secret is a secret that the manifest names; empty if nobody has set it.
func (k *Kernel) Secret(name string) string { return k.init.GetSecrets()[name] }

// RunDir is for sockets. It exists and is private to the user.
func (k *Kernel) RunDir() string { return k.init.GetRunDir() }

// DataDir is for files that outlive the process. It exists and is private to
// the user.
func (k *Kernel) DataDir() string { return k.init.GetDataDir() }

// Location is the configured time zone.
func (k *Kernel) Location() *time.Location { return k.location }

// Agent is the agent section of the manifest; nil if it is none.
func (k *Kernel) Agent() *extensionv1.AgentSpec { return k.init.GetAgent() }

// Log writes JSON to stderr, which the kernel collects.
func (k *Kernel) Log() hclog.Logger { return k.log }

// Commit commits the effects in one transaction and returns when they are on
// disk: one result for each effect. Commits of one extension are applied in the
// order in which Commit was called.
func (k *Kernel) Commit(ctx context.Context, effects ...Effect) ([]*busv1.EffectResult, error) {
	return k.CommitOnce(ctx, "", effects...)
}

// CommitOnce is Commit with an id: repeating it returns the first results, and
// nothing happens twice.
func (k *Kernel) CommitOnce(ctx context.Context, id string, effects ...Effect) ([]*busv1.EffectResult, error) {
	protos, err := Effects(effects).protos()
	if err != nil {
		return nil, err
	}
	return k.commit(ctx, &busv1.Commit{Id: id, Lane: LaneOf(ctx), Effects: protos})
}

// Receive reports a message of a person: it is on disk when Receive returns.
// The dedupe key makes reporting it again harmless; empty for none. Further effects (the poll
// cursor) are committed with it.
func (k *Kernel) Receive(ctx context.Context, m UserMessage, dedupe string, effects ...Effect) error {
	effects = append([]Effect{Publish(contract.TopicUserMessage, m, Dedupe(dedupe))}, effects...)
	_, err := k.Commit(ctx, effects...)
	return err
}

// Value is one entry of the extension's own store.
type Value struct {
	Key     string
	Value   []byte
	Version int64 // 0: the key does not exist
}

// Decode reads the JSON value into v.
func (v Value) Decode(into any) error {
	if err := json.Unmarshal(v.Value, into); err != nil {
		return fmt.Errorf("value of key %q: %w", v.Key, err)
	}
	return nil
}

// Get reads one key; a key that does not exist has version 0.
func (k *Kernel) Get(ctx context.Context, key string) (Value, error) {
	v, err := k.kv.Get(ctx, &kernelv1.GetRequest{Key: key})
	if err != nil {
		return Value{}, contract.FromStatus(err)
	}
	return Value{Key: key, Value: v.GetValue(), Version: v.GetVersion()}, nil
}

// Scan calls each with every key of the prefix, in ascending order, until it
// returns an error, which Scan returns.
func (k *Kernel) Scan(ctx context.Context, prefix string, each func(Value) error) error {
	after := ""
	for {
		page, more, err := k.Page(ctx, prefix, after, 0)
		if err != nil {
			return err
		}
		for _, v := range page {
			after = v.Key
			if err := each(v); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// Page returns the first keys of the prefix behind one of them, in ascending
// order, at most so many (0: as many as the kernel gives at once), and whether
// there are more.
func (k *Kernel) Page(ctx context.Context, prefix, after string, most int) (page []Value, more bool, err error) {
	found, err := k.kv.Scan(ctx, &kernelv1.ScanRequest{Prefix: prefix, After: after, Limit: int32(min(most, math.MaxInt32))})
	if err != nil {
		return nil, false, contract.FromStatus(err)
	}
	page = make([]Value, len(found.GetValues()))
	for i, v := range found.GetValues() {
		page[i] = Value{Key: v.GetKey(), Value: v.GetValue(), Version: v.GetVersion()}
	}
	return page, found.GetMore(), nil
}

// Ask asks a read-only tool, full name, outside of any turn: nothing of it is
// recorded. The manifest has to name the tool under permissions.tools. What the
// tool itself says went wrong is a result with IsError, not an error.
func (k *Kernel) Ask(ctx context.Context, tool string, arguments any) (ToolResult, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return ToolResult{}, fmt.Errorf("arguments of %s: %w", tool, err)
	}
	r, err := k.tools.Call(ctx, &kernelv1.CallToolRequest{Lane: LaneOf(ctx), Name: tool, Arguments: raw})
	if err != nil {
		return ToolResult{}, contract.FromStatus(err)
	}
	return ToolResult{Content: r.GetContent(), IsError: r.GetIsError()}, nil
}

// Complete asks a model outside of any turn: a name of the configuration
// (default, scout) or <extension>/<model>, which the manifest has to name under
// permissions.models. The purpose is kept with what it costs.
func (k *Kernel) Complete(ctx context.Context, model, purpose string, messages []*extensionv1.Message, emit func(*Delta) error) error {
	return k.Services().Complete(ctx, &kernelv1.CompleteRequest{Model: model, Purpose: purpose, Messages: messages}, emit)
}

// Session is what the kernel tells of a session, to whoever holds its lane or may
// queue inputs. Where there is none, the error is contract.ErrNotFound.
func (k *Kernel) Session(ctx context.Context, id string) (*kernelv1.Session, error) {
	s, err := k.sessions.Get(ctx, &kernelv1.SessionRequest{Session: id, Lane: LaneOf(ctx)})
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, contract.FromStatus(err))
	}
	return s, nil
}

// Commands lists the slash commands that people can give on every channel, the
// kernel's own and those of extensions. It changes as extensions come and go.
func (k *Kernel) Commands(ctx context.Context) ([]*kernelv1.Command, error) {
	r, err := k.channels.List(ctx, &kernelv1.ListChannelsRequest{})
	return r.GetCommands(), contract.FromStatus(err)
}

// Channels lists the channels with their readiness.
func (k *Kernel) Channels(ctx context.Context) ([]*kernelv1.Channel, error) {
	r, err := k.channels.List(ctx, &kernelv1.ListChannelsRequest{})
	return r.GetChannels(), contract.FromStatus(err)
}
