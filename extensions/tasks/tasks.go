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
// in memory only wakes those who wait and keeps those apart who work at the same
// time, and can be lost. Names are unique in the tree of a conversation, which is
// the session that its tasks come from.
//
// Costs do not grow with the number of tasks: what is queued, at work and not
// collected is one row each, and tasks that end at the same time change no row
// together, as long as there are others to take their places.
//
// The way of a task: push (push.go) stores it and makes its session; run (run.go)
// begins it in its turn (line.go) with an input of that session; the last word that
// the session says ends it (finish.go) and puts its result into an inbox (inbox.go),
// or sends it to a person who waits (follow.go); receive (receive.go) waits for that,
// unless nothing can come (hope.go). Cancel and deadline stop it, lost sees to what
// was never heard of.
//
// Not promised: that a task begins soon (its agent may be down), and what a
// worker that was cancelled has done with its tools before.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "tasks"

// Topics that the extension handles beside agent.output.
const (
	// TopicChanged says that what somebody waits for may have come.
	TopicChanged = "tasks.changed"
	// TopicIdle says that a conversation in which results lie has nothing to do.
	TopicIdle = contract.TopicSessionIdle + ID
)

// changed is the payload of TopicChanged.
type changed struct {
	Root   string `json:"root"`
	Follow bool   `json:"follow,omitempty"` // a person has begun to wait
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
	Page(ctx context.Context, prefix, after string, most int) (page []sdk.Value, more bool, err error)
	Commit(ctx context.Context, effects ...sdk.Effect) error
	// Session is the key of a session, which never changes.
	Session(ctx context.Context, id string) (key string, err error)
	// Busy says whether a session has something to do; one that does not exist has not.
	Busy(ctx context.Context, agent, key string) (bool, error)
}

// tasks is the extension.
type tasks struct {
	config config
	k      store
	log    hclog.Logger
	ctx    context.Context // ends at shutdown

	mu       sync.Mutex
	last     int64                // the newest number given out
	names    map[string]int       // of each root, the newest number in a name that was made up
	keys     map[string]string    // the keys of sessions that have asked
	waits    map[string][]*waiter // by root: who waits in receive, the longest first
	followed map[string]bool      // roots where a person waits, and maybe others
	claims   map[string]claim     // queued rows that a change under way is about to begin
	prompts  prompts
	timers   map[string]*time.Timer // by task
	silent   map[string]time.Time   // since when workers, by task, were seen to do nothing; of the sweep alone
}

// New returns the extension.
func New() sdk.Extension {
	t := newTasks()
	return sdk.Extension{ID: ID, Tools: t.tools(), Handle: t.handle, Start: t.start, Run: func(ctx context.Context, _ *sdk.Kernel) error {
		t.sweep(ctx)
		return nil
	}}
}

func newTasks() *tasks {
	return &tasks{
		log: hclog.NewNullLogger(), names: map[string]int{}, keys: map[string]string{}, waits: map[string][]*waiter{},
		followed: map[string]bool{}, claims: map[string]claim{}, timers: map[string]*time.Timer{}, prompts: prompts{texts: map[string]string{}},
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

// begin takes up what is stored: the time of those at work, what is to begin, and
// who waits.
func (t *tasks) begin(ctx context.Context, k store) error {
	t.k, t.ctx = k, ctx
	if err := t.scan(ctx, fencePrefix, func(v sdk.Value) error {
		t.followed[rootOf(v.Key)] = true
		return nil
	}); err != nil {
		return fmt.Errorf("read who waits: %w", err)
	}
	if err := t.scan(ctx, queuePrefix, func(v sdk.Value) error {
		var q queue
		err := v.Decode(&q)
		if q.Active {
			t.lookAfter(rootOf(v.Key), lastOf(v.Key))
		}
		return err
	}); err != nil {
		return fmt.Errorf("read the queues: %w", err)
	}
	return t.scan(ctx, workingPrefix, func(v sdk.Value) error {
		var name string
		if err := v.Decode(&name); err != nil {
			return err
		}
		task, err := read[Task](t.change(ctx, ""), taskKey(rootOf(v.Key), name))
		if err == nil && task != nil {
			t.watchTime(task)
		}
		return err
	})
}

// handle handles what workers say, that main is idle, and what the extension
// tells itself.
func (t *tasks) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	switch e.Topic {
	case contract.TopicAgentOutput:
		return decode(ctx, e, t.finished)
	case TopicIdle:
		return decode(ctx, e, t.idle)
	case TopicChanged:
		return decode(ctx, e, func(ctx context.Context, c changed) (sdk.Effects, error) {
			t.wake(c.Root)
			if !c.Follow {
				return nil, nil
			}
			t.follow(c.Root, true)
			return t.serve(ctx, c.Root, e.ID)
		})
	}
	return nil, sdk.Drop(ID + " handles no " + e.Topic)
}

func decode[T any](ctx context.Context, e sdk.Event, f func(context.Context, T) (sdk.Effects, error)) (sdk.Effects, error) {
	var payload T
	if err := e.Decode(&payload); err != nil {
		return nil, err
	}
	return f(ctx, payload)
}

// number gives out numbers that rise, over restarts too.
func (t *tasks) number() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, time.Now().UnixMicro())
	return t.last
}

const (
	followEvery = 3 * time.Second // how often is looked for people who have waited long enough
	lostEvery   = 2 * time.Minute // and for workers that were lost
	pruneEvery  = time.Hour
)

// sweep does what nothing announces, until ctx ends.
func (t *tasks) sweep(ctx context.Context) {
	follow, lost, prune := time.NewTicker(followEvery), time.NewTicker(lostEvery), time.NewTicker(pruneEvery)
	defer follow.Stop()
	defer lost.Stop()
	defer prune.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-follow.C:
			t.serveFollowers(ctx)
		case <-lost.C:
			t.lookForLost(ctx)
		case <-prune.C:
			if err := t.prune(ctx, time.Now()); err != nil && ctx.Err() == nil {
				t.log.Warn("removing old tasks failed; trying again later", "error", err)
			}
		}
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

// kernel is the store that is not played.
type kernel struct{ *sdk.Kernel }

func (k kernel) Commit(ctx context.Context, effects ...sdk.Effect) error {
	_, err := k.Kernel.Commit(ctx, effects...)
	return err
}

func (k kernel) Session(ctx context.Context, id string) (key string, err error) {
	s, err := k.Services().Sessions.Get(ctx, &kernelv1.SessionRequest{Session: id, Lane: sdk.LaneOf(ctx)})
	return s.GetKey(), contract.FromStatus(err)
}

func (k kernel) Busy(ctx context.Context, agent, key string) (bool, error) {
	s, err := k.Services().Sessions.Get(ctx, &kernelv1.SessionRequest{Agent: agent, Key: key})
	if err = contract.FromStatus(err); errors.Is(err, contract.ErrNotFound) {
		return false, nil
	}
	return s.GetState() != "idle", err
}
