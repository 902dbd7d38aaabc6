// Package tools runs tool calls, each made once: a call is a row of a session's
// history, and its result, its effects and its row of the history are one
// commit. A repeated request joins the running call or returns the stored
// result. The kernel's own tools (core/...) are here too.
//
// A call outlives the attempt of the turn that asked for it: when the agent's
// process ends meanwhile, the result is stored, and the resumed turn finds it.
// A call of a tool that must not run twice is marked before it starts; if its
// outcome is lost, the result says so and the model decides.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
)

const (
	callTimeout  = 10 * time.Minute // of one call, whatever it does
	absent       = 30 * time.Second // how long a call waits for its extension to come back
	late         = 10 * time.Second // how long an extension is waited for that is being started for the first time
	maxConflicts = 10
)

// Remote reaches the extensions.
type Remote interface {
	// CallTool runs a tool of a running extension. It wraps contract.ErrGone if
	// the process ended meanwhile, and contract.ErrUnavailable if none is running.
	CallTool(ctx context.Context, extension string, r *extensionv1.CallRequest) (*extensionv1.CallResult, error)
	// Actor is who the running extension is; nil if none is running.
	Actor(extension string) *bus.Actor
}

// Runner runs tool calls. It is safe for concurrent use.
type Runner struct {
	Bus       *bus.Bus
	Sessions  *session.Book
	Directory *directory.Directory
	Router    *router.MessageRouter
	Remote    Remote
	Log       hclog.Logger

	mu      sync.Mutex
	running map[int64]*running
	core    map[string]coreTool
}

type running struct {
	done   chan struct{}
	result *extensionv1.CallResult
	err    error
}

// List returns the tools that an agent may use, under their full names, and
// what changes when they do. It waits for extensions that are being started for
// the first time: until then nobody knows what they offer.
func (r *Runner) List(ctx context.Context, agent string) ([]*extensionv1.Tool, string) {
	now := r.known(ctx, func(now *directory.Snapshot) bool {
		return !slices.ContainsFunc(now.Arriving, func(id string) bool { return now.UsesToolsOf(agent, id) })
	})
	return list(now, agent), now.ToolsEtag
}

// known is the directory as soon as it is good, or late is over.
func (r *Runner) known(ctx context.Context, good func(*directory.Snapshot) bool) *directory.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, late)
	defer cancel()
	now, _ := r.Directory.Await(ctx, good)
	return now
}

func list(now *directory.Snapshot, agent string) []*extensionv1.Tool {
	var granted []*extensionv1.Tool
	for i := range now.Tools {
		t := &now.Tools[i]
		if !now.MayUse(agent, t) {
			continue
		}
		granted = append(granted, &extensionv1.Tool{
			Name: t.Name, Description: t.Tool.GetDescription(), Schema: t.Tool.GetSchema(), ReadOnly: t.Tool.GetReadOnly(),
			Idempotent: t.Tool.GetIdempotent(), Interruptible: t.Tool.GetInterruptible(), Private: t.Tool.GetPrivate(),
		})
	}
	return granted
}

// Call runs the open call of a turn, or returns what became of it.
func (r *Runner) Call(ctx context.Context, l *bus.Lease, id string) (*extensionv1.CallResult, error) {
	var call *journal.Call
	if err := r.Bus.View(ctx, func(j journal.Reader) (err error) {
		call, err = r.Sessions.Call(j, l.Session, id)
		return err
	}); err != nil {
		return nil, err
	}
	switch call.State {
	case journal.CallFinished:
		return &extensionv1.CallResult{Content: call.Result, IsError: call.IsError}, nil
	case journal.CallClosed:
		return nil, fmt.Errorf("%w: the turn of call %s has ended", contract.ErrStale, id)
	}
	r.mu.Lock()
	run := r.running[call.ID]
	if run == nil {
		if r.running == nil {
			r.running = map[int64]*running{}
		}
		run = &running{done: make(chan struct{})}
		r.running[call.ID] = run
		go r.run(run, l, *call)
	}
	r.mu.Unlock()
	select {
	case <-run.done:
		return run.result, run.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Runner) run(run *running, l *bus.Lease, call journal.Call) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			run.err = fmt.Errorf("tool %s panicked: %v", call.Name, p)
		}
		r.mu.Lock()
		delete(r.running, call.ID)
		r.mu.Unlock()
		close(run.done)
	}()
	run.result, run.err = r.once(ctx, l, call)
}

// once runs a call to its one result.
func (r *Runner) once(ctx context.Context, l *bus.Lease, call journal.Call) (*extensionv1.CallResult, error) {
	owner, _, _ := strings.Cut(call.Name, "/")
	now := r.known(ctx, func(now *directory.Snapshot) bool { return !slices.Contains(now.Arriving, owner) })
	t := now.Tool(call.Name)
	if refusal := r.refuse(now, l.Agent, t, call); refusal != "" {
		return r.finish(l, call, &extensionv1.CallResult{Content: refusal, IsError: true})
	}
	if core, ok := r.coreTools()[call.Name]; ok {
		return core.run(ctx, r, l, call)
	}
	repeatable := t.Tool.GetReadOnly() || t.Tool.GetIdempotent()
	if call.State == journal.CallRunning && !repeatable {
		return r.finish(l, call, unknownOutcome(call.Name))
	}
	if !repeatable {
		if err := r.Bus.Do(func(tx *bus.Tx) error { return r.Sessions.Start(tx, call.ID, "") }); err != nil {
			return nil, err
		}
	}
	return r.remote(ctx, l, call, t, repeatable)
}

func (r *Runner) remote(ctx context.Context, l *bus.Lease, call journal.Call, t *directory.Tool, repeatable bool) (*extensionv1.CallResult, error) {
	request, err := r.request(ctx, l, call, t)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(absent)
	for conflicts := 0; ; {
		actor := r.Remote.Actor(t.Extension)
		var result *extensionv1.CallResult
		err := fmt.Errorf("%w: %s is not running", contract.ErrUnavailable, t.Extension)
		if actor != nil {
			lease := r.Bus.LeaseCall(actor, l, call.ID)
			request.Lane = lease.Token
			result, err = r.Remote.CallTool(ctx, t.Extension, request)
			if err == nil {
				result, err = r.commit(lease, actor, l, call, result)
			}
			r.Bus.Release(lease)
		}
		switch {
		case err == nil || errors.Is(err, contract.ErrStale):
			return result, err
		case errors.Is(err, contract.ErrConflict) && conflicts < maxConflicts:
			conflicts++
		case errors.Is(err, contract.ErrGone) && !repeatable:
			return r.finish(l, call, unknownOutcome(call.Name))
		case errors.Is(err, contract.ErrGone), errors.Is(err, contract.ErrUnavailable):
			if time.Now().After(deadline) || ctx.Err() != nil {
				return r.finish(l, call, &extensionv1.CallResult{IsError: true, Content: fmt.Sprintf(
					"%s cannot run now: its extension %s is not running. Tell the user; nothing was done.", call.Name, t.Extension)})
			}
			request.Repeat = errors.Is(err, contract.ErrGone)
			time.Sleep(100 * time.Millisecond)
		default:
			return r.finish(l, call, &extensionv1.CallResult{IsError: true, Content: err.Error()})
		}
	}
}

func (r *Runner) request(ctx context.Context, l *bus.Lease, call journal.Call, t *directory.Tool) (*extensionv1.CallRequest, error) {
	request := &extensionv1.CallRequest{
		CallId: journal.CallID(call.ID), Name: t.Tool.GetName(), Arguments: arguments(call.Arguments), Session: journal.SessionID(call.Session),
		Agent: l.Agent, Timezone: r.Directory.Current().Location.String(), Repeat: call.State == journal.CallRunning,
	}
	var in contract.AgentInput
	if err := json.Unmarshal(l.Event.GetPayload(), &in); err == nil {
		request.Sender, request.ReplyTo = in.Sender, in.ReplyTo
	}
	return request, r.Bus.View(ctx, func(j journal.Reader) error {
		if request.ReplyTo == "" {
			s, err := j.Session(call.Session)
			if err != nil || s == nil || s.OutboundKind != directory.OutboundConversation {
				return err
			}
			request.ReplyTo = s.OutboundTarget
		}
		request.Channel = strings.TrimPrefix(request.ReplyTo, "#")
		if c, err := j.ConversationByHandle(request.ReplyTo); err != nil {
			return err
		} else if c != nil {
			request.Channel = c.Channel
		}
		return nil
	})
}

// commit stores result, effects and history row at once, as the tool's
// extension.
func (r *Runner) commit(lease *bus.Lease, actor *bus.Actor, l *bus.Lease, call journal.Call, result *extensionv1.CallResult) (*extensionv1.CallResult, error) {
	result.Content = cut(result.GetContent())
	err := r.Bus.DoAs(actor, lease, func(tx *bus.Tx) error {
		if _, err := tx.Apply(result.GetEffects()); err != nil {
			return err
		}
		return r.Sessions.Finish(tx, call.ID, result.GetContent(), result.GetIsError())
	})
	if err != nil {
		return nil, err
	}
	return &extensionv1.CallResult{Content: result.GetContent(), IsError: result.GetIsError()}, nil
}

// finish stores a result that the kernel gives itself.
func (r *Runner) finish(_ *bus.Lease, call journal.Call, result *extensionv1.CallResult) (*extensionv1.CallResult, error) {
	result.Content = cut(result.GetContent())
	err := r.Bus.Do(func(tx *bus.Tx) error {
		return r.Sessions.Finish(tx, call.ID, result.GetContent(), result.GetIsError())
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// refuse says why a call must not run: the reason is for the model.
func (r *Runner) refuse(now *directory.Snapshot, agent string, t *directory.Tool, call journal.Call) string {
	if t == nil || !now.MayUse(agent, t) {
		granted := list(now, agent)
		names := make([]string, len(granted))
		for i, g := range granted {
			names[i] = g.GetName()
		}
		if t != nil {
			return fmt.Sprintf("The tool %s is not granted to this agent: its manifest lacks \"uses_tools: [%s]\". Granted: %s.", call.Name, call.Name, strings.Join(names, ", "))
		}
		return fmt.Sprintf("There is no tool %q. There are: %s.", call.Name, strings.Join(names, ", "))
	}
	return misfit(t, call.Arguments)
}

// misfit says what is wrong with the arguments of a call.
func misfit(t *directory.Tool, raw []byte) string {
	var v any
	if err := json.Unmarshal(arguments(raw), &v); err != nil {
		return fmt.Sprintf("The arguments of %s are no JSON (%v). Call it again with a JSON object that fits its schema.", t.Name, err)
	}
	if t.Schema == nil {
		return ""
	}
	if err := t.Schema.Validate(v); err != nil {
		return fmt.Sprintf("The arguments of %s do not fit its schema: %s. Call it again with arguments that do.", t.Name, firstLines(err.Error()))
	}
	return ""
}

// arguments treats none as an empty object, as models do.
func arguments(raw []byte) []byte {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return []byte("{}")
	}
	return raw
}

func firstLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > 1 {
		lines = lines[1:] // the first one names the schema's address
	}
	return strings.Join(lines[:min(len(lines), 5)], " ")
}

func cut(s string) string {
	if len(s) <= contract.MaxPayload {
		return s
	}
	return strings.ToValidUTF8(s[:contract.MaxPayload], "") + "\n[cut: the result was longer]"
}

func unknownOutcome(name string) *extensionv1.CallResult {
	return &extensionv1.CallResult{IsError: true, Content: name + " was interrupted while it ran: it is unknown whether it had its effect. " +
		"Do not simply repeat it: find out first, or tell the user."}
}
