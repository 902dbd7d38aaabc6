package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/host"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

const patience = time.Minute

// until looks again and again.
func (w *world) until(what string, done func() bool) {
	w.T.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.T.Fatalf("there was not: %s", what)
		}
	}
}

func TestExtensionThatOpensStreamsWithoutEndIsRefused(t *testing.T) {
	w := newWorld(t, func(h *host.Host) { h.Limit(10, 20, 100, 1<<30) })
	rogue, other := w.admit(bus.Actor{ID: "rogue", Subscribe: []string{"x.y"}}), w.admit(bus.Actor{ID: "other"})
	watching, stop := context.WithCancel(t.Context())
	refused := func() error {
		stream, err := rogue.bus.Watch(watching, &kernelv1.WatchRequest{Topics: []string{"x.y"}})
		if err != nil {
			return err
		}
		go func() { _, _ = stream.Recv() }()
		return nil
	}
	for range 10 {
		if err := refused(); err != nil {
			t.Fatal(err)
		}
	}
	w.until("all streams", func() bool { n, _ := w.host.OpenRequests(); return n == 10 })
	_, err := rogue.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "may have 10 open") {
		t.Errorf("one more: %v", err)
	}
	if _, err := other.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"}); err != nil {
		t.Errorf("another extension: %v", err)
	}
	stop()
	w.until("the end of the streams", func() bool { n, _ := w.host.OpenRequests(); return n == 0 })
	if _, err := rogue.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestStreamsOfCommitsAreFew(t *testing.T) {
	w := newWorld(t, func(h *host.Host) { h.Limit(100, 3, 100, 1<<30) })
	g := w.admit(bus.Actor{ID: "rogue"})
	for range 3 {
		stream, err := g.bus.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&kernelv1.CommitFrame{}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("three streams", func() bool { n, _ := w.host.OpenRequests(); return n == 3 })
	if _, err := g.commit(
		"",
		kerneltest.PutAt("k", "v", 0),
	); !errors.Is(err, contract.ErrFull) ||
		!strings.Contains(err.Error(), "streams of commits") {
		t.Errorf("a fourth: %v", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, func(h *host.Host) { h.Limit(100, 3, 5, 1<<30) })
	rogue := &bus.Actor{ID: "rogue", Generation: 78}
	token := w.host.Admit(rogue)
	refused := 0
	for range 20 {
		_, err := w.client(rogue, token).kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"})
		if err != nil {
			refused++
			if err := contract.FromStatus(
				err,
			); !errors.Is(err, contract.ErrFull) ||
				!strings.Contains(err.Error(), "connections to the kernel: an extension may have 5 open") {
				t.Errorf("it is refused with %v", err)
			}
		}
	}
	if _, open := w.host.OpenRequests(); refused != 15 || open != 5 {
		t.Errorf("%d of 15 were refused, %d are open", refused, open)
	}
	if _, err := w.admit(bus.Actor{ID: "other"}).kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"}); err != nil {
		t.Errorf("another extension: %v", err)
	}
}

// Who shows no token does not keep others from connecting.
func TestConnectionsOfStrangersGiveWay(t *testing.T) {
	w := newWorld(t)
	for range 300 {
		c, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if _, err := w.admit(bus.Actor{ID: "other"}).kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"}); err != nil {
		t.Errorf("an extension: %v", err)
	}
}

// Requests that never get complete would fill the kernel's memory.
func TestConnectionWithRequestsThatAreNeverCompleteIsEnded(t *testing.T) {
	w := newWorld(t, func(h *host.Host) { h.Limit(1000, 3, 100, 4<<20) })
	other := w.admit(bus.Actor{ID: "other"})
	rogue := &bus.Actor{ID: "rogue", Generation: 77}
	token := w.host.Admit(rogue)
	c, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	_ = framer.WriteSettings()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	// Each stream announces a message of 15 MiB and sends what it may.
	var failed error
	for stream := uint32(1); stream < 2000 && failed == nil; stream += 2 {
		var head strings.Builder
		encoder := hpack.NewEncoder(&head)
		for _, f := range [][2]string{
			{":method", "POST"}, {":scheme", "http"}, {":path", "/switchboard.kernel.v1.KV/Get"}, {":authority", "kernel"},
			{"content-type", "application/grpc"}, {"te", "trailers"}, {contract.TokenHeader, token},
		} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		_ = framer.WriteHeaders(
			http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(head.String()), EndHeaders: true},
		)
		message := make([]byte, 16<<10)
		binary.BigEndian.PutUint32(message[1:], 15<<20)
		for range 3 {
			_ = c.SetWriteDeadline(time.Now().Add(patience))
			failed = errors.Join(failed, framer.WriteData(stream, false, message))
			message = message[:16<<10]
		}
	}
	if failed == nil || errors.Is(failed, context.DeadlineExceeded) {
		t.Errorf("the connection goes on: %v", failed)
	}
	for i := range 100 { // many complete requests are no harm
		if _, err := other.kv.Get(t.Context(), &kernelv1.GetRequest{Key: strings.Repeat("k", 100<<10)}); err != nil {
			t.Fatalf("request %d of another extension: %v", i, err)
		}
	}
}
