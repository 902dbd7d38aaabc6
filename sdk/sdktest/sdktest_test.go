package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
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

func TestNotebookConforms(t *testing.T) { //nolint:paralleltest // goroutines are counted
	sdktest.Conformance(t, notebook, sdktest.Facts{
		ID: "notebook", Channel: true, Drafts: true, Tools: true, Models: true, Commands: []string{"note"},
		Subscriptions: []string{"notebook.add", "notebook.count"},
	})
}

func TestDeliverCommitsEffectsWithTheAck(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, notebook(), sdktest.Options{})
	k.Deliver("notebook.add", note{"milk"}).MustAck(t)
	var got note
	if k.Stored("note", &got) == 0 || got.Text != "milk" {
		t.Fatalf("stored %+v", got)
	}
	e := k.Await("notebook.added")
	if string(e.GetPayload()) != `{"text":"milk"}` || e.GetCausationId() == "" || e.GetSource() != "notebook" {
		t.Fatalf("published %v", e)
	}
}

func TestRefusedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, notebook(), sdktest.Options{})
	k.FailCommits(1, contract.ErrConflict)
	o := k.Deliver("notebook.add", note{"milk"})
	if o.Acked() || !errors.Is(o.Refused, contract.ErrConflict) {
		t.Fatalf("outcome %s", o)
	}
	if k.Stored("note", nil) != 0 || len(k.Published("notebook.added")) != 0 {
		t.Fatal("something was committed")
	}
	k.Deliver("notebook.add", note{"milk"}).MustAck(t)
}

func TestDedupeAcrossRestart(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, notebook(), sdktest.Options{})
	k.Deliver("notebook.add", note{"milk"}, sdktest.Identified("once")).MustAck(t)
	k.Restart(notebook())
	o := k.Deliver("notebook.add", note{"milk"}, sdktest.Identified("once"), sdktest.Attempt(2)).MustAck(t)
	if n := len(k.Published("notebook.added")); n != 1 || !o.Results[1].GetDuplicate() {
		t.Fatalf("published %d times, result %v", n, o.Results)
	}
}

func TestSendMarksWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options []sdktest.DeliveryOption
		text    string
		want    string
	}{
		{"first", nil, "hello", "m:hello"},
		{"uncertain", []sdktest.DeliveryOption{sdktest.Uncertain()}, "hello", "m:" + contract.RepeatMark + "hello"},
		{"uncertain, but the platform dedupes", []sdktest.DeliveryOption{sdktest.Deduped()}, "hello", "m:hello"},
		{"uncertain code", []sdktest.DeliveryOption{sdktest.Uncertain()}, "```\nx\n```", "m:(possibly sent before)\n\n```\nx\n```"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := sdktest.Start(t, notebook(), sdktest.Options{})
			o := k.Send(contract.ChannelSend{Text: tt.text, Conversation: "c"}, append(tt.options, sdktest.Identified("m"))...).MustAck(t)
			if o.Receipt().GetProviderId() != tt.want || o.Receipt().GetConversation() != "c" {
				t.Fatalf("receipt %v", o.Receipt())
			}
		})
	}
}

func TestCallAndComplete(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, notebook(), sdktest.Options{})
	if got := k.MustCall("write", note{"tea"}); got != `{"written":true}` {
		t.Fatalf("result %s", got)
	}
	if k.Stored("note", nil) == 0 {
		t.Fatal("the effect of the call is not committed")
	}
	if r := k.Call("write", []byte(`{}`)); !r.GetIsError() || r.GetContent() != "text is missing" {
		t.Fatalf("failed call: %v", r)
	}
	deltas, err := k.Complete(t.Context(), &extensionv1.CompleteRequest{
		Model: "echo", Messages: []*extensionv1.Message{{Role: "user", Content: "hi"}},
	})
	if err != nil || len(deltas) != 1 || deltas[0].GetText() != "you said hi" || deltas[0].GetModel() != "notebook/echo" {
		t.Fatalf("deltas %v, %v", deltas, err)
	}
}

func TestScriptedToolsRunOnce(t *testing.T) {
	t.Parallel()
	ran := 0
	result := make(chan *extensionv1.CallResult, 2)
	ext := sdk.Extension{ID: "caller", Start: func(ctx context.Context, k *sdk.Kernel) error {
		rows, err := k.Commit(ctx, sdk.Raw(&busv1.Append{Session: "s", Entries: []*busv1.Entry{{
			Kind: contract.EntryAnswer, Calls: []*busv1.Call{{Name: "core/ping", Arguments: []byte("{}")}},
		}}}))
		if err != nil {
			return err
		}
		for range 2 {
			r, err := k.Services().Tools.Call(ctx, &kernelv1.CallToolRequest{CallId: rows[0].GetCalls()[0].GetCallId()})
			if err != nil {
				return err
			}
			result <- r
		}
		return nil
	}}
	k := sdktest.New(t, sdktest.Options{})
	k.SetSession(&kernelv1.Session{Id: "s", Agent: "caller"})
	k.ScriptTool(&extensionv1.Tool{Name: "core/ping"}, func([]byte) *extensionv1.CallResult {
		ran++
		return &extensionv1.CallResult{Content: "pong"}
	})
	if err := k.TryStart(ext); err != nil {
		t.Fatal(err)
	}
	if a, b := <-result, <-result; a.GetContent() != "pong" || b.GetContent() != "pong" || ran != 1 {
		t.Fatalf("results %v, %v after %d runs", a, b, ran)
	}
	if h := k.History("s"); len(h) != 2 || h[1].GetText() != "pong" {
		t.Fatalf("history %v", h)
	}
}
