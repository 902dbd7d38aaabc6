// Package memory is the extension that remembers for the household: facts,
// preferences and open items, each with its dates, in scopes that manifests
// grant to agents.
//
// Promises:
//   - What a tool reports as remembered, changed or forgotten is one commit with
//     that report: whatever dies, both are there or neither.
//   - The same text remembered again is the same memory, however often and from
//     wherever it is said; its id follows from its text.
//   - An agent reads and writes the scopes of its manifest, no others. A call
//     without an agent (the command line, another extension whose manifest names
//     the tool) reaches all.
//   - The stored rows are the truth. The index for searching is made of them at
//     the first use and follows what was committed, never what was only tried.
//   - An import changes everything it says, or nothing.
//   - A row that cannot be read stops nothing else; list_memories shows it, and
//     forget removes it.
//
// Statements that contradict each other are all kept; the newest stands first,
// and whoever remembers is told what similar is known. Until the first use
// nothing is read and nothing is kept in memory; after it, all memories are.
// Tools run concurrently; two changes of one memory do not overlap, the later
// one runs again.
package memory

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "memory"

// New is the extension.
func New() sdk.Extension { return build(time.Now) }

func build(now func() time.Time) sdk.Extension {
	m := &memory{}
	return sdk.Extension{
		ID: ID,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			m.start(ctx, k, k.Log(), now, k.Location())
			return nil
		},
		Tools: m.tools(),
	}
}

// kernel is what memory needs of the kernel.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
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

// moment is now, as it is stored: to the second, where the caller is.
func (m *memory) moment(c sdk.ToolCall) time.Time {
	return m.now().In(m.zoneOf(c)).Truncate(time.Second)
}

func (m *memory) zoneOf(c sdk.ToolCall) *time.Location {
	if c.Location != nil && c.Location.String() != "Local" {
		return c.Location
	}
	return m.zone
}

// use calls f with what is stored, and with what a call may see of it: the scope
// that it names, or all that it is granted.
func (m *memory) use(ctx context.Context, c sdk.ToolCall, scope string, f func(all *rows, may func(scope string) bool) error) error {
	may, err := readable(c, scope)
	if err != nil {
		return err
	}
	return m.store.use(ctx, func(all *rows) error { return f(all, may) })
}
