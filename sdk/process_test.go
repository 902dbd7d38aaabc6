package sdk_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func TestStdoutDoesNotBreakTheProtocol(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "printer")
	p.start()
	if o := p.outcome(p.deliver("printer.test")); o.GetKind() != busv1.Outcome_KIND_ACK {
		t.Fatalf("outcome %v", o)
	}
	p.waitFor("the host has all output", func() bool {
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
	<-initialized //nolint:errcheck // the process must end in either case
	p.waitGone()
}

func TestProcessEndsAfterShutdown(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "printer")
	p.start()
	if _, err := extensionv1.NewExtensionClient(p.conn).Shutdown(t.Context(),
		&extensionv1.ShutdownRequest{GraceMs: 1000}); err != nil {
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
	_, err := tools.Call(t.Context(), &extensionv1.CallRequest{Name: "who"})
	if status.Code(err) != codes.InvalidArgument {
		t.Fatalf("without a name: %v", err)
	}
	if _, err := tools.Call(p.ctx("middle"), &extensionv1.CallRequest{Name: "who"}); status.Code(err) != codes.NotFound {
		t.Fatalf("with a wrong name: %v", err)
	}
	if _, err := ext.Shutdown(p.ctx("left"), &extensionv1.ShutdownRequest{GraceMs: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Call(p.ctx("left"),
		&extensionv1.CallRequest{Name: "who"}); status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("after shutdown: %v", err)
	}
	if r, err := tools.Call(p.ctx("right"), &extensionv1.CallRequest{Name: "who"}); err != nil ||
		r.GetContent() != "right" {
		t.Fatalf("right after the shutdown of left: %v, %v", r, err)
	}
	for _, id := range []string{"left", "right"} { // right is still active
		p.init.Id = id
		if _, err := ext.Init(p.ctx(id), p.init); err != nil {
			t.Fatalf("restart %s: %v", id, err)
		}
		if r, err := tools.Call(p.ctx(id), &extensionv1.CallRequest{Name: "who"}); err != nil || r.GetContent() != id {
			t.Fatalf("%s, restarted: %v, %v", id, r, err)
		}
	}
}

// host is a kernel in its own process: it starts an extension that inherits file 3,
// prints "ready" to stdout, and waits to be killed.
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
		Plugins:          plugin.PluginSet{contract.PluginName: hostPlugin{}},
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
	dir, err := os.MkdirTemp("", "sb") //nolint:usetesting // short, for sockets
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
	if err := held.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the extension outlives its kernel: %v", err)
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
