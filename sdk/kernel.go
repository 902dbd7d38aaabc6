package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
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

// Kernel is a client of the kernel's services. It is safe for concurrent use. A
// handler's ctx carries its lane token: calls with it belong to that delivery, and
// are refused once the lane is lost (contract.ErrStale). Errors wrap the sentinels
// of package contract; contract.ErrGone means that the kernel has ended and the
// process is about to.
type Kernel struct {
	init     *extensionv1.InitRequest
	log      hclog.Logger
	location *time.Location

	conn     grpc.ClientConnInterface
	bus      kernelv1.BusClient
	kv       kernelv1.KVClient
	channels kernelv1.ChannelsClient
	sessions kernelv1.SessionsClient
	tools    kernelv1.ToolsClient
	models   kernelv1.ModelsClient
	runtime  kernelv1.RuntimeClient

	ctx   context.Context // ends with the connection
	close context.CancelFunc

	draining context.Context // ends when the extension begins to shut down
	drain    context.CancelFunc

	files files

	committing sync.Mutex // held while a stream is opened
	commits    atomic.Pointer[commitStream]

	readiness readiness
	describe  func([]Tool) (*extensionv1.Description, error)
}

// NewKernel returns a client on the connection that Init describes. Serve calls it;
// so may tests.
func NewKernel(conn grpc.ClientConnInterface, init *extensionv1.InitRequest, log hclog.Logger) *Kernel {
	location, err := time.LoadLocation(init.GetTimezone())
	if err != nil {
		location = time.Local
	}
	ctx, cancel := context.WithCancel(context.Background())
	draining, drain := context.WithCancel(ctx)
	return &Kernel{
		init: init, log: log, location: location,
		ctx: ctx, close: cancel,
		draining: draining, drain: drain,
		conn:     conn,
		bus:      kernelv1.NewBusClient(conn),
		kv:       kernelv1.NewKVClient(conn),
		channels: kernelv1.NewChannelsClient(conn),
		sessions: kernelv1.NewSessionsClient(conn),
		tools:    kernelv1.NewToolsClient(conn),
		models:   kernelv1.NewModelsClient(conn),
		runtime:  kernelv1.NewRuntimeClient(conn),
	}
}

// Draining returns a context that ends when the extension begins to shut down.
// Handlers may still finish then; one that waits for something should stop waiting.
func (k *Kernel) Draining() context.Context { return k.draining }

// ID returns the extension's id.
func (k *Kernel) ID() string { return k.init.GetId() }

// Name returns the extension's name, as shown to people.
func (k *Kernel) Name() string { return k.init.GetName() }

// Config decodes the configuration into v: the manifest's and config.yaml's merged,
// and checked against the manifest's schema.
func (k *Kernel) Config(v any) error {
	if len(k.init.GetConfig()) == 0 {
		return nil
	}
	if err := json.Unmarshal(k.init.GetConfig(), v); err != nil {
		return fmt.Errorf("decode configuration of %s: %w", k.ID(), err)
	}
	return nil
}

// Secret returns a secret that the manifest names; empty if it is not set.
func (k *Kernel) Secret(name string) string { return k.init.GetSecrets()[name] }

// RunDir returns the directory for sockets. It exists and is private to the user.
func (k *Kernel) RunDir() string { return k.init.GetRunDir() }

// DataDir returns the directory for files that outlive the process. It exists and
// is private to the user. Machines of a cluster do not share it: see data in the manifest.
func (k *Kernel) DataDir() string { return k.init.GetDataDir() }

// Node returns the name of the cluster's node that runs the extension; empty: there is no
// cluster. An extension of another node may still run for two seconds after this one took
// over: it commits nothing, but it reaches what is outside.
func (k *Kernel) Node() string { return os.Getenv(contract.NodeVariable) }

// Location returns the configured time zone.
func (k *Kernel) Location() *time.Location { return k.location }

// Agent returns the agent section of the manifest; nil if it has none.
func (k *Kernel) Agent() *extensionv1.AgentSpec { return k.init.GetAgent() }

// Log returns a logger that writes JSON to stderr, which the kernel collects.
func (k *Kernel) Log() hclog.Logger { return k.log }

// Commit commits the effects in one transaction and returns when they are on
// disk: one result for each effect. Commits of one extension are applied in the
// order in which Commit was called.
func (k *Kernel) Commit(ctx context.Context, effects ...Effect) ([]*busv1.EffectResult, error) {
	return k.CommitOnce(ctx, "", effects...)
}

// CommitOnce is an idempotent Commit: repeating the id returns the first results,
// and nothing happens twice.
func (k *Kernel) CommitOnce(ctx context.Context, id string, effects ...Effect) ([]*busv1.EffectResult, error) {
	protos, err := Effects(effects).protos()
	if err != nil {
		return nil, err
	}
	return k.commit(ctx, &busv1.Commit{Id: id, Lane: LaneOf(ctx), Effects: protos})
}

// Receive reports a person's message, which is on disk when Receive returns, with the
// files of its attachments, which were stored before by PutBlob. The
// dedupe key makes reporting it again harmless; empty: none. Further effects (the
// poll cursor) are committed with it.
func (k *Kernel) Receive(ctx context.Context, m UserMessage, dedupe string, effects ...Effect) error {
	effects = append([]Effect{Publish(contract.TopicUserMessage, m, Dedupe(dedupe)).
		Keep(contract.BlobsOf(m.Attachments)...)}, effects...)
	_, err := k.Commit(ctx, effects...)
	return err
}

// Value is one entry of the extension's own store.
type Value struct {
	Key     string
	Value   []byte
	Version int64 // 0: the key does not exist
}

// Decode decodes the JSON value into into.
func (v Value) Decode(into any) error {
	if err := json.Unmarshal(v.Value, into); err != nil {
		return fmt.Errorf("decode value of key %q: %w", v.Key, err)
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

// Page returns up to limit keys of the prefix that follow after, in ascending order
// (limit 0: as many as the kernel returns at once), and whether there are more.
func (k *Kernel) Page(ctx context.Context, prefix, after string, limit int) (page []Value, more bool, err error) {
	limit = min(limit, math.MaxInt32)
	found, err := k.kv.Scan(ctx, &kernelv1.ScanRequest{Prefix: prefix, After: after, Limit: int32(limit)})
	if err != nil {
		return nil, false, contract.FromStatus(err)
	}
	page = make([]Value, len(found.GetValues()))
	for i, v := range found.GetValues() {
		page[i] = Value{Key: v.GetKey(), Value: v.GetValue(), Version: v.GetVersion()}
	}
	return page, found.GetMore(), nil
}

// Ask calls a read-only tool by its full name, outside of any turn and without
// recording it. The manifest must name the tool under permissions.tools. A failure
// of the tool itself is a result with IsError, not an error.
func (k *Kernel) Ask(ctx context.Context, tool string, arguments any) (ToolResult, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return ToolResult{}, fmt.Errorf("encode arguments of %s: %w", tool, err)
	}
	r, err := k.tools.Call(ctx, &kernelv1.CallToolRequest{Lane: LaneOf(ctx), Name: tool, Arguments: raw})
	if err != nil {
		return ToolResult{}, contract.FromStatus(err)
	}
	return ToolResult{Content: r.GetContent(), IsError: r.GetIsError()}, nil
}

// Complete asks a model outside of any turn. The model is a name of the
// configuration (default, scout) or <extension>/<model>; the manifest must name it
// under permissions.models. The purpose is recorded with the usage.
func (k *Kernel) Complete(
	ctx context.Context, model, purpose string, messages []*extensionv1.Message, emit func(*Delta) error,
) error {
	r := &kernelv1.CompleteRequest{Model: model, Purpose: purpose, Messages: messages}
	return k.Services().Complete(ctx, r, emit)
}

// Session reads a session. The caller must hold its lane or have the grant to queue
// inputs. The error is contract.ErrNotFound if it does not exist.
func (k *Kernel) Session(ctx context.Context, id string) (*kernelv1.Session, error) {
	s, err := k.sessions.Get(ctx, &kernelv1.SessionRequest{Session: id, Lane: LaneOf(ctx)})
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, contract.FromStatus(err))
	}
	return s, nil
}

// Commands lists the slash commands that people can use on every channel, of the
// kernel and of the running extensions.
func (k *Kernel) Commands(ctx context.Context) ([]*kernelv1.Command, error) {
	r, err := k.channels.List(ctx, &kernelv1.ListChannelsRequest{})
	return r.GetCommands(), contract.FromStatus(err)
}

// Channels lists the channels with their readiness.
func (k *Kernel) Channels(ctx context.Context) ([]*kernelv1.Channel, error) {
	r, err := k.channels.List(ctx, &kernelv1.ListChannelsRequest{})
	return r.GetChannels(), contract.FromStatus(err)
}
