package sdktest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// life is one start of the extension under test.
type life struct {
	k      *Kernel
	number int
	server *grpc.Server
	conn   *grpc.ClientConn // of the test
	cut    func()           // breaks all connections
	done   chan struct{}
}

// attempt is one delivery as the kernel has handed it out.
type attempt struct {
	*busv1.Delivery
	life    *life
	outcome *busv1.Outcome // nil: none yet
	lost    bool           // the extension ended without one
}

// serve serves the extension as sdk.Local does, for the kernel and for the test.
func (k *Kernel) serve(ext sdk.Extension, number int) func(context.Context, net.Listener) error {
	return func(ctx context.Context, listener net.Listener) error {
		server, err := sdk.NewServer(Logger(k.t), ext)
		if err != nil {
			return err
		}
		l := &life{k: k, number: number, done: make(chan struct{})}
		options := append(server.Options(), grpc.ChainUnaryInterceptor(l.unary), grpc.ChainStreamInterceptor(l.stream))
		l.server = grpc.NewServer(options...)
		l.cut = sync.OnceFunc(l.server.Stop)
		server.Register(l.server)
		own := bufconn.Listen(64 << 10)
		if l.conn, err = dial(own); err != nil {
			return err
		}
		k.begins(l)
		defer k.ends(l)
		var serving sync.WaitGroup
		defer serving.Wait()
		for _, each := range []net.Listener{listener, own} {
			serving.Go(func() { _ = l.server.Serve(each) })
		}
		select {
		case <-ctx.Done():
			_ = l.conn.Close()
			server.Close(0)
		case <-server.Done():
		}
		l.cut()
		return l.conn.Close()
	}
}

// besideHeader marks the requests that are the test's own.
const besideHeader = "sdktest-beside"

func isBeside(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, besideHeader)) > 0
}

func beside(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, stream grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return stream(metadata.AppendToOutgoingContext(ctx, besideHeader, "1"), desc, conn, method, options...)
}

func dial(listener *bufconn.Listener) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///test",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0), grpc.WithStreamInterceptor(beside),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessage), grpc.MaxCallSendMsgSize(contract.MaxMessage)))
}

// Serve serves extensions without a kernel, for tests of the protocol.
func Serve(t testing.TB, server *sdk.Server) grpc.ClientConnInterface {
	t.Helper()
	s := grpc.NewServer(server.Options()...)
	server.Register(s)
	listener := bufconn.Listen(64 << 10)
	conn, err := dial(listener)
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() {
		_ = conn.Close()
		server.Close(0)
		s.Stop()
	})
	return conn
}

func (k *Kernel) begins(l *life) {
	k.mu.Lock()
	k.life = l
	k.mu.Unlock()
	k.news.tell()
}

func (k *Kernel) ends(l *life) {
	k.mu.Lock()
	if k.life == l {
		k.life = nil
	}
	for _, a := range k.attempts {
		a.lost = a.lost || a.life == l && a.outcome == nil
	}
	k.mu.Unlock()
	k.news.tell()
	close(l.done)
}

// unary changes the context of a tool call as its options say.
func (l *life) unary(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if call, ok := r.(*extensionv1.CallRequest); ok {
		l.k.cast.refine(call)
	}
	return handler(ctx, r)
}

func (l *life) stream(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if info.FullMethod == extensionv1.Events_Deliver_FullMethodName && !isBeside(stream.Context()) {
		stream = observed{stream, l}
	}
	return handler(server, stream)
}

// observed is a stream of deliveries that is noted down.
type observed struct {
	grpc.ServerStream
	l *life
}

// RecvMsg implements grpc.ServerStream.
func (s observed) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if frame, ok := m.(*extensionv1.DeliverFrame); ok && err == nil {
		s.l.k.handedOut(s.l, frame.GetDeliveries())
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s observed) SendMsg(m any) error {
	var outcomes []*busv1.Outcome // the extension may use them again once they are sent
	if frame, ok := m.(*extensionv1.OutcomeFrame); ok {
		for _, o := range frame.GetOutcomes() {
			outcomes = append(outcomes, proto.CloneOf(o))
		}
	}
	err := s.ServerStream.SendMsg(m)
	if err == nil && s.Context().Err() == nil {
		s.l.k.answered(s.l, outcomes)
	}
	return err
}

func (k *Kernel) handedOut(l *life, deliveries []*busv1.Delivery) {
	if len(deliveries) == 0 {
		return
	}
	k.mu.Lock()
	for _, d := range deliveries {
		k.attempts = append(k.attempts, &attempt{Delivery: proto.CloneOf(d), life: l})
	}
	k.mu.Unlock()
	k.news.tell()
}

func (k *Kernel) answered(l *life, outcomes []*busv1.Outcome) {
	if len(outcomes) == 0 {
		return
	}
	k.mu.Lock()
	for _, o := range outcomes {
		for _, a := range k.attempts {
			if a.life == l && a.GetToken() == o.GetToken() {
				a.outcome = o
			}
		}
	}
	k.mu.Unlock()
	k.news.tell()
}

// errNoAnswer says that the extension ended without an outcome.
var errNoAnswer = errors.New("the extension ended without an outcome")
