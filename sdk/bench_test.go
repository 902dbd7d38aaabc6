package sdk_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// The benchmarks run both ends of the protocol in one process over unix
// sockets, with a kernel that stores nothing: they measure the cost of the SDK and
// of gRPC.

type nullBus struct {
	kernelv1.UnimplementedBusServer
}

func (nullBus) Commit(stream grpc.BidiStreamingServer[kernelv1.CommitFrame, kernelv1.ReceiptFrame]) error {
	for {
		in, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the end of the stream
		}
		out := &kernelv1.ReceiptFrame{Receipts: make([]*busv1.CommitReceipt, len(in.GetCommits()))}
		for i := range out.GetReceipts() {
			out.Receipts[i] = &busv1.CommitReceipt{}
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

func benchServe(b *testing.B, s *grpc.Server) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "sb") //nolint:usetesting // short, for sockets
	if err != nil {
		b.Fatal(err)
	}
	lis, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(lis) }()
	b.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	return "unix:" + lis.Addr().String()
}

func benchExtension(b *testing.B, ext sdk.Extension) *grpc.ClientConn {
	b.Helper()
	kernel := grpc.NewServer()
	kernelv1.RegisterBusServer(kernel, nullBus{})
	server, err := sdk.NewServer(hclog.NewNullLogger(), ext)
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer(server.Options()...)
	server.Register(s)
	conn, err := grpc.NewClient(benchServe(b, s),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(contract.MaxMessage)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	_, err = extensionv1.NewExtensionClient(conn).Init(b.Context(), &extensionv1.InitRequest{
		Id: ext.ID, KernelAddress: benchServe(b, kernel), KernelToken: "t",
	})
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// BenchmarkDeliver measures deliveries of 300 bytes until their acknowledgement.
func BenchmarkDeliver(b *testing.B) {
	conn := benchExtension(b, sdk.Extension{ID: "bench", Handle: func(context.Context, sdk.Event) (sdk.Effects, error) {
		return nil, nil
	}})
	stream, err := extensionv1.NewEventsClient(conn).Deliver(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	payload := []byte(`{"text":"` + string(make300()) + `"}`)
	credit := make(chan int, 1<<16)
	done := make(chan error, 1)
	go func() {
		for n := 0; n < b.N; {
			f, err := stream.Recv()
			if err != nil {
				done <- err
				return
			}
			credit <- int(f.GetCredit())
			n += len(f.GetOutcomes())
		}
		done <- nil
	}()
	b.ReportAllocs()
	b.ResetTimer()
	available := 0
	for sent := 0; sent < b.N; {
		if available == 0 {
			available += <-credit
		}
		for more := true; more; {
			select {
			case n := <-credit:
				available += n
			default:
				more = false
			}
		}
		n := min(available, b.N-sent, 256)
		frame := &extensionv1.DeliverFrame{Deliveries: make([]*busv1.Delivery, n)}
		for i := range frame.GetDeliveries() {
			token := strconv.Itoa(sent + i)
			frame.Deliveries[i] = &busv1.Delivery{
				Token: token, Attempt: 1, Subscription: "bench.event", DeadlineUs: 4e15,
				Event: &busv1.Event{Seq: int64(sent + i), Id: "e" + token, Topic: "bench.event", Source: "bench", Payload: payload},
			}
		}
		if err := stream.Send(frame); err != nil {
			b.Fatal(err)
		}
		available -= n
		sent += n
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func make300() []byte {
	b := make([]byte, 280)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// BenchmarkCommit measures commits of one event of 300 bytes until their receipt,
// with one caller and with many.
func BenchmarkCommit(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			var kernel *sdk.Kernel
			benchExtension(b, sdk.Extension{ID: "bench", Start: func(_ context.Context, k *sdk.Kernel) error {
				kernel = k
				return nil
			}})
			text := string(make300())
			b.ReportAllocs()
			b.SetParallelism(max(1, callers/2)) // per core of two
			if callers == 1 {
				for b.Loop() {
					if _, err := kernel.Commit(b.Context(), sdk.Publish("bench.event", text)); err != nil {
						b.Fatal(err)
					}
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := kernel.Commit(b.Context(), sdk.Publish("bench.event", text)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
