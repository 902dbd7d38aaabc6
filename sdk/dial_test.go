package sdk

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// listener counts connections.
type listener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// recordingKernel records the tokens of Get calls; Watch streams until it is ended.
type recordingKernel struct {
	kernelv1.UnimplementedBusServer
	kernelv1.UnimplementedKVServer
	tokens chan string
}

func (w *recordingKernel) Watch(_ *kernelv1.WatchRequest, stream grpc.ServerStreamingServer[busv1.Event]) error {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (w *recordingKernel) Get(ctx context.Context, _ *kernelv1.GetRequest) (*kernelv1.Value, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	w.tokens <- md.Get(contract.TokenHeader)[0]
	return &kernelv1.Value{}, nil
}

// The extensions of a process share one connection, each with its own token. One that
// ends closes only its own streams; when the kernel ends, each remaining one is
// notified once.
func TestExtensionsOfAProcessShareAConnection(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sb") //nolint:usetesting // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "k"))
	if err != nil {
		t.Fatal(err)
	}
	l, w, server := &listener{Listener: inner}, &recordingKernel{tokens: make(chan string, 1)}, grpc.NewServer()
	kernelv1.RegisterBusServer(server, w)
	kernelv1.RegisterKVServer(server, w)
	go func() { _ = server.Serve(l) }()
	lost := make(chan string, 10)
	link := func(token string) *link {
		t.Helper()
		init := &extensionv1.InitRequest{KernelAddress: "unix:" + filepath.Join(dir, "k"), KernelToken: token}
		made, err := dial(t.Context(), init, func() { lost <- token })
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	one, two := link("one"), link("two")
	stream := func(token string, c grpc.ClientConnInterface) grpc.ServerStreamingClient[busv1.Event] {
		t.Helper()
		s, err := kernelv1.NewBusClient(c).Watch(t.Context(), &kernelv1.WatchRequest{})
		if err != nil {
			t.Fatal(token, err)
		}
		if _, err := s.Header(); err != nil {
			t.Fatal(token, err)
		}
		return s
	}
	ends, stays := stream("one", one), stream("two", two)
	one.Close()
	if _, err := ends.Recv(); err == nil {
		t.Error("a stream of a closed link is still open")
	}
	if _, err := kernelv1.NewKVClient(one).Get(t.Context(), &kernelv1.GetRequest{}); err == nil {
		t.Error("a closed link accepts calls")
	}
	if _, err := kernelv1.NewKVClient(two).Get(t.Context(), &kernelv1.GetRequest{}); err != nil {
		t.Errorf("the other link: %v", err)
	} else if token := <-w.tokens; token != "two" {
		t.Errorf("the token of the other link is %q", token)
	}
	if n := l.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	server.Stop()
	if _, err := stays.Recv(); err == nil {
		t.Error("a stream outlives the kernel")
	}
	if token := <-lost; token != "two" {
		t.Errorf("%q is notified that the connection is lost", token)
	}
	two.Close()
	if len(lost) > 0 {
		t.Errorf("%q is notified, too", <-lost)
	}
}
