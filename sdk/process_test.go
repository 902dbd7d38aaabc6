package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// roleEnv makes the test binary one of the extensions below.
const roleEnv = "SDK_TEST_EXTENSION"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
	case "host":
		host()
		return
	default:
		sdk.Serve(roles[role]()...)
		return
	}
	os.Exit(m.Run())
}

var roles = map[string]func() []sdk.Extension{
	"printer": func() []sdk.Extension {
		return []sdk.Extension{{
			ID: "printer",
			Start: func(_ context.Context, k *sdk.Kernel) error {
				fmt.Println("printed by start")
				k.Log().Info("logged by start")
				return nil
			},
			Handle: func(_ context.Context, e sdk.Event) (sdk.Effects, error) {
				fmt.Println("printed by", e.Topic)
				fmt.Fprintln(os.Stderr, "noise on stderr")
				return nil, nil
			},
		}}
	},
	"stubborn": func() []sdk.Extension { // ignores every context
		return []sdk.Extension{{
			ID:     "stubborn",
			Handle: func(context.Context, sdk.Event) (sdk.Effects, error) { select {} },
			Stop:   func(context.Context) error { select {} },
		}}
	},
	"stuck": func() []sdk.Extension { // never finishes starting
		return []sdk.Extension{{
			ID:    "stuck",
			Start: func(context.Context, *sdk.Kernel) error { select {} },
		}}
	},
	"pair": func() []sdk.Extension {
		say := func(id string) sdk.Extension {
			return sdk.Extension{ID: id, Tools: []sdk.Tool{{
				Name: "who", Description: "Says which extension this is.", ReadOnly: true,
				Call: func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
					return sdk.ToolResult{Content: id}, nil
				},
			}}}
		}
		return []sdk.Extension{say("left"), say("right")}
	},
}

// process is one extension run as the kernel runs it.
type process struct {
	t      testing.TB
	client *plugin.Client
	conn   *grpc.ClientConn
	kernel *grpc.Server
	bus    *recordingBus
	cmd    *exec.Cmd
	init   *extensionv1.InitRequest
	stdout *lockedBuffer
	stderr *lockedBuffer
}

// recordingBus confirms every commit and keeps its effects.
type recordingBus struct {
	kernelv1.UnimplementedBusServer
	mu      sync.Mutex
	effects []*busv1.Effect
}

func (b *recordingBus) Commit(stream grpc.BidiStreamingServer[kernelv1.CommitFrame, kernelv1.ReceiptFrame]) error {
	for {
		in, err := stream.Recv()
		if err != nil {
			return err
		}
		out := &kernelv1.ReceiptFrame{}
		b.mu.Lock()
		for _, c := range in.GetCommits() {
			b.effects = append(b.effects, c.GetEffects()...)
			out.Receipts = append(out.Receipts, &busv1.CommitReceipt{
				Results: make([]*busv1.EffectResult, len(c.GetEffects())),
			})
		}
		b.mu.Unlock()
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

func (b *recordingBus) published() []*busv1.Publish {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*busv1.Publish
	for _, e := range b.effects {
		if p := e.GetPublish(); p != nil {
			out = append(out, p)
		}
	}
	return out
}

type hostGlue struct{ plugin.NetRPCUnsupportedPlugin }

func (hostGlue) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }
func (hostGlue) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func startProcess(t testing.TB, role string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return startCommand(t, cmd, role)
}

// startCommand runs a program as the extension id.
func startCommand(t testing.TB, cmd *exec.Cmd, id string) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") // short: a socket path has 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	lis, err := net.Listen("unix", filepath.Join(dir, "k"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, bus: &recordingBus{}, kernel: grpc.NewServer(), stdout: &lockedBuffer{}, stderr: &lockedBuffer{}}
	kernelv1.RegisterBusServer(p.kernel, p.bus)
	go func() { _ = p.kernel.Serve(lis) }()
	t.Cleanup(p.kernel.Stop)

	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          plugin.PluginSet{contract.PluginName: hostGlue{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              p.cmd,
		SyncStdout:       p.stdout,
		SyncStderr:       p.stderr,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: p.stderr, Level: hclog.Debug}),
	})
	t.Cleanup(p.client.Kill)
	rpc, err := p.client.Client()
	if err != nil {
		t.Fatalf("start: %v\n%s", err, p.stderr)
	}
	raw, err := rpc.Dispense(contract.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	p.conn = raw.(*grpc.ClientConn)
	p.init = &extensionv1.InitRequest{Id: id, KernelAddress: "unix:" + lis.Addr().String(), KernelToken: "secret"}
	return p
}

func (p *process) ctx(extension string) context.Context {
	return metadata.AppendToOutgoingContext(p.t.Context(), contract.ExtensionHeader, extension)
}

func (p *process) start() {
	p.t.Helper()
	if _, err := extensionv1.NewExtensionClient(p.conn).Init(p.t.Context(), p.init); err != nil {
		p.t.Fatalf("init: %v\n%s", err, p.stderr)
	}
}

// deliver opens the event stream and sends one delivery.
func (p *process) deliver(topic string) extensionv1.Events_DeliverClient {
	p.t.Helper()
	stream, err := extensionv1.NewEventsClient(p.conn).Deliver(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	err = stream.Send(&extensionv1.DeliverFrame{Deliveries: []*busv1.Delivery{{
		Token: "t1", Attempt: 1, Event: &busv1.Event{Id: "e1", Topic: topic, Payload: []byte(`{}`)},
	}}})
	if err != nil {
		p.t.Fatal(err)
	}
	return stream
}

// outcome reads frames until one has an outcome.
func (p *process) outcome(stream extensionv1.Events_DeliverClient) *busv1.Outcome {
	p.t.Helper()
	for {
		frame, err := stream.Recv()
		if err != nil {
			p.t.Fatalf("outcome: %v\n%s", err, p.stderr)
		}
		if len(frame.GetOutcomes()) > 0 {
			return frame.GetOutcomes()[0]
		}
	}
}

// waitFor polls: what it waits for happens in another process.
func (p *process) waitFor(what string, reached func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !reached() {
		if time.Now().After(deadline) {
			p.t.Fatalf("never came true: %s\nstdout: %s\nstderr: %s", what, p.stdout, p.stderr)
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *process) waitGone() { p.waitFor("the process is gone", p.client.Exited) }

func TestStdoutDoesNotBreakTheProtocol(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "printer")
	p.start()
	if o := p.outcome(p.deliver("printer.test")); o.GetKind() != busv1.Outcome_KIND_ACK {
		t.Fatalf("outcome %v", o)
	}
	p.waitFor("what was printed has reached the host", func() bool {
		out := p.stdout.String()
		return strings.Contains(out, "printed by start") && strings.Contains(out, "printed by printer.test") &&
			strings.Contains(p.stderr.String(), "noise on stderr") && strings.Contains(p.stderr.String(), "logged by start")
	})
}

func TestProcessEndsWithTheKernel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, role string
		running    bool // a handler
		end        func(p *process)
	}{
		{"kernel services stop", "printer", false, func(p *process) { p.kernel.Stop() }},
		{"connection of the kernel ends", "printer", false, func(p *process) { _ = p.conn.Close() }},
		{"with a handler that ignores its context", "stubborn", true, func(p *process) { p.kernel.Stop() }},
		{"go-plugin kills", "printer", false, func(p *process) { p.client.Kill() }},
		{"go-plugin kills a stubborn one", "stubborn", true, func(p *process) { p.client.Kill() }},
		{"SIGTERM", "printer", false, func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, tt.role)
			p.start()
			if tt.running {
				p.deliver("stubborn.test")
			}
			tt.end(p)
			p.waitGone()
		})
	}
}

func TestProcessEndsWhileStarting(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "stuck")
	ctx, cancel := context.WithCancel(t.Context())
	initialized := make(chan error, 1)
	go func() {
		_, err := extensionv1.NewExtensionClient(p.conn).Init(ctx, p.init)
		initialized <- err
	}()
	_ = p.conn.Close()
	cancel()
	<-initialized
	p.waitGone()
}

func TestProcessLeavesAfterShutdown(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "printer")
	p.start()
	if _, err := extensionv1.NewExtensionClient(p.conn).Shutdown(t.Context(), &extensionv1.ShutdownRequest{GraceMs: 1000}); err != nil {
		t.Fatal(err)
	}
	p.waitGone()
}

func TestGroupInOneProcess(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "pair")
	ext, tools := extensionv1.NewExtensionClient(p.conn), extensionv1.NewToolsClient(p.conn)
	for _, id := range []string{"left", "right"} {
		p.init.Id = id
		if _, err := ext.Init(p.ctx(id), p.init); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"left", "right"} {
		r, err := tools.Call(p.ctx(id), &extensionv1.CallRequest{Name: "who"})
		if err != nil || r.GetContent() != id {
			t.Fatalf("%s: %v, %v", id, r, err)
		}
	}
	if _, err := tools.Call(t.Context(), &extensionv1.CallRequest{Name: "who"}); status.Code(err) != codes.InvalidArgument {
		t.Fatalf("without a name: %v", err)
	}
	if _, err := tools.Call(p.ctx("middle"), &extensionv1.CallRequest{Name: "who"}); status.Code(err) != codes.NotFound {
		t.Fatalf("with a wrong name: %v", err)
	}
	if _, err := ext.Shutdown(p.ctx("left"), &extensionv1.ShutdownRequest{GraceMs: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Call(p.ctx("left"), &extensionv1.CallRequest{Name: "who"}); status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("after shutdown: %v", err)
	}
	if r, err := tools.Call(p.ctx("right"), &extensionv1.CallRequest{Name: "who"}); err != nil || r.GetContent() != "right" {
		t.Fatalf("the other one: %v, %v", r, err)
	}
	p.init.Id = "left"
	if _, err := ext.Init(p.ctx("left"), p.init); err != nil {
		t.Fatalf("starting it again: %v", err)
	}
}

// host is a kernel in a process of its own: it starts an extension that
// inherits file 3, says so on stdout, and waits to be killed.
func host() {
	lis, err := net.Listen("unix", filepath.Join(os.Getenv("TMPDIR"), "k"))
	if err != nil {
		panic(err)
	}
	go func() { _ = grpc.NewServer().Serve(lis) }()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=stubborn")
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "held by every process")}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          plugin.PluginSet{contract.PluginName: hostGlue{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              cmd, SkipHostEnv: true, Logger: hclog.NewNullLogger(),
	})
	rpc, err := client.Client()
	if err != nil {
		panic(err)
	}
	raw, err := rpc.Dispense(contract.PluginName)
	if err != nil {
		panic(err)
	}
	_, err = extensionv1.NewExtensionClient(raw.(*grpc.ClientConn)).Init(context.Background(), &extensionv1.InitRequest{
		Id: "stubborn", KernelAddress: "unix:" + lis.Addr().String(),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	select {}
}

func TestKilledKernelLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	held, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=host", "TMPDIR="+dir)
	cmd.ExtraFiles = []*os.File{inherited}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inherited.Close()
	if _, err := io.ReadFull(stdout, make([]byte, len("ready"))); err != nil {
		t.Fatalf("the host did not start: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The pipe ends when the last process that inherited it is gone.
	if err := held.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // Read returns it bare
		t.Fatalf("the extension outlives its kernel: %v", err)
	}
}

func TestFileChannelExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, box := filepath.Join(dir, "filechannel"), filepath.Join(dir, "box")
	if out, err := exec.Command("go", "build", "-o", program, "./examples/filechannel").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.Mkdir(box, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(box, "in"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, box)
	cmd.Env = os.Environ()
	p := startCommand(t, cmd, "file_channel")
	p.start()
	in, err := os.OpenFile(filepath.Join(box, "in"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if _, err := in.WriteString("hello there\n"); err != nil {
		t.Fatal(err)
	}
	p.waitFor("the line was received", func() bool { return len(p.bus.published()) == 1 })
	var m contract.UserMessage
	if got := p.bus.published()[0]; got.GetTopic() != contract.TopicUserMessage || json.Unmarshal(got.GetPayload(), &m) != nil || m.Text != "hello there" {
		t.Errorf("received %v", got)
	}
	stream, err := extensionv1.NewEventsClient(p.conn).Deliver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&extensionv1.DeliverFrame{Deliveries: []*busv1.Delivery{{Token: "t", Event: &busv1.Event{
		Id: "e1", Topic: contract.TopicChannelSend + "file_channel", Payload: []byte(`{"text":"good day","conversation":"file"}`),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if o := p.outcome(stream); o.GetKind() != busv1.Outcome_KIND_ACK || o.GetEffects()[0].GetReceipt().GetProviderId() != "e1" {
		t.Errorf("outcome %v", o)
	}
	if out, err := os.ReadFile(filepath.Join(box, "out")); err != nil || string(out) != "good day\n" {
		t.Errorf("out: %q, %v", out, err)
	}
}

// BenchmarkProcessStart: from exec to the answer of Init, as a kernel sees it.
func BenchmarkProcessStart(b *testing.B) {
	for b.Loop() {
		p := startProcess(b, "printer")
		if _, err := extensionv1.NewExtensionClient(p.conn).Init(b.Context(), p.init); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = p.cmd.Process.Kill()
		p.client.Kill()
		b.StartTimer()
	}
}
