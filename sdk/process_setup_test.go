package sdk_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// roleEnv makes the test binary run one of the extensions below.
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

// process is an extension in its own process, as the kernel runs it.
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

// recordingBus confirms every commit and records its effects.
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

type hostPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (hostPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }
func (hostPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
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
	dir, err := os.MkdirTemp("", "sb") //nolint:usetesting // short: a socket path has 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	lis, err := net.Listen("unix", filepath.Join(dir, "k"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, bus: &recordingBus{}, kernel: grpc.NewServer(), stdout: &lockedBuffer{},
		stderr: &lockedBuffer{}}
	kernelv1.RegisterBusServer(p.kernel, p.bus)
	go func() { _ = p.kernel.Serve(lis) }()
	t.Cleanup(p.kernel.Stop)

	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          plugin.PluginSet{contract.PluginName: hostPlugin{}},
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

// waitFor polls, because the condition depends on another process.
func (p *process) waitFor(what string, reached func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !reached() {
		if time.Now().After(deadline) {
			p.t.Fatalf("timeout waiting for: %s\nstdout: %s\nstderr: %s", what, p.stdout, p.stderr)
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *process) waitGone() { p.waitFor("the process is gone", p.client.Exited) }
