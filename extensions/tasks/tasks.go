// Package tasks is the built-in extension through which agents give tasks to
// sub-agents: every agent has a queue and an inbox.
//
// Promises: a task finishes once and has one result, in the commit that handles
// the final output of its worker, whichever process crashes. Results and messages
// stay in an inbox until receive or check collects each of them once, in the
// commit that stores the result of that call. `run N` never runs more than N
// workers; a worker that waits in receive releases its slot, and reacquires one
// before it continues. A task that ends has its unfinished children cancelled in
// the same commit. Messages of one sender are collected in the order in which
// they were sent; those of different senders in about that order.
//
// All state is in the extension's own store, under optimistic locking. Memory
// only holds what wakes waiting receives and reduces conflicts, and can be lost.
// Names are unique within the tree of a conversation, whose root is the session
// that its tasks come from.
//
// Costs do not grow with the number of tasks: each queued, running or uncollected
// task is one row, and tasks that end at the same time write no common row as long
// as queued tasks take their slots.
//
// The life of a task: push (push.go) stores it and creates its session; run
// (run.go) starts it, in queue order (queued.go), with an input to that session;
// the final output of the session finishes it (finish.go) and puts its result into
// an inbox (inbox.go) or sends it to a person (deferred.go); receive (receive.go)
// waits for the result, unless nothing can arrive (deadlock.go). cancel.go and
// deadline.go stop a task; lost.go finishes those whose output never arrived.
// delegate_task (delegate.go) starts a task without a queue, and its result is that
// of the call.
//
// Not promised: that a task starts soon (its agent may be down), and what a
// cancelled worker had done with its tools.
package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "tasks"

// Topics that the extension handles, besides agent.output.
const (
	// TopicChanged wakes the waiting receives of a tree.
	TopicChanged = "tasks.changed"
	// TopicIdle says that a conversation with uncollected results is idle.
	TopicIdle = contract.TopicSessionIdle + ID
)

// changed is the payload of TopicChanged.
type changed struct {
	Root     string `json:"root"`
	Deferred bool   `json:"follow,omitempty"` // a receive was deferred
}

// config limits nested agents; 0: no limit.
type config struct {
	Depth       int `json:"depth"`
	Concurrency int `json:"concurrency"`
	PerRoot     int `json:"per_root"`
}

// store is the part of the kernel that the extension uses.
type store interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Page(ctx context.Context, prefix, after string, most int) (page []sdk.Value, more bool, err error)
	Commit(ctx context.Context, effects ...sdk.Effect) error
	// Session returns the key of a session, which never changes.
	Session(ctx context.Context, id string) (key string, err error)
	// Ensure returns the session of the extension with a key, and makes it if there is none.
	Ensure(ctx context.Context, agent, key, title string) (id string, err error)
	// Reach returns the handle of a person's private conversation.
	Reach(ctx context.Context, person string) (replyTo string, err error)
	// Agents lists the enabled agents.
	Agents(ctx context.Context) ([]listedAgent, error)
	// Busy reports whether a session has work; one that does not exist has none.
	Busy(ctx context.Context, agent, key string) (bool, error)
}

// listedAgent is an agent as core/list_agents lists it.
type listedAgent struct {
	ID        string `json:"id"`
	Available bool   `json:"can_be_given_tasks"`
}

// tasks is the extension.
type tasks struct {
	config config
	k      store
	log    hclog.Logger
	ctx    context.Context // ends at shutdown

	mu          sync.Mutex
	lastSeq     int64                // newest number of nextSeq
	nameNumbers map[string]int       // by root: newest number in a generated name
	keys        map[string]string    // of sessions, by id
	waiters     map[string][]*waiter // by root: calls in receive, oldest first
	hasDeferred map[string]bool      // roots that may have deferred receives
	claims      map[string]claim     // by key of the queued row
	prompts     prompts
	timers      map[string]*time.Timer // by task id
	idleSince   map[string]time.Time   // by task id; used only by runPeriodic
}

// New returns the extension.
func New() sdk.Extension {
	t := newTasks()
	return sdk.Extension{
		ID: ID, Tools: t.tools(), Handle: t.handle, Start: t.start,
		Run: func(ctx context.Context, _ *sdk.Kernel) error {
			t.runPeriodic(ctx)
			return nil
		},
	}
}

func newTasks() *tasks {
	return &tasks{
		log: hclog.NewNullLogger(), nameNumbers: map[string]int{}, keys: map[string]string{}, waiters: map[string][]*waiter{},
		hasDeferred: map[string]bool{}, claims: map[string]claim{}, timers: map[string]*time.Timer{},
		prompts: prompts{texts: map[string]string{}},
	}
}

func (t *tasks) start(ctx context.Context, k *sdk.Kernel) error {
	t.log = k.Log()
	t.config = config{Depth: 8, Concurrency: 4, PerRoot: 256}
	if err := k.Config(&t.config); err != nil {
		return fmt.Errorf("read config of %s: %w", ID, err)
	}
	return t.resume(ctx, kernel{k})
}

// resume restores timers, active queues and deferred receives from the store.
func (t *tasks) resume(ctx context.Context, k store) error {
	t.k, t.ctx = k, ctx
	if err := t.scan(ctx, fencePrefix, func(v sdk.Value) error {
		t.hasDeferred[rootOf(v.Key)] = true
		return nil
	}); err != nil {
		return fmt.Errorf("read the deferred receives: %w", err)
	}
	if err := t.scan(ctx, queuePrefix, func(v sdk.Value) error {
		var q queue
		err := v.Decode(&q)
		if q.Active {
			t.refillLater(rootOf(v.Key), lastOf(v.Key))
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
			t.startTimer(task)
		}
		return err
	})
}

// handle handles the output of workers, idle conversations, and the extension's
// own events.
func (t *tasks) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	switch e.Topic {
	case contract.TopicAgentOutput:
		return decode(ctx, e, t.workerFinished)
	case TopicIdle:
		return decode(ctx, e, t.idle)
	case contract.TopicPersonRevoked:
		return t.revoked(ctx, e)
	case contract.TopicStopped:
		return t.stopped(ctx, e)
	case TopicChanged:
		return decode(ctx, e, func(ctx context.Context, c changed) (sdk.Effects, error) {
			t.wake(c.Root)
			if !c.Deferred {
				return nil, nil
			}
			t.noteDeferred(c.Root, true)
			return t.serveDeferred(ctx, c.Root, e.ID)
		})
	}
	return nil, sdk.Drop(ID + " does not handle " + e.Topic)
}

func decode[T any](
	ctx context.Context, e sdk.Event, f func(context.Context, T) (sdk.Effects, error),
) (sdk.Effects, error) {
	var payload T
	if err := e.Decode(&payload); err != nil {
		return nil, err
	}
	return f(ctx, payload)
}

// nextSeq returns increasing numbers, also across restarts.
func (t *tasks) nextSeq() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastSeq = max(t.lastSeq+1, time.Now().UnixMicro())
	return t.lastSeq
}

const (
	deferredEvery = 3 * time.Second
	lostEvery     = 2 * time.Minute
	pruneEvery    = time.Hour
)

// runPeriodic does the work that no event triggers, until ctx ends.
func (t *tasks) runPeriodic(ctx context.Context) {
	deferred, lost, prune := time.NewTicker(deferredEvery), time.NewTicker(lostEvery), time.NewTicker(pruneEvery)
	defer deferred.Stop()
	defer lost.Stop()
	defer prune.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-deferred.C:
			t.serveAllDeferred(ctx)
		case <-lost.C:
			t.findLost(ctx)
		case <-prune.C:
			if err := t.prune(ctx, time.Now()); err != nil && ctx.Err() == nil {
				t.log.Warn("cannot remove old tasks; will retry", "error", err)
			}
		}
	}
}

// tryCommit commits the effects of change, and logs a failure: the work is retried
// at the next occasion.
func (t *tasks) tryCommit(ctx context.Context, action string, change func() (sdk.Effects, error)) bool {
	effects, err := change()
	if err == nil && len(effects) > 0 {
		err = t.k.Commit(ctx, effects...)
	}
	if err != nil && ctx.Err() == nil {
		t.log.Debug("cannot "+action+"; will retry", "error", err)
	}
	return err == nil
}

// kernel implements store with the real kernel.
type kernel struct{ *sdk.Kernel }

func (k kernel) Commit(ctx context.Context, effects ...sdk.Effect) error {
	_, err := k.Kernel.Commit(ctx, effects...)
	return err
}

func (k kernel) Session(ctx context.Context, id string) (key string, err error) {
	s, err := k.Services().Sessions.Get(ctx, &kernelv1.SessionRequest{Session: id, Lane: sdk.LaneOf(ctx)})
	return s.GetKey(), contract.FromStatus(err)
}

func (k kernel) Ensure(ctx context.Context, agent, key, title string) (id string, err error) {
	results, err := k.Kernel.Commit(ctx, sdk.Raw(&busv1.SessionEnsure{
		Agent: agent, Key: key, Title: title, Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}))
	if err != nil {
		return "", err
	}
	return results[0].GetSession(), nil
}

func (k kernel) Reach(ctx context.Context, person string) (replyTo string, err error) {
	found, err := k.Ask(ctx, contract.ToolFindPerson, map[string]string{"person": "@" + person})
	if err == nil && found.IsError {
		err = errors.New(found.Content)
	}
	var to contract.Recipient
	if err == nil {
		err = json.Unmarshal([]byte(found.Content), &to)
	}
	return to.ReplyTo, err
}

func (k kernel) Agents(ctx context.Context) ([]listedAgent, error) {
	var list struct{ Agents []listedAgent }
	// Without the lane of the call, the grant is that of the extension, not that of
	// the agent which calls.
	result, err := k.Ask(sdk.WithLane(ctx, ""), "core/list_agents", struct{}{})
	if err == nil {
		err = json.Unmarshal([]byte(result.Content), &list)
	}
	return list.Agents, err
}

func (k kernel) Busy(ctx context.Context, agent, key string) (bool, error) {
	s, err := k.Services().Sessions.Get(ctx, &kernelv1.SessionRequest{Agent: agent, Key: key})
	if err = contract.FromStatus(err); errors.Is(err, contract.ErrNotFound) {
		return false, nil
	}
	return s.GetState() != "idle", err
}
