// Package tools runs each tool call once: a call is a row of a session's history,
// and its result, its effects and its row of the history are one commit. A
// repeated request joins the running call or returns the stored result. The
// kernel's own tools (core/...) are here too.
//
// A call survives a crash of the agent: its result is stored, and the resumed turn
// finds it. It ends with the turn. A call of a tool that must not run twice is
// marked before it starts; if its outcome is lost, the result says so and the
// model decides.
package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
)

const (
	callTimeout  = 10 * time.Minute // of one call
	startTimeout = 10 * time.Second // how long a call waits for an extension that starts for the first time
	maxConflicts = 10
)

// Remote reaches the extensions.
type Remote interface {
	// CallTool runs a tool of a running extension. It wraps contract.ErrGone if
	// the process ended meanwhile, and contract.ErrUnavailable if none is running.
	CallTool(ctx context.Context, extension string, r *extensionv1.CallRequest) (*extensionv1.CallResult, error)
	// Actor returns the running instance of an extension; nil: none is running.
	Actor(extension string) *bus.Actor
}

// Runner runs tool calls. It is safe for concurrent use.
type Runner struct {
	Bus       *bus.Bus
	Sessions  *session.Store
	Directory *directory.Directory
	Router    *router.MessageRouter
	Remote    Remote
	Log       hclog.Logger

	mu      sync.Mutex
	running map[int64]*running
	closed  bool
	working sync.WaitGroup // every goroutine of the runner
}

// Close stops what runs and waits for it. The store is closed before: a call that is
// stopped has no outcome, and the next start treats it as after a crash.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, run := range r.running {
		run.stop()
	}
	r.mu.Unlock()
	r.working.Wait()
}

// running is a call that runs.
type running struct {
	*Runner
	lease  *bus.Lease // of the turn's attempt that asked first
	call   journal.Call
	event  *busv1.Event  // the input that the turn answers
	in     input         // what event holds
	turn   *journal.Turn // of the call
	stop   context.CancelFunc
	done   chan struct{}
	result *extensionv1.CallResult
	err    error

	// Guarded by Runner.mu.
	holders   []*bus.Lease            // of the attempts that have asked for it
	interrupt context.CancelCauseFunc // ends a wait; nil: it does not wait
}

// List returns the tools that an agent may use, under their full names, and
// an etag of the set. It waits for extensions that start for the first time: their
// tools are unknown until then.
func (r *Runner) List(ctx context.Context, agent string) ([]*extensionv1.Tool, string) {
	dir := r.awaitDirectory(ctx, func(dir *directory.Snapshot) bool {
		return !slices.ContainsFunc(dir.Starting, func(id string) bool { return dir.UsesToolsOf(agent, id) })
	})
	var tools []*extensionv1.Tool
	for _, t := range granted(dir, agent) {
		tools = append(tools, t.Full())
	}
	return tools, dir.ToolsEtag
}

// awaitTool returns a tool with the id of its extension; nil: there is none.
func (r *Runner) awaitTool(ctx context.Context, name string) (*directory.Snapshot, *directory.Tool, string) {
	extension, _, _ := strings.Cut(name, "/")
	dir := r.awaitDirectory(ctx, func(dir *directory.Snapshot) bool { return !slices.Contains(dir.Starting, extension) })
	return dir, dir.Tool(name), extension
}

// granted returns the tools that an agent may use.
func granted(dir *directory.Snapshot, agent string) (tools []*directory.Tool) {
	for i := range dir.Tools {
		if t := &dir.Tools[i]; dir.MayUse(agent, t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// awaitDirectory returns the first snapshot that is good, or the current one after
// startTimeout.
func (r *Runner) awaitDirectory(ctx context.Context, good func(*directory.Snapshot) bool) *directory.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, _ := r.Directory.Await(ctx, good)
	return dir
}

// Call runs the open call of a turn, or returns its outcome. It returns when ctx
// ends, but the call goes on.
func (r *Runner) Call(ctx context.Context, l *bus.Lease, id string) (*extensionv1.CallResult, error) {
	for {
		call, err := r.read(ctx, l, id)
		if err != nil || call.State.Ended() {
			return ended(call, err)
		}
		run := r.join(l, *call)
		if run == nil {
			return nil, fmt.Errorf("%w: the kernel is stopping", contract.ErrGone)
		}
		select {
		case <-run.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if errors.Is(run.err, contract.ErrStale) && run.lease != l {
			continue // an earlier attempt of the turn ended; the call may still be open
		}
		return run.result, run.err
	}
}

// read returns a call of the lease's session; a call of another session is not found.
func (r *Runner) read(ctx context.Context, l *bus.Lease, id string) (call *journal.Call, err error) {
	err = r.Bus.View(ctx, func(j journal.Reader) (err error) {
		call, err = j.Call(journal.ParseCallID(id))
		if err == nil && (call == nil || call.Session != l.Session || call.Turn == 0 && l.Extension != caller.ID) {
			err = fmt.Errorf("%w: session %s has no call %q", contract.ErrNotFound, journal.SessionID(l.Session), id)
		}
		return err
	})
	return call, err
}

// ended returns the outcome of a call that has ended, or the error of reading it.
func ended(call *journal.Call, err error) (*extensionv1.CallResult, error) {
	switch {
	case err != nil:
		return nil, err
	case call.State == journal.CallClosed:
		return nil, fmt.Errorf("%w: the turn of call %s has ended", contract.ErrStale, journal.CallID(call.ID))
	}
	return &extensionv1.CallResult{Content: call.Result, IsError: call.IsError}, nil
}

// join returns the running call, or starts it; nil: the runner is closed.
func (r *Runner) join(l *bus.Lease, call journal.Call) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.running[call.ID]
	if run == nil && r.closed {
		return nil
	}
	if run == nil {
		if r.running == nil {
			r.running = map[int64]*running{}
		}
		ctx, stop := context.WithCancel(context.Background())
		run = &running{Runner: r, lease: l, call: call, stop: stop, done: make(chan struct{})}
		r.running[call.ID] = run
		r.working.Go(func() { run.run(ctx) })
	}
	run.addHolder(l)
	return run
}

// Running implements session.Calls.
func (r *Runner) Running(call int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[call] != nil
}

// Stop implements session.Calls.
func (r *Runner) Stop(call int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.running[call]; run != nil {
		run.stop()
	}
}

// Interrupt implements session.Calls: it ends the calls of a session that wait, if
// the message may interrupt their turn.
func (r *Runner) Interrupt(session int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.running {
		if run.call.Session == session && run.interrupt != nil && !r.closed {
			r.working.Go(run.interruptIfWanted)
		}
	}
}

func (r *running) run(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("tool %s panicked: %v", r.call.Name, p)
		}
		r.mu.Lock()
		delete(r.running, r.call.ID)
		r.mu.Unlock()
		close(r.done)
		r.stop()
	}()
	r.result, r.err = r.execute(ctx)
}

// execute runs a call until it has its result.
func (r *running) execute(ctx context.Context) (*extensionv1.CallResult, error) {
	// Another request may have run it since it was read.
	call, err := r.read(ctx, r.lease, journal.CallID(r.call.ID))
	if err != nil || call.State.Ended() {
		return ended(call, err)
	}
	r.mu.Lock() // Interrupt reads it
	r.call = *call
	r.mu.Unlock()
	if err := r.readInput(ctx); err != nil {
		return nil, err
	}
	dir, t, refusal := r.resolve(ctx)
	if refusal == "" && r.call.State == journal.CallOpen && dir.NeedsApproval(r.lease.Agent, t) {
		if refusal, err = r.approval(ctx); err != nil {
			return nil, err
		}
		if refusal == "" {
			_, t, refusal = r.resolve(ctx) // time has passed
		}
	}
	if refusal != "" {
		return r.fail(refusal)
	}
	if tool, ok := core[call.Name]; ok && tool.read == nil {
		return tool.run(ctx, r)
	} else if ok {
		q := &extensionv1.CallRequest{
			Arguments: arguments(call.Arguments), Agent: r.lease.Agent, Principal: r.in.principal.Proto(),
		}
		content, err := tool.answer(ctx, r.Runner, q)
		if err != nil {
			return r.fail(err.Error())
		}
		return r.note(content, false)
	}
	return r.remote(ctx, t)
}

// resolve returns the current tool of the call, or why it must not run.
func (r *running) resolve(ctx context.Context) (dir *directory.Snapshot, t *directory.Tool, refusal string) {
	if r.byExtension() {
		return r.resolveForExtension(ctx)
	}
	dir, t, _ = r.awaitTool(ctx, r.call.Name)
	refusal = refuse(dir, r.lease.Agent, t, r.call)
	if refusal == "" && r.in.guest && !t.Tool.GetReadOnly() {
		refusal = fmt.Sprintf("This person is a guest, who may only chat: %s is not for guests. Tell them so.", t.Name)
	}
	return dir, t, refusal
}

// readInput reads the turn of the call and the input that it answers.
func (r *running) readInput(ctx context.Context) error {
	r.event = r.lease.Event
	return r.Bus.View(ctx, func(j journal.Reader) (err error) {
		if r.byExtension() {
			r.in, err = r.readCall(j)
			return err
		}
		if r.turn, err = j.Turn(r.call.Turn); err != nil {
			return err
		}
		if r.turn != nil && r.turn.Inputs[0] != r.event.GetSeq() {
			e, err := j.Event(r.turn.Inputs[0])
			if err != nil {
				return err
			}
			if e != nil {
				r.event = e
			}
		}
		r.in, err = readInput(j, r.lease, r.event)
		return err
	})
}

// commit commits as the kernel, for the call, unless it has ended. The commit
// follows from the input that the turn answers.
func (r *running) commit(apply func(*bus.Tx) error) error {
	lease := r.Bus.LeaseCall(bus.Kernel, r.lease, r.event, r.call.ID)
	defer r.Bus.Release(lease)
	return r.Bus.DoAs(bus.Kernel, lease, apply)
}

// finish stores a result of the kernel itself.
func (r *running) finish(content string, isError bool) (*extensionv1.CallResult, error) {
	content = cut(content)
	return &extensionv1.CallResult{Content: content, IsError: isError}, r.commit(func(tx *bus.Tx) error {
		return r.store(tx, content, isError, nil)
	})
}

// note stores the result of a read-only call of a turn with the next commit. A crash
// before that loses nothing, because the call can be repeated. Later commits of the turn
// come after it.
func (r *running) note(content string, isError bool) (*extensionv1.CallResult, error) {
	if r.byExtension() {
		return r.finish(content, isError)
	}
	content = cut(content)
	now := time.Now().UnixMicro()
	r.Bus.Commit(bus.Change{Lazy: true, Apply: func(tx *bus.Tx) error {
		tx.Now = now // not the time of the commit that writes it
		return r.Sessions.Finish(tx, r.call.ID, content, isError)
	}, Done: func(err error) {
		if err != nil && !errors.Is(err, contract.ErrStale) && !errors.Is(err, journal.ErrClosed) {
			r.Log.Error("store a result", "call", journal.CallID(r.call.ID), "tool", r.call.Name, "error", err)
		}
	}})
	return &extensionv1.CallResult{Content: content, IsError: isError}, nil
}

func (r *running) fail(reason string) (*extensionv1.CallResult, error) { return r.finish(reason, true) }

func cut(s string) string {
	if len(s) <= contract.MaxPayload {
		return s
	}
	return strings.ToValidUTF8(s[:contract.MaxPayload], "") + "\n[cut: the result was longer]"
}
