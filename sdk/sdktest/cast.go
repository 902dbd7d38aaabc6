package sdktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// callerID is the agent that calls the tools of the extension under test, and asks
	// its models.
	callerID = "caller"
	// modelID provides the model of ScriptModel.
	modelID = "scripted"
	// personsID is the channel of people, if the options name none that is ready.
	personsID = "persons"
	// testedModel is the name under which the caller asks for a model.
	testedModel = "tested"
)

// cast is the other extensions, which the test plays.
type cast struct {
	stop func() error // of the kernel; nil: it was not opened

	mu       sync.Mutex
	played   map[string]kernel.Spec
	kernels  map[string]*sdk.Kernel // of those that run
	sent     map[string][]sdk.Message
	persons  string // the channel that people write on; empty: none yet
	fallback string // the default channel
	messages int    // of people

	tools    map[string][]sdk.Tool // by extension
	model    func(*extensionv1.CompleteRequest) ([]*extensionv1.Delta, error)
	asked    string // what testedModel stands for; empty: nothing
	over     chan struct{}
	lanes    int
	free     []*turn
	begun    map[string]chan *turn // by session
	refining map[string][]CallOption
	commands map[string][]CallOption // by the name of the command
}

func newCast() cast {
	return cast{
		played: map[string]kernel.Spec{}, kernels: map[string]*sdk.Kernel{}, sent: map[string][]sdk.Message{},
		tools: map[string][]sdk.Tool{}, over: make(chan struct{}), begun: map[string]chan *turn{},
		refining: map[string][]CallOption{}, commands: map[string][]CallOption{},
	}
}

// leave ends the turns of the caller, so that nothing waits for them.
func (c *cast) leave() { close(c.over) }

func (c *cast) specs() []kernel.Spec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sorted(c.played)
}

// arrange makes the settings for who plays.
func (c *cast) arrange(s *kernel.Settings, tested *kernel.Spec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.DefaultChannel = c.fallback
	s.DefaultAgent = callerID
	if tested.Agent != nil {
		s.DefaultAgent = tested.ID
	}
	if c.asked != "" {
		s.ModelNames = map[string][]string{testedModel: {c.asked}}
	}
}

// play adds an extension that the test plays, unless it plays it already.
func (k *Kernel) play(s kernel.Spec, ext sdk.Extension) {
	k.t.Helper()
	c := &k.cast
	start := ext.Start
	ext.ID = s.ID
	ext.Start = func(ctx context.Context, kernel *sdk.Kernel) error {
		c.mu.Lock()
		c.kernels[s.ID] = kernel
		c.mu.Unlock()
		k.news.tell()
		if start == nil {
			return nil
		}
		return start(ctx, kernel)
	}
	s.Builtin = true
	s.Process = supervisor.Spec{
		Serve: sdk.Local(hclog.NewNullLogger(), ext), ShutdownGrace: Patience,
		Fingerprint: s.Process.Fingerprint, Restart: supervisor.Restart{Policy: supervisor.Never},
	}
	c.mu.Lock()
	c.played[s.ID] = s
	c.mu.Unlock()
}

// plays says whether the test plays an extension.
func (c *cast) plays(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.played[id]
	return ok
}

// join has an extension play that has not yet, and returns its kernel.
func (k *Kernel) join(id string, spec func() (kernel.Spec, sdk.Extension)) *sdk.Kernel {
	k.t.Helper()
	k.now()
	if !k.cast.plays(id) {
		k.play(spec())
		if err := k.apply(); err != nil {
			k.t.Fatalf("sdktest: start of %s: %v", id, err)
		}
	}
	var joined *sdk.Kernel
	k.WaitFor(id+" has started", func() bool { // another goroutine may have made it play
		k.cast.mu.Lock()
		defer k.cast.mu.Unlock()
		joined = k.cast.kernels[id]
		return joined != nil
	})
	return joined
}

// playOptions plays what the options name.
func (k *Kernel) playOptions() {
	k.t.Helper()
	for _, c := range k.options.Channels {
		k.playChannel(c)
	}
	if k.spec.Provides.Channel != nil {
		k.play(k.callerSpec()) // hears what people write, and says nothing
	}
}

func (k *Kernel) playChannel(c *kernelv1.Channel) {
	k.t.Helper()
	readiness := c.GetReadiness()
	if readiness == nil {
		readiness = &extensionv1.Readiness{State: sdk.Ready}
	}
	k.cast.mu.Lock()
	if k.cast.persons == "" && readiness.GetState() == sdk.Ready {
		k.cast.persons = c.GetId()
	}
	if c.GetDefault() {
		k.cast.fallback = c.GetId()
	}
	k.cast.mu.Unlock()
	k.play(kernel.Spec{
		ID: c.GetId(), Name: c.GetName(),
		Provides: kernel.Provides{Channel: &kernel.Channel{
			MaxLength: int(c.GetMaxLength()), Formats: c.GetFormats(), Local: true,
		}},
		Permissions: kernel.Permissions{Publish: []string{contract.TopicUserMessage}},
	}, sdk.Extension{
		Start: func(_ context.Context, kernel *sdk.Kernel) error {
			kernel.SetReadiness(readiness.GetState(), readiness.GetDetail())
			return nil
		},
		Channel: sdk.ChannelFunc(func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
			k.cast.mu.Lock()
			k.cast.sent[c.GetId()] = append(k.cast.sent[c.GetId()], m)
			k.cast.mu.Unlock()
			k.news.tell()
			return sdk.Receipt{ProviderID: m.ID, Conversation: cmp.Or(m.Conversation, "owner"), Thread: m.Thread}, nil
		}),
	})
}

// Sent is what one of the channels that the test plays was given to show, in order.
func (k *Kernel) Sent(channel string) []sdk.Message {
	k.cast.mu.Lock()
	defer k.cast.mu.Unlock()
	return append([]sdk.Message(nil), k.cast.sent[channel]...)
}

// AwaitSent waits until a channel was given n messages and returns all there are.
func (k *Kernel) AwaitSent(channel string, n int) (all []sdk.Message) {
	k.t.Helper()
	k.WaitFor(fmt.Sprintf("%d messages on %s", n, channel), func() bool {
		all = k.Sent(channel)
		return len(all) >= n
	})
	return all
}

// says reports a message of a person on a channel that the test plays, and returns
// the id of its event.
func (k *Kernel) says(m *contract.UserMessage) string {
	k.t.Helper()
	k.now()
	k.cast.mu.Lock()
	k.cast.messages++
	n, channel := k.cast.messages, k.cast.persons
	k.cast.mu.Unlock()
	if channel == "" {
		channel = personsID
		k.playChannel(&kernelv1.Channel{Id: channel, Name: "Persons"})
		if err := k.apply(); err != nil {
			k.t.Fatalf("sdktest: start of %s: %v", channel, err)
		}
	}
	m.UserID = cmp.Or(m.UserID, "anna")
	m.UserName = cmp.Or(m.UserName, "Anna")
	m.ConversationID = cmp.Or(m.ConversationID, "anna")
	m.MessageID = cmp.Or(m.MessageID, fmt.Sprintf("m%d", n))
	k.cast.mu.Lock()
	from := k.cast.kernels[channel]
	k.cast.mu.Unlock()
	results, err := from.Commit(k.t.Context(), sdk.Publish(contract.TopicUserMessage, *m))
	if err != nil {
		k.t.Fatalf("sdktest: report the message of a person: %v", err)
	}
	return results[0].GetEventId()
}

// Publish publishes an event of another extension, and returns its id.
func (k *Kernel) Publish(source, topic string, payload any, options ...sdk.PublishOption) string {
	k.t.Helper()
	from := k.join(source, func() (kernel.Spec, sdk.Extension) {
		return kernel.Spec{ID: source, Permissions: kernel.Permissions{Publish: []string{"*", "system.*"}}}, sdk.Extension{}
	})
	results, err := from.Commit(k.t.Context(), sdk.Publish(topic, payload, options...))
	if err != nil {
		k.t.Fatalf("sdktest: publish %s: %v", topic, err)
	}
	return results[0].GetEventId()
}

// ScriptTool gives the kernel a tool of another extension, <extension>/<name>; run
// answers its calls.
func (k *Kernel) ScriptTool(tool *extensionv1.Tool, run func(arguments []byte) *extensionv1.CallResult) {
	k.t.Helper()
	id, name, ok := strings.Cut(tool.GetName(), "/")
	if !ok {
		k.t.Fatalf("sdktest: tool %q: its name has no extension", tool.GetName())
	}
	c := &k.cast
	c.mu.Lock()
	c.tools[id] = append(c.tools[id], sdk.Tool{
		Name: name, Description: cmp.Or(tool.GetDescription(), "A scripted tool."), Schema: tool.GetSchema(),
		ReadOnly: tool.GetReadOnly(), Idempotent: tool.GetIdempotent(), Final: tool.GetFinal(),
		Call: func(_ context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
			r := run(call.Arguments)
			return sdk.ToolResult{Content: r.GetContent(), IsError: r.GetIsError()}, nil
		},
	})
	tools := c.tools[id]
	c.mu.Unlock()
	k.play(kernel.Spec{
		ID: id, Provides: kernel.Provides{Tools: true},
		Process: supervisor.Spec{Fingerprint: fmt.Sprint(len(tools))},
	}, sdk.Extension{Tools: tools})
	k.applyIfRunning()
}

// ScriptModel answers all completions that name no other model: with the deltas, then
// with the error if there is one.
func (k *Kernel) ScriptModel(complete func(*extensionv1.CompleteRequest) ([]*extensionv1.Delta, error)) {
	k.t.Helper()
	k.cast.mu.Lock()
	k.cast.model = complete
	k.cast.mu.Unlock()
	if k.cast.plays(modelID) {
		return
	}
	k.play(kernel.Spec{ID: modelID, Provides: kernel.Provides{Models: []string{modelID + "/*"}}},
		sdk.Extension{Models: scripted{k}})
	k.applyIfRunning()
}

func (k *Kernel) applyIfRunning() {
	k.t.Helper()
	if k.running() == nil {
		return
	}
	if err := k.apply(); err != nil {
		k.t.Fatalf("sdktest: %v", err)
	}
}

type scripted struct{ k *Kernel }

// Complete implements sdk.Models.
func (s scripted) Complete(_ context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	s.k.cast.mu.Lock()
	model := s.k.cast.model
	s.k.cast.mu.Unlock()
	deltas, err := model(r)
	for _, d := range deltas {
		if err := emit(d); err != nil {
			return err
		}
	}
	return err
}

// caller is the agent that calls tools.
func (k *Kernel) caller() *sdk.Kernel {
	k.t.Helper()
	return k.join(callerID, k.callerSpec)
}

func (k *Kernel) callerSpec() (kernel.Spec, sdk.Extension) {
	return kernel.Spec{
		ID: callerID, Name: "Caller",
		Agent: &kernel.Agent{Spec: &extensionv1.AgentSpec{
			UsesTools: k.usable(), TurnTimeoutMs: (60 * Patience).Milliseconds(),
		}},
		Permissions: kernel.Permissions{Effects: []string{"session.ensure", "input"}, Models: []string{testedModel}},
	}, sdk.Extension{HandleAgent: k.cast.hears}
}

// usable are the tools of the caller: all, and the private ones by their names.
func (k *Kernel) usable() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string{"*"}, k.tools...)
}

// turn is a turn of the caller, in which it makes one call after the other.
type turn struct {
	ctx     context.Context
	session string
	seq     int64 // the newest row of the history
	begun   bool
	input   *busv1.Entry
	done    chan struct{}
}

// hears begins a turn of the caller, which lasts until nothing more can be called in
// it.
func (c *cast) hears(ctx context.Context, d sdk.Delivery) (sdk.Effects, error) {
	t := &turn{
		ctx: ctx, session: d.Turn.GetSession(), seq: d.Turn.GetHistorySeq(), done: make(chan struct{}),
		input: &busv1.Entry{Kind: contract.EntryInput, InputKind: contract.InputTask, Input: d.ID, Text: "call"},
	}
	c.mu.Lock()
	waiting := c.begun[t.session]
	delete(c.begun, t.session)
	c.mu.Unlock()
	if waiting != nil {
		waiting <- t
	}
	select {
	case <-c.over:
	case <-t.done:
	case <-ctx.Done():
	}
	return nil, sdk.Retry(60*Patience, errors.New("the test is over"))
}

// turn returns a turn of the caller in which nothing is being called.
func (k *Kernel) turn(ctx context.Context) (*turn, error) {
	k.t.Helper()
	caller, c := k.caller(), &k.cast
	c.mu.Lock()
	if n := len(c.free); n > 0 {
		t := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		return t, nil
	}
	c.lanes++
	key := fmt.Sprint("call:", c.lanes)
	c.mu.Unlock()
	results, err := caller.Commit(ctx, sdk.Raw(&busv1.SessionEnsure{Agent: callerID, Key: key}))
	if err != nil {
		return nil, err
	}
	session, begun := results[0].GetSession(), make(chan *turn, 1)
	c.mu.Lock()
	c.begun[session] = begun
	c.mu.Unlock()
	in := &busv1.Input{Session: session, Kind: contract.InputTask, Text: "call"}
	if _, err := caller.Commit(ctx, sdk.Raw(in)); err != nil {
		return nil, err
	}
	select {
	case t := <-begun:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// call makes one call in the turn.
func (k *Kernel) call(
	ctx context.Context, t *turn, name string, arguments []byte, options []CallOption,
) (*extensionv1.CallResult, error) {
	k.t.Helper()
	caller, c := k.caller(), &k.cast
	rows := []*busv1.Entry{{Kind: contract.EntryAnswer, Calls: []*busv1.Call{{Name: name, Arguments: arguments}}}}
	if !t.begun {
		rows = append([]*busv1.Entry{t.input}, rows...)
	}
	results, err := caller.Commit(t.ctx, sdk.Raw(&busv1.Append{Session: t.session, ExpectedSeq: t.seq, Entries: rows}))
	if err != nil {
		return nil, err
	}
	t.begun, t.seq = true, results[0].GetSeq()
	id := results[0].GetCalls()[0].GetCallId()
	c.mu.Lock()
	c.refining[id] = options
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.refining, id)
	}()
	result, err := caller.Services().Tools.Call(ctx, &kernelv1.CallToolRequest{CallId: id, Lane: sdk.LaneOf(t.ctx)})
	if err != nil {
		close(t.done) // the call is open: nothing can follow
		return nil, contract.FromStatus(err)
	}
	t.seq++ // the row of the result
	c.release(t)
	return result, nil
}

// release has the next call made in the turn.
func (c *cast) release(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, t)
}

// refine changes the context of a call as its options say. Without them the call of an
// agent sees everything, as the owner's command line does.
func (c *cast) refine(r *extensionv1.CallRequest) {
	if r.GetCommand() == "" {
		r.Principal = &extensionv1.Principal{Conversation: r.GetPrincipal().GetConversation()}
	}
	c.mu.Lock()
	options := c.refining[r.GetCallId()]
	if r.GetCommand() != "" {
		options = c.commands[r.GetCommand()]
	}
	c.mu.Unlock()
	for _, o := range options {
		o(r)
	}
}
