package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestShutdownLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	var stopped, alive atomic.Bool
	var background context.Context
	k := sdktest.Start(t, sdk.Extension{
		ID: "subject",
		Start: func(ctx context.Context, _ *sdk.Kernel) error {
			background = ctx
			return nil
		},
		Stop: func(context.Context) error {
			stopped.Store(true)
			return nil
		},
		Handle: func(ctx context.Context, _ sdk.Event) (sdk.Effects, error) {
			close(started)
			<-release
			alive.Store(background.Err() == nil && ctx.Err() == nil && !stopped.Load())
			return sdk.Effects{sdk.Put("done", true)}, nil
		},
	}, sdktest.Options{})
	h := k.Begin("subject.test", 1)
	<-started
	down := make(chan error, 1)
	conn := k.Conn()
	go func() {
		_, err := extensionv1.NewExtensionClient(conn).Shutdown(t.Context(), &extensionv1.ShutdownRequest{GraceMs: 60_000})
		down <- err
	}()
	k.WaitUntil("calls are refused", func() bool {
		_, err := extensionv1.NewToolsClient(conn).Call(t.Context(), &extensionv1.CallRequest{Name: "any"})
		return errors.Is(contract.FromStatus(err), contract.ErrUnavailable)
	})
	close(release)
	h.Wait().MustAck(t)
	if err := <-down; err != nil {
		t.Fatal(err)
	}
	if k.Stored("done", nil) == 0 {
		t.Error("the effects of the last handler are lost")
	}
	if !alive.Load() || !stopped.Load() || background.Err() == nil {
		t.Errorf("order: background context alive while handling %v, stopped %v, ended %v", alive.Load(), stopped.Load(),
			background.Err())
	}
}

func TestShutdownInterruptsUnfinishedHandlers(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	k := handling(t, func(ctx context.Context, _ sdk.Event) (sdk.Effects, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	h := k.Begin("subject.test", 1)
	<-started
	client := extensionv1.NewExtensionClient(k.Conn())
	if _, err := client.Shutdown(t.Context(), &extensionv1.ShutdownRequest{GraceMs: 80}); err != nil {
		t.Fatal(err)
	}
	o := h.Wait().MustBe(t, busv1.Outcome_KIND_RETRY) // a shutdown is not a failure of the event
	if !strings.Contains(o.Reason, "shutting down") {
		t.Errorf("reason %q", o.Reason)
	}
}

// An interruptible tool ends at once, without a result: the kernel repeats the call.
func TestShutdownInterruptsInterruptibleTools(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	k := sdktest.Start(t, sdk.Extension{
		ID: "subject",
		Tools: []sdk.Tool{{
			Name: "wait", Description: "Waits.", Interrupt: true, Schema: json.RawMessage(`{"type":"object"}`),
			Call: func(ctx context.Context, _ sdk.ToolCall) (sdk.ToolResult, error) {
				close(started)
				<-ctx.Done()
				return sdk.ToolResult{}, context.Cause(ctx)
			},
		}},
	}, sdktest.Options{})
	answered := make(chan error, 1)
	conn := k.Conn()
	go func() {
		_, err := extensionv1.NewToolsClient(conn).Call(t.Context(), &extensionv1.CallRequest{Name: "wait"})
		answered <- contract.FromStatus(err)
	}()
	<-started
	down := make(chan error, 1)
	go func() { down <- k.Shutdown(time.Hour) }()
	if err := <-answered; !errors.Is(err, contract.ErrGone) {
		t.Errorf("the kernel gets %v", err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestShutdownDoesNotWaitForHandlersThatIgnoreIt(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	k := sdktest.Start(t, sdk.Extension{
		ID:   "subject",
		Stop: func(context.Context) error { <-release; return nil },
		Handle: func(context.Context, sdk.Event) (sdk.Effects, error) {
			close(started)
			<-release
			return nil, nil
		},
	}, sdktest.Options{})
	h := k.Begin("subject.test", 1)
	<-started
	if err := k.Shutdown(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if o := h.Wait(); o.Lost == nil {
		t.Errorf("outcome %s", o)
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		start func(context.Context, *sdk.Kernel) error
		want  string
	}{
		{"error", func(context.Context, *sdk.Kernel) error { return errors.New("no disk") },
			"start extension subject: no disk"},
		{"panic", func(context.Context, *sdk.Kernel) error { panic("oops") }, "panic: oops"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := sdktest.New(t, sdktest.Options{})
			err := k.TryStart(sdk.Extension{ID: "subject", Start: tt.start})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("start: %v", err)
			}
			k.Restart(sdk.Extension{ID: "subject"})
		})
	}
}

func TestEveryPanicIsAnError(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, sdk.Extension{
		ID: "subject", Channel: panicking{}, Models: panicking{},
		Stop: func(context.Context) error { panic("stop") },
		Tools: []sdk.Tool{{Name: "panic", Description: "Panics.",
			Call: func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
				panic("tool")
			}}},
	}, sdktest.Options{})
	if r := k.Call("panic", []byte("{}")); !r.GetIsError() || !strings.Contains(r.GetContent(), "panic: tool") {
		t.Errorf("tool: %v", r)
	}
	if _, err := k.Complete(t.Context(), &extensionv1.CompleteRequest{}); err == nil ||
		!strings.Contains(err.Error(), "panic: model") {
		t.Errorf("model: %v", err)
	}
	if err := k.Draft(t.Context(), &extensionv1.DraftUpdate{Text: "x"}); err != nil {
		t.Errorf("draft: %v", err)
	}
	k.Send(contract.ChannelSend{Text: "x"}).MustBe(t, busv1.Outcome_KIND_FAIL)
	if _, err := k.Health(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
}

type panicking struct{}

func (panicking) Send(context.Context, sdk.Message) (sdk.Receipt, error) { panic("send") }
func (panicking) Draft(context.Context, sdk.Draft)                       { panic("draft") }
func (panicking) Complete(context.Context, *sdk.CompleteRequest, func(*sdk.Delta) error) error {
	panic("model")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	var kernel *sdk.Kernel
	k := sdktest.Start(t, sdk.Extension{ID: "subject", Start: func(_ context.Context, k *sdk.Kernel) error {
		kernel = k
		k.SetReadiness(sdk.Unconfigured, "TOKEN is missing")
		return nil
	}}, sdktest.Options{})
	if r := k.Readiness(); r.GetState() != sdk.Unconfigured || r.GetDetail() != "TOKEN is missing" {
		t.Errorf("answer to Init: %v", r)
	}
	kernel.SetReadiness(sdk.Offline, "no network")
	k.AwaitReadiness(sdk.Offline)
	if r, err := k.Health(t.Context()); err != nil || r.GetState() != sdk.Offline {
		t.Errorf("health: %v, %v", r, err)
	}
}

func TestRequestsBeforeInit(t *testing.T) {
	t.Parallel()
	k := sdktest.New(t, sdktest.Options{})
	fail := errors.New("not today")
	start := func(context.Context, *sdk.Kernel) error { return fail }
	if err := k.TryStart(sdk.Extension{ID: "subject", Start: start}); err == nil {
		t.Fatal("the extension started")
	}
	server, err := sdk.NewServer(hclog.NewNullLogger(), sdk.Extension{ID: "subject", Channel: panicking{}})
	if err != nil {
		t.Fatal(err)
	}
	conn := sdktest.Serve(t, server)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"call": func() error {
			_, err := extensionv1.NewToolsClient(conn).Call(ctx, &extensionv1.CallRequest{Name: "x"})
			return err
		},
		"complete": func() error {
			s, err := extensionv1.NewModelsClient(conn).Complete(ctx, &extensionv1.CompleteRequest{})
			if err != nil {
				return err
			}
			_, err = s.Recv()
			return err
		},
		"deliver": func() error {
			s, err := extensionv1.NewEventsClient(conn).Deliver(ctx)
			if err != nil {
				return err
			}
			_, err = s.Recv()
			return err
		},
		"draft": func() error {
			s, err := extensionv1.NewDraftsClient(conn).Draft(ctx)
			if err != nil {
				return err
			}
			_, err = s.CloseAndRecv()
			return err
		},
	} {
		want := contract.ErrUnavailable
		if name == "complete" { // it can be repeated
			want = contract.ErrGone
		}
		if err := contract.FromStatus(call()); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ext := extensionv1.NewExtensionClient(conn)
	if r, err := ext.Health(ctx, &extensionv1.HealthRequest{}); err != nil || r.GetState() != sdk.Offline {
		t.Errorf("health: %v, %v", r, err)
	}
	if d, err := ext.Describe(ctx, &extensionv1.DescribeRequest{}); err != nil || !d.GetChannel() || !d.GetDrafts() {
		t.Errorf("describe: %v, %v", d, err)
	}
	if _, err := ext.Init(ctx, &extensionv1.InitRequest{Id: "other"}); !errors.Is(contract.FromStatus(err),
		contract.ErrInvalid) {
		t.Errorf("init with another id: %v", err)
	}
	noKernel := &extensionv1.InitRequest{Id: "subject", KernelAddress: "unix:/nowhere"}
	if _, err := ext.Init(ctx, noKernel); !errors.Is(contract.FromStatus(err), contract.ErrGone) {
		t.Errorf("init without a kernel: %v", err)
	}
	if _, err := ext.Shutdown(ctx, &extensionv1.ShutdownRequest{}); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	<-server.Done()
}

func TestInvalidExtensionsAreRefused(t *testing.T) {
	t.Parallel()
	call := func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) { return sdk.ToolResult{}, nil }
	tests := []struct {
		name string
		exts []sdk.Extension
		want string
	}{
		{"nothing", nil, "no extension"},
		{"two with one ID", []sdk.Extension{{ID: "a"}, {ID: "a"}}, `two extensions have the ID "a"`},
		{"a group without IDs", []sdk.Extension{{ID: "a"}, {}}, "an ID each"},
		{"tool without name", []sdk.Extension{{ID: "a", Tools: []sdk.Tool{{Call: call}}}}, "no Name"},
		{"tool without function", []sdk.Extension{{ID: "a", Tools: []sdk.Tool{{Name: "t"}}}}, "no Call"},
		{"tool twice", []sdk.Extension{{ID: "a", Tools: []sdk.Tool{{Name: "t", Call: call}, {Name: "t", Call: call}}}},
			"two tools"},
		{"bad schema", []sdk.Extension{{ID: "a", Tools: []sdk.Tool{
			{Name: "t", Call: call, Schema: json.RawMessage(`{`)},
		}}}, "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := sdk.NewServer(hclog.NewNullLogger(), tt.exts...); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestToolCallCarriesItsContext(t *testing.T) {
	t.Parallel()
	got := make(chan sdk.ToolCall, 1)
	k := sdktest.Start(t, sdk.Extension{ID: "subject", Tools: []sdk.Tool{{
		Name: "look", Description: "Looks.", Call: func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
			if sdk.LaneOf(ctx) == "" {
				return sdk.ToolResult{}, errors.New("no lane")
			}
			got <- c
			return sdk.JSON(func() {})
		},
	}}}, sdktest.Options{})
	r := k.Call("look", nil, func(r *extensionv1.CallRequest) {
		r.Arguments, r.ReplyTo, r.Channel, r.Sender, r.Repeat, r.Timezone = nil, "handle", "tg", "Ann", true, "Europe/Berlin"
	})
	if !r.GetIsError() {
		t.Errorf("a result that is not JSON: %v", r)
	}
	c := <-got
	if c.ReplyTo != "handle" || c.Channel != "tg" || c.Sender != "Ann" || !c.Repeat || string(c.Arguments) != "{}" ||
		c.Location.String() != "Europe/Berlin" {
		t.Errorf("call %+v", c)
	}
}

func TestDraftsSkipToTheNewest(t *testing.T) {
	t.Parallel()
	shown := make(chan sdk.Draft)
	k := sdktest.Start(t, sdk.Extension{ID: "subject", Channel: slow{shown}}, sdktest.Options{})
	drafted := make(chan error, 1)
	go func() {
		var updates []*extensionv1.DraftUpdate
		for i := range 100 {
			updates = append(updates, &extensionv1.DraftUpdate{DraftId: "d", Text: strings.Repeat("x", i)})
		}
		updates = append(updates, &extensionv1.DraftUpdate{DraftId: "d", Text: "all", Done: true})
		drafted <- k.Draft(t.Context(), updates...)
	}()
	length := -1
	for {
		d := <-shown
		if d.Done {
			break
		}
		if len(d.Text) <= length {
			t.Fatalf("a draft of %d bytes after one of %d", len(d.Text), length)
		}
		length = len(d.Text)
	}
	if err := <-drafted; err != nil {
		t.Fatal(err)
	}
}

type slow struct{ shown chan sdk.Draft }

func (slow) Send(context.Context, sdk.Message) (sdk.Receipt, error) { return sdk.Receipt{}, nil }
func (s slow) Draft(_ context.Context, d sdk.Draft)                 { s.shown <- d }
