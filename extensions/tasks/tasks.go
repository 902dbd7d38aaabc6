// Package tasks is the built-in extension for work that agents give to
// sub-agents: a queue and an inbox for every agent.
//
// Promises: a task finishes once, in the commit that handles the last word of
// its worker, whoever dies meanwhile, and yields one result. Results and
// messages stay in an inbox until receive or check collects each of them once,
// in the commit that stores the answer of that call. `run N` never has more than
// N workers at work; one that waits in receive gives its place back, and takes
// it again before it goes on. A task that ends has its unfinished children
// cancelled in the same commit. Of one sender, messages are collected in the
// order in which they were sent; between senders, in about that order.
//
// All state is in the extension's own store and changed by version: what is kept
// in memory only wakes those who wait, and can be lost. Names are unique in the
// tree of a conversation, which is the session that its tasks come from.
//
// Not promised: that a task begins soon (its agent may be down), and what a
// worker that was cancelled has done with its tools before.
package tasks

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "tasks"

// TopicChanged says that what somebody waits for may have come.
const TopicChanged = "tasks.changed"

// changed is the payload of TopicChanged.
type changed struct {
	Root string `json:"root"`
}

// config bounds what nested agents may do; 0: no bound.
type config struct {
	Depth       int `json:"depth"`
	Concurrency int `json:"concurrency"`
	PerRoot     int `json:"per_root"`
}

// store is what the extension needs of the kernel.
type store interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) error
	// Session tells the key and the state of a session.
	Session(ctx context.Context, id string) (key, state string, err error)
}

// tasks is the extension.
type tasks struct {
	config config
	k      store
	log    hclog.Logger
	ctx    context.Context // ends at shutdown

	mu      sync.Mutex
	last    int64                         // the newest number given out
	names   map[string]int                // of each root, the newest number in a name that was made up
	keys    map[string]string             // the keys of sessions that have asked
	waits   map[string]map[string]*waiter // by root and name: who waits in receive
	unnamed map[string]time.Time          // roots with results that no notice has named, and maybe others: since when
	follows map[string]time.Time          // roots where a person waits, and maybe others: since when
	timers  map[string]*time.Timer        // by task
}

// New returns the extension.
func New() sdk.Extension {
	t := newTasks()
	return sdk.Extension{ID: ID, Tools: t.tools(), Handle: t.handle, Start: t.start, Run: func(ctx context.Context, _ *sdk.Kernel) error {
		return t.sweep(ctx)
	}}
}

func newTasks() *tasks {
	return &tasks{
		names: map[string]int{}, keys: map[string]string{}, waits: map[string]map[string]*waiter{}, unnamed: map[string]time.Time{},
		follows: map[string]time.Time{}, timers: map[string]*time.Timer{}, log: hclog.NewNullLogger(),
	}
}

func (t *tasks) start(ctx context.Context, k *sdk.Kernel) error {
	t.log = k.Log()
	t.config = config{Depth: 8, Concurrency: 4, PerRoot: 256}
	if err := k.Config(&t.config); err != nil {
		return fmt.Errorf("read the configuration of %s: %w", ID, err)
	}
	return t.begin(ctx, kernel{k})
}

// begin takes up what is stored.
func (t *tasks) begin(ctx context.Context, k store) error {
	t.k, t.ctx = k, ctx
	if err := k.Scan(ctx, noticePrefix, func(v sdk.Value) error {
		t.unnamed[v.Key[len(noticePrefix):]] = time.Now()
		return nil
	}); err != nil {
		return fmt.Errorf("read the notices: %w", err)
	}
	if err := k.Scan(ctx, followPrefix, func(v sdk.Value) error {
		t.follows[v.Key[len(followPrefix):]] = time.Now()
		return nil
	}); err != nil {
		return fmt.Errorf("read who waits: %w", err)
	}
	return t.each(ctx, "", func(task *Task) error {
		t.watchTime(task)
		return nil
	})
}

// handle handles what workers and roots say, and what the extension tells
// itself.
func (t *tasks) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	switch e.Topic {
	case TopicChanged:
		var c changed
		if err := e.Decode(&c); err != nil {
			return nil, err
		}
		t.wake(c.Root)
		return nil, nil
	case contract.TopicAgentOutput:
		var out contract.AgentOutput
		if err := e.Decode(&out); err != nil {
			return nil, err
		}
		if out.Extension == ID {
			return t.finished(ctx, out)
		}
		return t.turnEnded(ctx, out.Session)
	}
	return nil, sdk.Drop(ID + " handles no " + e.Topic)
}

// number gives out numbers that rise, over restarts too.
func (t *tasks) number() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, time.Now().UnixMicro())
	return t.last
}

// lookEvery is how often is looked for what nothing announces.
const lookEvery = 3 * time.Second

// sweep tells people and idle agents what could not be told when it came.
func (t *tasks) sweep(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		t.mu.Lock()
		var roots []string
		for root := range t.unnamed {
			roots = append(roots, root)
		}
		var follows []string
		for root := range t.follows {
			follows = append(follows, root)
		}
		t.mu.Unlock()
		for _, root := range roots {
			t.quietly(ctx, "telling an idle agent of its results", func() (sdk.Effects, error) { return t.turnEnded(ctx, root) })
		}
		for _, root := range follows {
			t.quietly(ctx, "ending a wait", func() (sdk.Effects, error) { return t.giveUp(ctx, root) })
		}
	}
}

// settled is how long after it was said that something may be stored it surely is.
const settled = time.Minute

// forget forgets a root of which nothing is stored, unless that may just come.
func (t *tasks) forget(known map[string]time.Time, root string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(known[root]) > settled {
		delete(known, root)
	}
}

// quietly commits what change says, and says so if it cannot. What conflicts is
// tried again at the next occasion.
func (t *tasks) quietly(ctx context.Context, what string, change func() (sdk.Effects, error)) bool {
	effects, err := change()
	if err == nil && len(effects) > 0 {
		err = t.k.Commit(ctx, effects...)
	}
	if err != nil && ctx.Err() == nil {
		t.log.Debug(what+" failed; trying again later", "error", err)
	}
	return err == nil
}

// kernel is the store that production has.
type kernel struct{ *sdk.Kernel }

func (k kernel) Commit(ctx context.Context, effects ...sdk.Effect) error {
	_, err := k.Kernel.Commit(ctx, effects...)
	return err
}

func (k kernel) Session(ctx context.Context, id string) (key, state string, err error) {
	s, err := k.Services().Sessions.Get(ctx, sessionRequest(ctx, id))
	if err != nil {
		return "", "", contract.FromStatus(err)
	}
	return s.GetKey(), cmp.Or(s.GetState(), stateIdle), nil
}
