package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

type note struct {
	Text string `json:"text"`
}

// notebook has one of everything.
func notebook() sdk.Extension {
	var kernel *sdk.Kernel
	return sdk.Extension{
		ID: "notebook",
		Start: func(_ context.Context, k *sdk.Kernel) error {
			kernel = k
			return nil
		},
		Channel: book{},
		Models:  book{},
		Tools: []sdk.Tool{{
			Name: "write", Description: "Writes a note.", Command: "note",
			Schema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
			Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				var n note
				if err := json.Unmarshal(c.Arguments, &n); err != nil {
					return sdk.ToolResult{}, err
				}
				if n.Text == "" {
					return sdk.ToolResult{}, errors.New("text is missing")
				}
				return sdk.JSON(map[string]bool{"written": true}, sdk.Put("note", n))
			},
		}},
		Handle: func(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
			var n note
			switch e.Topic {
			case "notebook.add":
				if err := e.Decode(&n); err != nil {
					return nil, err
				}
				return sdk.Effects{sdk.Put("note", n), sdk.Publish("notebook.added", n, sdk.Dedupe(e.ID))}, nil
			case "notebook.count":
				v, err := kernel.Get(ctx, "count")
				if err != nil {
					return nil, err
				}
				var count int
				if v.Version != 0 {
					if err := v.Decode(&count); err != nil {
						return nil, err
					}
				}
				return sdk.Effects{sdk.PutAt("count", count+1, v.Version)}, nil
			default:
				return nil, sdk.Drop("unknown topic " + e.Topic)
			}
		},
	}
}

type book struct{}

func (book) Send(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
	return sdk.Receipt{ProviderID: m.ID + ":" + m.Text, Conversation: m.Conversation}, nil
}

func (book) Draft(context.Context, sdk.Draft) {}

func (book) Complete(_ context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	return emit(&sdk.Delta{Text: "you said " + r.GetMessages()[0].GetContent(), Finish: "stop"})
}

const manifest = "testdata/notebook/manifest.yaml"

func start(t *testing.T) *sdktest.Kernel {
	t.Helper()
	return sdktest.Start(t, notebook(), sdktest.Options{Manifest: manifest})
}

func TestNotebookConforms(t *testing.T) { //nolint:paralleltest // goroutines are counted
	sdktest.Conformance(t, notebook, sdktest.Options{Manifest: manifest})
}

func TestDeliverCommitsEffectsWithTheAck(t *testing.T) {
	t.Parallel()
	k := start(t)
	o := k.Deliver("notebook.add", note{"milk"}).MustAck(t)
	var got note
	if k.Stored("note", &got) == 0 || got.Text != "milk" {
		t.Fatalf("stored %+v", got)
	}
	e := k.Await("notebook.added")
	if string(e.GetPayload()) != `{"text":"milk"}` || e.GetCausationId() != o.Event.GetId() || e.GetSource() != "notebook" {
		t.Fatalf("published %v", e)
	}
}

// What the store refuses once, the kernel has handled again.
func TestRefusedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.FailCommits(1, contract.ErrConflict)
	o := k.Deliver("notebook.add", note{"milk"})
	if o.Acked() || !errors.Is(o.Refused, contract.ErrConflict) {
		t.Fatalf("outcome %s", o)
	}
	k.Await("notebook.added")
	if k.Commits() != 1 || k.Stored("note", nil) != 1 {
		t.Fatalf("%d commits", k.Commits())
	}
}

// The grants are those of the manifest.
func TestWhatTheManifestDoesNotGrantIsRefused(t *testing.T) {
	t.Parallel()
	var kernel *sdk.Kernel
	ext := notebook()
	ext.Start = func(_ context.Context, k *sdk.Kernel) error {
		kernel = k
		return nil
	}
	ext.Handle = func(context.Context, sdk.Event) (sdk.Effects, error) {
		return sdk.Effects{sdk.Publish("system.user.notify", "hello")}, nil
	}
	k := sdktest.Start(t, ext, sdktest.Options{Manifest: manifest})
	if _, err := kernel.Commit(t.Context(), sdk.Publish("notebook.removed", 1)); !errors.Is(err, contract.ErrDenied) {
		t.Errorf("publishing what is not granted: %v", err)
	}
	if o := k.Deliver("notebook.add", 1); o.Refused == nil || !strings.Contains(o.Refused.Error(), "permissions: {publish:") {
		t.Errorf("outcome %s", o)
	}
}

// An event that was being handled when the extension ended is handed out again.
func TestDedupeAcrossACrash(t *testing.T) {
	t.Parallel()
	handling := make(chan struct{})
	crashing := notebook()
	var kernel *sdk.Kernel
	crashing.Start = func(_ context.Context, k *sdk.Kernel) error {
		kernel = k
		return nil
	}
	crashing.Handle = func(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
		if _, err := kernel.Commit(ctx, sdk.Publish("notebook.added", 1, sdk.Dedupe(e.ID))); err != nil {
			return nil, err
		}
		close(handling)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	k := sdktest.Start(t, crashing, sdktest.Options{Manifest: manifest})
	h := k.Begin("notebook.add", note{"milk"})
	<-handling
	k.Lose()
	if o := h.Wait(); o.Lost == nil {
		t.Fatalf("outcome %s", o)
	}
	k.Restart(notebook())
	k.WaitFor("the event is handled", func() bool { return k.Stored("note", nil) != 0 })
	if n := len(k.Published("notebook.added")); n != 1 {
		t.Fatalf("published %d times", n)
	}
}

// A send that may have been made comes again with the mark of a repetition.
func TestSendMarksWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	sending := make(chan struct{})
	crashing := notebook()
	crashing.Channel = sdk.ChannelFunc(func(ctx context.Context, _ sdk.Message) (sdk.Receipt, error) {
		close(sending)
		<-ctx.Done()
		return sdk.Receipt{}, ctx.Err()
	})
	again := notebook()
	sent := make(chan sdk.Message, 1)
	again.Channel = sdk.ChannelFunc(func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
		sent <- m
		return sdk.Receipt{ProviderID: "p1", Conversation: m.Conversation}, nil
	})
	k := sdktest.Start(t, crashing, sdktest.Options{Manifest: manifest})
	k.BeginSend(contract.ChannelSend{Text: "hello", Conversation: "c"})
	<-sending
	k.Lose()
	k.Restart(again)
	if m := <-sent; m.Text != contract.RepeatMark+"hello" || m.Unmarked != "hello" || !m.Repeat {
		t.Fatalf("sent %+v", m)
	}
	o := k.Send(contract.ChannelSend{Text: "bye", Conversation: "c"}).MustAck(t)
	if m := <-sent; m.Text != "bye" || o.Receipt().GetConversation() != "c" {
		t.Fatalf("sent %+v, receipt %v", m, o.Receipt())
	}
}

func TestCallAndComplete(t *testing.T) {
	t.Parallel()
	k := start(t)
	if got := k.MustCall("write", note{"tea"}); got != `{"written":true}` {
		t.Fatalf("result %s", got)
	}
	if k.Stored("note", nil) == 0 {
		t.Fatal("the effect of the call is not committed")
	}
	if r := k.Call("write", []byte(`{}`)); !r.GetIsError() || !strings.Contains(r.GetContent(), "do not fit its schema") {
		t.Fatalf("a call without what the schema requires: %v", r)
	}
	if r := k.Call("write", note{}); !r.GetIsError() || r.GetContent() != "text is missing" {
		t.Fatalf("failed call: %v", r)
	}
	if answer := k.Command("note", "bread"); !strings.Contains(answer, "written") {
		t.Fatalf("the answer to /note is %q", answer)
	}
	deltas, err := k.Complete(t.Context(), &extensionv1.CompleteRequest{
		Model: "echo", Messages: []*extensionv1.Message{{Role: "user", Content: "hi"}},
	})
	if err != nil || len(deltas) != 1 || deltas[0].GetText() != "you said hi" || deltas[0].GetModel() != "notebook/echo" {
		t.Fatalf("deltas %v, %v", deltas, err)
	}
}

// The context of a call is that of the caller, unless an option changes it.
func TestCallOptionChangesTheContext(t *testing.T) {
	t.Parallel()
	calls := make(chan sdk.ToolCall, 1)
	ext := sdk.Extension{ID: "looker", Tools: []sdk.Tool{{
		Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`),
		Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
			calls <- c
			return sdk.ToolResult{}, nil
		},
	}}}
	k := sdktest.Start(t, ext, sdktest.Options{Timezone: "Europe/Berlin"})
	k.MustCall("look", nil)
	if c := <-calls; c.Agent != "caller" || c.Session == "" || c.Location.String() != "Europe/Berlin" || c.Repeat {
		t.Errorf("call %+v", c)
	}
	k.MustCall("look", nil, func(r *extensionv1.CallRequest) { r.Agent, r.Memory = "cook", []string{"kitchen"} })
	if c := <-calls; c.Agent != "cook" || !slices.Equal(c.Memory, []string{"kitchen"}) {
		t.Errorf("call %+v", c)
	}
}

// A call of a turn is made once, also when it is asked for again.
func TestScriptedToolsRunOnce(t *testing.T) {
	t.Parallel()
	ran := 0
	result := make(chan *extensionv1.CallResult, 2)
	var kernel *sdk.Kernel
	ext := sdk.Extension{
		ID: "pinger",
		Start: func(_ context.Context, k *sdk.Kernel) error {
			kernel = k
			return nil
		},
		HandleAgent: func(ctx context.Context, d sdk.Delivery) (sdk.Effects, error) {
			session := d.Turn.GetSession()
			rows, err := kernel.Commit(ctx, sdk.Raw(&busv1.Append{Session: session, Entries: []*busv1.Entry{
				{Kind: contract.EntryInput, Input: d.ID, InputKind: contract.InputUser, Text: "ping"},
				{Kind: contract.EntryAnswer, Calls: []*busv1.Call{{Name: "other/ping", Arguments: []byte("{}")}}},
			}}))
			if err != nil {
				return nil, err
			}
			for range 2 {
				r, err := kernel.Services().Tools.Call(ctx, &kernelv1.CallToolRequest{
					CallId: rows[0].GetCalls()[0].GetCallId(), Lane: sdk.LaneOf(ctx),
				})
				if err != nil {
					return nil, err
				}
				result <- r
			}
			out := contract.AgentOutput{Session: session, Outcome: contract.OutcomeOK, Text: "done"}
			return sdk.Effects{sdk.Publish(contract.TopicAgentOutput, out)}, nil
		},
	}
	k := sdktest.New(t, sdktest.Options{Agent: &extensionv1.AgentSpec{UsesTools: []string{"other/*"}, TurnTimeoutMs: 60_000}})
	k.ScriptTool(&extensionv1.Tool{Name: "other/ping", Schema: []byte(`{"type":"object"}`)}, func([]byte) *extensionv1.CallResult {
		ran++
		return &extensionv1.CallResult{Content: "pong"}
	})
	if err := k.TryStart(ext); err != nil {
		t.Fatal(err)
	}
	o := k.Hear(contract.UserMessage{Text: "ping"}).MustAck(t)
	if a, b := <-result, <-result; a.GetContent() != "pong" || b.GetContent() != "pong" || ran != 1 {
		t.Fatalf("results %v, %v after %d runs", a, b, ran)
	}
	var in contract.AgentInput
	if err := json.Unmarshal(o.Event.GetPayload(), &in); err != nil {
		t.Fatal(err)
	}
	if h := k.History(in.Session); len(h) != 3 || h[2].GetText() != "pong" {
		t.Fatalf("history %v", h)
	}
}
