package admin_test

import (
	"context"
	"io"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	kernel "github.com/switchboard-run/switchboard/kernel/admin"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// serviceOf serves a world.
func serviceOf(w *kerneltest.World) *kernel.Service {
	w.T.Helper()
	super := supervisor.New(supervisor.Options{})
	w.T.Cleanup(func() { _ = super.Stop(context.Background()) })
	return &kernel.Service{
		Installation: &house{},
		Started:      time.Now(),
		Journal:      w.Store,
		Bus:          w.Bus,
		Store:        w.Sessions,
		Known:        w.Directory,
		Router:       w.Router,
		Tools:        w.Tools,
		Ledger:       models.NewLedger(w.Bus, w.Directory, hclog.NewNullLogger()),
		Supervisor:   super,
	}
}

// house is an installation.
type house struct {
	adminv1.UnimplementedInstallationServer
	extensions []*adminv1.Extension
}

func (*house) Describe(s *adminv1.Status, _ error) { s.Home = "/home" }
func (h *house) Extensions(rows []*adminv1.Extension) []*adminv1.Extension {
	return append(rows, h.extensions...)
}
func (*house) Configuration(context.Context, *adminv1.ConfigurationRequest,
) (*adminv1.ConfigurationResponse, error) {
	return &adminv1.ConfigurationResponse{Text: "timezone: Europe/Berlin\n"}, nil
}
func (*house) Logs(_ context.Context, q *adminv1.LogsRequest) (*adminv1.LogsResponse, error) {
	return &adminv1.LogsResponse{Lines: []string{q.GetName(), strconv.Itoa(int(q.GetLines()))}}, nil
}
func (*house) Decide(_ context.Context, q *adminv1.DecideRequest) (*adminv1.DecideResponse, error) {
	return &adminv1.DecideResponse{Extension: &adminv1.Extension{Id: q.GetId()}, Changed: q.GetAllow()}, nil
}
func (*house) Backup(_ context.Context, q *adminv1.BackupRequest) (*adminv1.BackupResponse, error) {
	return &adminv1.BackupResponse{Info: []byte(`{"file":"` + q.GetFile() + `"}`)}, nil
}

// reads reads a world without a connection: a bubble has none.
func reads(w *kerneltest.World) adminv1.ReadClient {
	return direct{s: &kernel.Service{Bus: w.Bus, Store: w.Sessions, Known: w.Directory}}
}

type direct struct {
	adminv1.ReadClient
	s *kernel.Service
}

func (d direct) Events(
	ctx context.Context,
	q *adminv1.EventsRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_EventsClient, error) {
	return collect(ctx, q, d.s.Events)
}

func (d direct) Deliveries(
	ctx context.Context,
	q *adminv1.DeliveriesRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_DeliveriesClient, error) {
	return collect(ctx, q, d.s.Deliveries)
}

func (d direct) History(
	ctx context.Context,
	q *adminv1.HistoryRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_HistoryClient, error) {
	return collect(ctx, q, d.s.History)
}

func (d direct) Calls(
	ctx context.Context,
	q *adminv1.CallsRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_CallsClient, error) {
	return collect(ctx, q, d.s.Calls)
}

func (d direct) Sessions(
	ctx context.Context,
	q *adminv1.SessionsRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_SessionsClient, error) {
	return collect(ctx, q, d.s.Sessions)
}

func (d direct) Turns(
	ctx context.Context,
	q *adminv1.TurnsRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_TurnsClient, error) {
	return collect(ctx, q, d.s.Turns)
}

// collect calls a method and keeps what it sends.
func collect[Q, R any](
	ctx context.Context,
	q *Q,
	method func(*Q, grpc.ServerStreamingServer[R]) error,
) (*collected[R], error) {
	c := &collected[R]{ctx: ctx}
	return c, method(q, c)
}

// collected is both ends of a stream.
type collected[T any] struct {
	grpc.ServerStream
	grpc.ClientStream
	ctx  context.Context
	rows []*T
}

func (c *collected[T]) Context() context.Context { return c.ctx }
func (c *collected[T]) SendMsg(any) error        { return nil }
func (c *collected[T]) RecvMsg(any) error        { return nil }

func (c *collected[T]) Send(row *T) error {
	c.rows = append(c.rows, row)
	return nil
}

func (c *collected[T]) Recv() (*T, error) {
	if len(c.rows) == 0 {
		return nil, io.EOF
	}
	row := c.rows[0]
	c.rows = c.rows[1:]
	return row, nil
}
