package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// errKilled is the error of everything that a killed process does.
var errKilled = errors.New("killed")

// world is a kernel with one session, kept in memory: what is recorded in it
// survives the processes that use it.
type world struct {
	mu       sync.Mutex
	rows     []*busv1.Entry
	turn     int64 // 0: none open
	stack    []interruptedTurn
	times    int // how often the open turn was interrupted
	turns    int64
	inputs   map[string]bool // events taken by the open turn
	calls    map[string]*busv1.Call
	results  map[string]*extensionv1.CallResult
	outputs  []contract.AgentOutput
	settled  []string
	commits  int
	discards bool  // keeps no requests
	pruned   int64 // rows that are gone
	dead     bool  // the process
	stale    bool  // the lane is lost

	tools    []*extensionv1.Tool
	run      map[string]func(ctx context.Context, c *busv1.Call) (*extensionv1.CallResult, error)
	model    func(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error
	sent     []*kernelv1.CompleteRequest // requests as they were sent
	requests []*kernelv1.CompleteRequest // without preambles
	ran      []string                    // calls that ran, in order
	waiting  []*busv1.Event
	channels []*kernelv1.Channel
	drafts   []string
	knows    func(context.Context) (*extensionv1.CallResult, error) // answers what is asked without a row
	asked    []string
	rpcs     []string
	context  *busv1.TurnContext // template
	files    map[string][]byte  // of the session, by name

	draining context.Context // nil: the agent is never shut down

	// fault is asked before and after every step that a process can die at.
	fault func(point string) bool
}

// interruptedTurn is a turn below the open one.
type interruptedTurn struct {
	id     int64
	inputs map[string]bool
	times  int
}

func newWorld() *world {
	return &world{
		inputs: map[string]bool{}, calls: map[string]*busv1.Call{},
		results: map[string]*extensionv1.CallResult{},
		run:     map[string]func(context.Context, *busv1.Call) (*extensionv1.CallResult, error){},
		context: &busv1.TurnContext{
			Session: "s1", Channel: "cli_channel", ChannelName: "Terminal", Timezone: "Europe/Berlin",
			ToolsEtag: "t1", ChannelsEtag: "c1",
		},
		channels: []*kernelv1.Channel{{Id: "cli_channel", Name: "Terminal", Drafts: true}},
	}
}

// tool adds a tool that answers with its name and arguments.
func (w *world) tool(name string, readOnly bool) {
	w.tools = append(w.tools, &extensionv1.Tool{Name: name, Description: name, Schema: []byte(`{}`), ReadOnly: readOnly})
	w.run[name] = func(_ context.Context, c *busv1.Call) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: c.GetName() + " did " + string(c.GetArguments())}, nil
	}
}

// agent is a new process of the agent.
func (w *world) agent(t *testing.T, spec *extensionv1.AgentSpec) *Agent {
	t.Helper()
	a := New(Options{})
	a.start(w, "Assistant", spec, Plain{}, time.UTC, hclog.NewNullLogger())
	return a
}

func (w *world) Draining() context.Context {
	if w.draining == nil {
		return context.Background()
	}
	return w.draining
}

// dies reports whether the process is dead at this point: from then on nothing
// that it does has any effect.
func (w *world) dies(point string) bool {
	w.dead = w.dead || w.fault != nil && w.fault(point)
	return w.dead
}

// enter counts a call of the agent.
func (w *world) enter(ctx context.Context, rpc string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rpcs = append(w.rpcs, rpc)
	switch {
	case w.stale:
		return fmt.Errorf("%s: %w", rpc, contract.ErrStale)
	case w.dies("before " + rpc):
		return errKilled
	}
	return ctx.Err()
}

func (w *world) leave(rpc string) error {
	if w.dies("after " + rpc) {
		return errKilled
	}
	return nil
}

func (w *world) History(ctx context.Context, session string, after, maxBytes int64) ([]*busv1.Entry, bool, error) {
	if err := w.enter(ctx, "history"); err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*busv1.Entry
	for i := len(w.rows) - 1; i >= 0 && w.rows[i].GetSeq() > after; i-- {
		maxBytes -= int64(len(w.rows[i].GetText()))
		if maxBytes < 0 && len(out) > 0 && (w.rows[i].GetTurn() == 0 || w.rows[i].GetTurn() != out[0].GetTurn()) {
			return out, true, nil
		}
		e := proto.CloneOf(w.rows[i])
		for _, c := range e.GetCalls() {
			c.State = w.calls[c.GetCallId()].GetState()
		}
		out = slices.Insert(out, 0, e)
	}
	return out, false, nil
}

func (w *world) GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error) {
	if err := w.enter(ctx, "blob"); err != nil {
		return sdk.Blob{}, err
	}
	data, known := w.files[name]
	if !known {
		return sdk.Blob{}, fmt.Errorf("%w: there is no file %q here", contract.ErrNotFound, name)
	}
	_, err := to.Write(data)
	return sdk.Blob{Hash: name, Size: int64(len(data))}, err
}

func (w *world) Pending(ctx context.Context) ([]*busv1.Event, error) {
	return w.waiting, w.enter(ctx, "pending")
}

func (w *world) ListTools(ctx context.Context) ([]*extensionv1.Tool, error) {
	return w.tools, w.enter(ctx, "tools")
}

func (w *world) Channels(ctx context.Context) ([]*kernelv1.Channel, error) {
	return w.channels, w.enter(ctx, "channels")
}

func (w *world) CallTool(ctx context.Context, id string) (*extensionv1.CallResult, error) {
	if err := w.enter(ctx, "call"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	c, done := w.calls[id], w.results[id]
	w.mu.Unlock()
	switch {
	case done != nil:
		return done, nil
	case c == nil || c.GetState() == "closed":
		return nil, fmt.Errorf("call %s: %w", id, contract.ErrNotFound)
	}
	run := w.run[c.GetName()]
	var result *extensionv1.CallResult
	if run == nil {
		result = &extensionv1.CallResult{Content: "there is no tool " + c.GetName(), IsError: true}
	} else {
		var err error
		if result, err = run(ctx, c); err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.ran = append(w.ran, c.GetName()+string(c.GetArguments()))
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale {
		return nil, contract.ErrStale
	}
	if w.dead {
		return nil, errKilled
	}
	c.State = "done"
	w.results[id] = result
	result = proto.CloneOf(result)
	result.Waiting = int32(len(w.waiting))
	w.add(&busv1.Entry{Kind: contract.EntryResult, CallId: id, Text: result.GetContent(), IsError: result.GetIsError()})
	return result, w.leave("call")
}

func (w *world) Complete(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
	if err := w.enter(ctx, "complete"); err != nil {
		return err
	}
	w.mu.Lock()
	if !w.discards {
		w.sent = append(w.sent, proto.CloneOf(r))
	}
	r = withoutPreambles(r)
	if !w.discards {
		w.requests = append(w.requests, r)
	}
	w.mu.Unlock()
	if err := w.model(ctx, r, emit); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leave("complete")
}

// withoutPreambles removes the preambles from a copy of a request.
func withoutPreambles(r *kernelv1.CompleteRequest) *kernelv1.CompleteRequest {
	r = proto.CloneOf(r)
	r.Messages = slices.DeleteFunc(r.GetMessages(), func(m *extensionv1.Message) bool {
		preamble, text := SplitPreamble(m.GetContent())
		m.Content = text
		return preamble != "" && text == ""
	})
	return r
}

func (w *world) Drafts(ctx context.Context) (drafts, error) {
	return w, ctx.Err() // drafts are no crash points
}

func (w *world) Show(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drafts = append(w.drafts, text)
	return nil
}

func (w *world) Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	if err := w.enter(ctx, "commit"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	results, err := w.apply(effects)
	if err != nil {
		return nil, err
	}
	return results, w.leave("commit")
}

// apply applies effects as one transaction. The caller holds w.mu.
func (w *world) apply(effects sdk.Effects) ([]*busv1.EffectResult, error) {
	var results []*busv1.EffectResult
	w.commits++
	for _, e := range effects {
		p, err := e.Proto()
		if err != nil {
			return nil, err
		}
		if _, err := proto.Marshal(p); err != nil {
			return nil, err
		}
		switch k := proto.CloneOf(p).GetKind().(type) {
		case *busv1.Effect_Append:
			if k.Append.GetExpectedSeq() != w.seq() {
				return nil, fmt.Errorf("append after %d, the history has %d: %w", k.Append.GetExpectedSeq(), w.seq(),
					contract.ErrConflict)
			}
			r := &busv1.EffectResult{}
			for _, row := range k.Append.GetEntries() {
				if row.GetKind() == contract.EntryInput {
					if w.inputs[row.GetInput()] {
						return nil, fmt.Errorf("input %s twice", row.GetInput())
					}
					w.inputs[row.GetInput()] = true
				}
				if w.turn == 0 && row.GetInputKind() != contract.InputRecord {
					w.turns++
					w.turn = w.turns
				}
				for _, c := range row.GetCalls() {
					c.CallId, c.State = fmt.Sprintf("c%d", len(w.calls)+1), "open"
					w.calls[c.GetCallId()] = proto.CloneOf(c)
					r.Calls = append(r.Calls, proto.CloneOf(c))
				}
				w.add(row)
			}
			r.Seq, r.Waiting = w.seq(), int32(len(w.waiting))
			results = append(results, r)
		case *busv1.Effect_Publish:
			var o contract.AgentOutput
			if err := json.Unmarshal(k.Publish.GetPayload(), &o); err != nil {
				return nil, err
			}
			w.endTurn(o)
			r := &busv1.EffectResult{EventId: "e1000"}
			if w.turn != 0 {
				r.Turn = w.contextNow()
			}
			results = append(results, r)
		case *busv1.Effect_Steer:
			if err := w.steer(k.Steer); err != nil {
				return nil, err
			}
			results = append(results, &busv1.EffectResult{Turn: w.contextNow(), Seq: w.seq()})
		default:
			return nil, fmt.Errorf("effect %T is not expected", k)
		}
	}
	return results, nil
}

func (w *world) add(e *busv1.Entry) {
	e.Seq, e.Turn = w.seq()+1, w.turn
	if e.GetInputKind() == contract.InputRecord {
		e.Turn = 0
	}
	w.rows = append(w.rows, e)
}

func (w *world) seq() int64 { return w.pruned + int64(len(w.rows)) }

func (w *world) endTurn(o contract.AgentOutput) {
	o.Turn = w.turn
	w.outputs = append(w.outputs, o)
	for _, c := range w.calls {
		if c.GetState() == "open" {
			c.State = "closed"
		}
	}
	for id := range w.inputs {
		w.settled = append(w.settled, id)
	}
	w.inputs = map[string]bool{}
	w.turn, w.times = 0, 0
	if n := len(w.stack); n > 0 {
		below := w.stack[n-1]
		w.stack = w.stack[:n-1]
		w.turn, w.inputs, w.times = below.id, below.inputs, below.times
	}
}

// steer begins a turn above the open one. The caller holds w.mu.
func (w *world) steer(s *busv1.Steer) error {
	if w.times >= contract.MaxInterruptions {
		return fmt.Errorf("interrupted too often: %w", contract.ErrInvalid)
	}
	for i, id := range s.GetInputs() {
		if i >= len(w.waiting) || w.waiting[i].GetId() != id {
			return fmt.Errorf("input %s is not waiting: %w", id, contract.ErrConflict)
		}
	}
	w.waiting = w.waiting[len(s.GetInputs()):]
	for i := range len(w.calls) {
		if c := w.calls[fmt.Sprintf("c%d", i+1)]; c.GetState() == "open" {
			c.State = "closed"
			w.add(&busv1.Entry{Kind: contract.EntryResult, CallId: c.GetCallId(), Text: contract.SkippedCall, IsError: true})
		}
	}
	w.stack = append(w.stack, interruptedTurn{w.turn, w.inputs, w.times})
	for i := range w.stack {
		w.stack[i].times++
	}
	w.turns++
	w.turn, w.inputs, w.times = w.turns, map[string]bool{}, w.stack[len(w.stack)-1].times
	return nil
}

// contextNow returns the context of the open turn. The caller holds w.mu.
func (w *world) contextNow() *busv1.TurnContext {
	tc := proto.CloneOf(w.context)
	tc.Turn, tc.Resumed, tc.Interruptions = w.turn, w.turn != 0, int32(w.times)
	tc.HistorySeq, tc.Waiting = w.seq(), int32(len(w.waiting))
	if n := len(w.stack); n > 0 {
		tc.Below = w.stack[n-1].id
	}
	return tc
}

// input returns an event of the session's queue.
func input(id string, in contract.AgentInput) *busv1.Event {
	in.Session = "s1"
	b, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return &busv1.Event{Id: id, Topic: "agent.input.orchestrator", Key: "s1", Payload: b,
		CreatedAtUs: time.Now().UnixMicro()}
}

func user(text string) contract.AgentInput {
	return contract.AgentInput{Kind: contract.InputUser, Sender: "Anna", Text: text, ReplyTo: "h1"}
}

// deliver hands one input to a process and applies its outcome.
func (w *world) deliver(ctx context.Context, a *Agent, e *busv1.Event) error {
	w.mu.Lock()
	w.dead = false
	tc := w.contextNow()
	w.mu.Unlock()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer time.AfterFunc(a.limits.time, func() { end(sdk.ErrEnded) }).Stop() // as the kernel does
	effects, err := a.Handle(ctx, sdk.Delivery{
		Event: sdk.Event{ID: e.GetId(), Topic: e.GetTopic(), Payload: e.GetPayload(),
			CreatedAt: time.UnixMicro(e.GetCreatedAtUs())},
		Token: "lane", Turn: tc,
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errKilled
	}
	if err != nil {
		return err
	}
	if w.stale {
		return contract.ErrStale
	}
	if w.dies("before ack") {
		return errKilled
	}
	_, err = w.apply(effects)
	return err
}

// finish delivers until the input is settled, with a new process after each
// failure.
func (w *world) finish(t *testing.T, spec *extensionv1.AgentSpec, e *busv1.Event) {
	t.Helper()
	for range 20 {
		if err := w.deliver(t.Context(), w.agent(t, spec), e); err == nil {
			return
		} else if !errors.Is(err, errKilled) {
			t.Fatalf("turn failed: %v", err)
		}
	}
	t.Fatal("the turn does not end")
}

// says is a model that answers by the number of answers in the request.
func says(answers ...*said) func(context.Context, *kernelv1.CompleteRequest, func(*sdk.Delta) error) error {
	return func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		n := 0
		for i, m := range r.GetMessages() {
			if m.GetRole() == "user" && !strings.HasPrefix(m.GetContent(), "[note") && i > 0 {
				n = 0
			}
			if m.GetRole() == "assistant" {
				n++
			}
		}
		if n >= len(answers) {
			return fmt.Errorf("the script has no answer %d", n)
		}
		return answers[n].emit(emit)
	}
}

type said struct {
	text   string
	calls  []*busv1.Call
	finish string
}

func text(s string) *said { return &said{text: s} }

func calls(names ...string) *said {
	s := &said{}
	for i, n := range names {
		s.calls = append(s.calls, &busv1.Call{ProviderId: fmt.Sprintf("p%d", i), Name: n,
			Arguments: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return s
}

func (s *said) emit(emit func(*sdk.Delta) error) error {
	if s.text != "" {
		if err := emit(&sdk.Delta{Text: s.text, Model: "test/model"}); err != nil {
			return err
		}
	}
	for _, c := range s.calls {
		if err := emit(&sdk.Delta{Call: c}); err != nil {
			return err
		}
	}
	return emit(&sdk.Delta{Finish: s.finish})
}

func (w *world) Ask(ctx context.Context, tool string, arguments []byte) (*extensionv1.CallResult, error) {
	w.mu.Lock()
	w.asked = append(w.asked, tool+string(arguments))
	w.mu.Unlock()
	if w.knows == nil {
		return nil, contract.ErrNotFound
	}
	return w.knows(ctx)
}
