package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	kernel "github.com/switchboard-run/switchboard/kernel/admin"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "secret"

// served is a kernel with its control socket.
type served struct {
	*kerneltest.World
	house             *house
	socket, tokenFile string
	foreign           atomic.Pointer[error] // what is wrong with the user of connections
	stop              func()
}

func serve(t *testing.T) *served {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "adm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &served{
		World: kerneltest.New(t), socket: filepath.Join(dir, contract.ControlSocket), tokenFile: filepath.Join(dir, contract.ControlToken),
	}
	if err := os.WriteFile(s.tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	l := ownuser.Listen(raw, nil)
	l.Check = func(c net.Conn) (int, error) {
		if foreign := s.foreign.Load(); foreign != nil {
			return 0, *foreign
		}
		return ownuser.Check(c)
	}
	service := serviceOf(s.World)
	s.house = service.Installation.(*house)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Serve(ctx, l, token) }()
	s.stop = func() {
		if cancel(); done == nil {
			return
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		done = nil
	}
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *served) client() *admin.Client {
	s.T.Helper()
	c, err := admin.Dial(s.T.Context(), s.socket, s.tokenFile)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(c.Close)
	return c
}

func TestTheOwner(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.house.extensions = []*adminv1.Extension{{Id: "off", State: kernel.Disabled}, {Id: "gone"}}
	c, ctx := s.client(), t.Context()
	x, err := c.Status(ctx, &adminv1.StatusRequest{})
	if err != nil || x.GetHome() != "/home" || x.GetPid() != int64(os.Getpid()) || len(x.GetExtensions()) != 2 || x.GetExtensions()[1].GetState() != "inactive" {
		t.Errorf("%+v, %v", x, err)
	}
	if p := x.GetProblems(); len(p) != 1 || p[0] != "bad \uFFFD line" {
		t.Errorf("problems %q", p)
	}
	first := s.Emits("a.b", map[string]any{"text": "hello"})
	if e, err := admin.Event(ctx, c, first.GetId()); err != nil || string(e.GetPayload()) != `{"text":"hello"}` || e.GetTopic() != "a.b" {
		t.Errorf("%+v, %v", e, err)
	}
	for name, ask := range map[string]struct {
		err  error
		want error
	}{
		"no such event":      {second(admin.Event(ctx, c, "e99")), contract.ErrNotFound},
		"no such session":    {second(admin.Session(ctx, c, "s9")), contract.ErrNotFound},
		"no such history":    {second(admin.History(ctx, c, "nonsense")), contract.ErrNotFound},
		"no topic":           {second(admin.Events(ctx, c, &adminv1.EventsRequest{Topic: "Not A Topic"})), contract.ErrInvalid},
		"too many days":      {second(c.Usage(ctx, &adminv1.UsageRequest{Days: 401})), contract.ErrInvalid},
		"no such extension":  {second(c.Restart(ctx, &adminv1.RestartRequest{Id: "never"})), contract.ErrNotFound},
		"a disabled one":     {second(c.Restart(ctx, &adminv1.RestartRequest{Id: "off"})), contract.ErrInvalid},
		"no text":            {second(c.Send(ctx, &adminv1.SendRequest{Channel: "x", Text: " "})), contract.ErrInvalid},
		"too long a text":    {second(c.Send(ctx, &adminv1.SendRequest{Channel: "x", Text: strings.Repeat("x", contract.MaxPayload)})), contract.ErrTooLarge},
		"no such channel":    {second(c.Send(ctx, &adminv1.SendRequest{Channel: "x", Text: "hello"})), contract.ErrNotFound},
		"no such code":       {second(c.Approve(ctx, &adminv1.ApproveRequest{Code: "AAAAAAAA"})), contract.ErrNotFound},
		"not approved":       {second(c.Revoke(ctx, &adminv1.RevokeRequest{Channel: "x", UserId: "1"})), contract.ErrNotFound},
		"nothing is dead":    {second(c.Resubmit(ctx, &adminv1.ResubmitRequest{Event: first.GetId()})), contract.ErrNotFound},
		"deleting nothing":   {second(c.DeleteSession(ctx, &adminv1.DeleteSessionRequest{Id: "s9"})), contract.ErrNotFound},
		"arguments not JSON": {second(c.CallTool(ctx, &adminv1.CallToolRequest{Name: "x/y", Arguments: []byte("{")})), contract.ErrInvalid},
		"no such tool":       {second(c.CallTool(ctx, &adminv1.CallToolRequest{Name: "x/y", Arguments: []byte("{}")})), contract.ErrNotFound},
	} {
		if !errors.Is(ask.err, ask.want) {
			t.Errorf("%s: %v, not %v", name, ask.err, ask.want)
		}
	}
	if made, err := c.Backup(ctx, &adminv1.BackupRequest{File: "/b"}); err != nil || string(made.GetInfo()) != `{"file":"/b"}` {
		t.Errorf("%s, %v", made.GetInfo(), err)
	}
}

func second[T any](_ T, err error) error { return err }

// Who follows misses nothing and sees nothing twice, and is told when the kernel
// stops.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.Emits("a.b", 0)
	events, err := s.client().Events(t.Context(), &adminv1.EventsRequest{Topic: "a.*", Follow: true, After: 1})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1200 // more than one page
	for i := range n {
		s.Emits("c.d", i)
		s.Emits("a.b", i)
	}
	for i := range n {
		if e, err := events.Recv(); err != nil || string(e.GetPayload()) != fmt.Sprint(i) || e.GetTopic() != "a.b" {
			t.Fatalf("event %d is %+v, %v", i, e, err)
		}
	}
	s.stop()
	if _, err := events.Recv(); !errors.Is(err, contract.ErrGone) || !strings.Contains(err.Error(), "the kernel has stopped") {
		t.Errorf("at the end: %v", err)
	}
	if _, err := admin.Dial(t.Context(), s.socket, s.tokenFile); !errors.Is(err, admin.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// methods are all of the service, as "service grant".
func methods() map[string]kernel.Grant {
	all := map[string]kernel.Grant{}
	for grant, d := range map[kernel.Grant]*grpc.ServiceDesc{kernel.Read: &adminv1.Read_ServiceDesc, kernel.Manage: &adminv1.Manage_ServiceDesc} {
		for _, m := range d.Methods {
			all["/"+d.ServiceName+"/"+m.MethodName] = grant
		}
		for _, m := range d.Streams {
			all["/"+d.ServiceName+"/"+m.StreamName] = grant
		}
	}
	return all
}

// ask calls a method with an empty request and returns what became of it.
func ask(ctx context.Context, c *grpc.ClientConn, method string) error {
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err == nil {
		err = errors.Join(stream.SendMsg(&emptypb.Empty{}), stream.CloseSend())
	}
	if err == nil {
		err = stream.RecvMsg(&emptypb.Empty{})
	}
	return err
}

// Without the token of this run nothing is served, whatever the method.
func TestWithoutTheToken(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := connect(t, s.socket)
	for name, pairs := range map[string][]string{
		"no token":      nil,
		"another token": {contract.TokenHeader, token + "0"},
		"part of it":    {contract.TokenHeader, token[:3]},
		"empty":         {contract.TokenHeader, ""},
		"another key":   {"authorization", token},
	} {
		for method := range methods() {
			err := ask(metadata.AppendToOutgoingContext(t.Context(), pairs...), c, method)
			if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "the request lacks the token") {
				t.Errorf("%s, %s: %v", name, method, err)
			}
		}
	}
	if err := ask(metadata.AppendToOutgoingContext(t.Context(), contract.TokenHeader, token), c, "/switchboard.admin.v1.Read/Status"); err != nil {
		t.Errorf("with the token: %v", err)
	}
	if err := os.WriteFile(s.tokenFile, []byte("of another run"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client().Status(t.Context(), &adminv1.StatusRequest{}); !errors.Is(err, contract.ErrStale) {
		t.Errorf("a client with the token of another run: %v", err)
	}
}

func connect(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A process of another user is sent away before it is heard, also with the token.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	s := serve(t)
	foreign := errors.New("another user")
	s.foreign.Store(&foreign)
	if _, err := s.client().Status(t.Context(), &adminv1.StatusRequest{}); !errors.Is(err, contract.ErrGone) {
		t.Errorf("another user is answered: %v", err)
	}
}

// Each method needs the grant of its service: a caller that may read changes
// nothing, and one without a grant sees nothing.
func TestGrants(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(t)
	for _, granted := range []kernel.Grant{kernel.None, kernel.Read, kernel.Manage} {
		server := serviceOf(w).Server(t.Context(), func(context.Context) (kernel.Grant, error) { return granted, nil })
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- server.Serve(l) }()
		c := connect(t, socket)
		for method, needed := range methods() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := ask(ctx, c, method)
			cancel()
			denied := status.Code(err) == codes.PermissionDenied
			if denied != (granted < needed) || denied && !strings.Contains(err.Error(), "needs the grant admin: ") {
				t.Errorf("granted %d, %s: %v", granted, method, err)
			}
		}
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
