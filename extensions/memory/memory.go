// Package memory is the extension that stores the household's memories: facts,
// preferences and open items, each with its dates, in scopes that manifests
// grant to agents.
//
// Promises:
//   - The change that a tool reports is in one commit with the report: after a
//     crash, both exist or neither.
//   - Remembering the same text again updates the same memory. The id of a memory
//     is computed from its text.
//   - An agent reads and writes only the scopes of its manifest. A call without
//     an agent (from the command line or another extension whose manifest names
//     the tool) reaches all scopes.
//   - The stored rows are the source of truth. The search index is built from
//     them at the first use and follows committed changes only.
//   - An import makes all of its changes or none.
//   - An unreadable row affects no other; list_memories shows it, and forget
//     removes it.
//
// Contradicting statements are all kept, the newest first; remember returns
// similar memories. Before the first use nothing is read; after it, all memories
// are held in RAM. Tools run concurrently. Two changes of one memory conflict,
// and the later one runs again.
package memory

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the id of the extension.
const ID = "memory"

// New returns the extension.
func New() sdk.Extension { return build(time.Now) }

func build(now func() time.Time) sdk.Extension {
	m := &memory{}
	return sdk.Extension{
		ID: ID,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			m.start(ctx, k, k.Log(), now, k.Location())
			return nil
		},
		Handle: m.handle,
		Tools:  m.tools(),
	}
}

// kernel is the part of sdk.Kernel that memory uses.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
	FindBlob(ctx context.Context, name string) (sdk.Blob, error)
}

var _ kernel = (*sdk.Kernel)(nil)

type memory struct {
	k     kernel
	log   hclog.Logger
	now   func() time.Time
	zone  *time.Location
	store *store
}

func (m *memory) start(ctx context.Context, k kernel, log hclog.Logger, now func() time.Time, zone *time.Location) {
	if zone.String() == "Local" {
		zone = time.UTC
	}
	m.k, m.log, m.now, m.zone = k, log, now, zone
	m.store = newStore(ctx, k, log, now)
}

// timeOf returns the current time in the caller's zone, with the stored
// precision.
func (m *memory) timeOf(c sdk.ToolCall) time.Time {
	return m.now().In(m.zoneOf(c)).Truncate(time.Second)
}

func (m *memory) zoneOf(c sdk.ToolCall) *time.Location {
	if c.Location != nil && c.Location.String() != "Local" {
		return c.Location
	}
	return m.zone
}

// use calls f with the stored memories and the scopes that a call may use: the
// given one, or all that it is granted.
func (m *memory) use(ctx context.Context, c sdk.ToolCall, scope string, f func(all *rows, allowed reach) error) error {
	allowed, err := readable(c, scope)
	if err != nil {
		return err
	}
	return m.store.use(ctx, func(all *rows) error { return f(all, allowed) })
}
