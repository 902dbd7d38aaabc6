package admin_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/kernel/host"
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
		World: kerneltest.New(
			t,
		),
		socket:    filepath.Join(dir, contract.ControlSocket),
		tokenFile: filepath.Join(dir, contract.ControlToken),
	}
	if err := os.WriteFile(s.tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	service, h := serviceOf(s.World), host.New()
	h.Options = host.Options{
		Bus:       s.Bus,
		Sessions:  s.Sessions,
		Directory: s.Directory,
		Tools:     s.Tools,
		Log:       hclog.NewNullLogger(),

		OwnerToken: token,
	}
	s.house = service.Installation.(*house)
	service.Register(h)
	done := make(chan error, 1)
	go func() { done <- h.ServeOwner(l) }()
	s.stop = sync.OnceFunc(func() {
		h.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
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
	s.house.extensions = []*adminv1.Extension{{Id: "off", State: "disabled", Detail: "by the owner"}, {Id: "gone"}}
	c, ctx := s.client(), t.Context()
	x, err := admin.ReadStatus(ctx, c)
	if err != nil || x.GetHome() != "/home" || x.GetPid() != int64(os.Getpid()) || len(x.Extensions) != 2 ||
		x.LastEvent != "" {
		t.Errorf("%+v, %v", x, err)
	}
	first := s.Emits("a.b", map[string]any{"text": "hello"})
	if e, err := admin.EventByID(
		ctx,
		c,
		first.GetId(),
	); err != nil || string(e.GetPayload()) != `{"text":"hello"}` ||
		e.GetTopic() != "a.b" {
		t.Errorf("%+v, %v", e, err)
	}
	for name, ask := range map[string]struct {
		err  error
		want error
	}{
		"no such event":      {second(admin.EventByID(ctx, c, "e99")), contract.ErrNotFound},
		"no such session":    {second(admin.Session(ctx, c, "s9")), contract.ErrNotFound},
		"no such history":    {second(admin.History(ctx, c, &adminv1.HistoryRequest{Session: "nonsense"})), contract.ErrNotFound},
		"no topic":           {second(admin.Events(ctx, c, &adminv1.EventsRequest{Topic: "Not A Topic"})), contract.ErrInvalid},
		"too many days":      {second(c.Usage(ctx, &adminv1.UsageRequest{Days: 401})), contract.ErrInvalid},
		"no such extension":  {restarted(admin.Restart(ctx, c, "never")), contract.ErrNotFound},
		"a disabled one":     {restarted(admin.Restart(ctx, c, "off")), contract.ErrInvalid},
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
	if d, err := c.Decide(ctx, &adminv1.DecideRequest{Id: "x", Allow: true}); err != nil || d.GetExtension().GetId() != "x" ||
		!d.GetChanged() {
		t.Errorf("decided %v, %v", d, err)
	}
	if made, err := c.Backup(
		ctx,
		&adminv1.BackupRequest{File: "/b"},
	); err != nil ||
		string(made.GetInfo()) != `{"file":"/b"}` {
		t.Errorf("%s, %v", made.GetInfo(), err)
	}
}

func second[T any](_ T, err error) error { return err }

func restarted(_ *adminv1.Extension, _ []string, err error) error { return err }

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
	if _, err := events.Recv(); !errors.Is(err, contract.ErrGone) ||
		!strings.Contains(err.Error(), "the kernel has stopped") {
		t.Errorf("at the end: %v", err)
	}
	if _, err := admin.Dial(t.Context(), s.socket, s.tokenFile); !errors.Is(err, admin.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// A client that has the token of another run is told so.
func TestTheTokenOfAnotherRun(t *testing.T) {
	t.Parallel()
	s := serve(t)
	if err := os.WriteFile(s.tokenFile, []byte("of another run"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client().Status(t.Context(), &adminv1.StatusRequest{}); !errors.Is(err, contract.ErrStale) {
		t.Errorf("a client with the token of another run: %v", err)
	}
}
