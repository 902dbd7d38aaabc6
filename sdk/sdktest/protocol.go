package sdktest

import (
	"context"
	"os"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest/rules"
)

// protocol checks the rules of package rules, those of `switchboard extensions verify`, on
// the extension in this process.
func (c conformance) protocol(t *testing.T) {
	c.watchLeaks(t)
	manifest, err := c.options.manifest()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := c.options.spec(manifest, c.newExtension())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sb") // short: the path of a socket has at most 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	spec.DataDir, spec.RunDir = t.TempDir(), dir
	start := func(context.Context) (*rules.Process, error) { return c.process(t) }
	subject := rules.Subject{Spec: spec, InProcess: true, SocketDir: dir, Start: start}
	for _, r := range rules.Check(t.Context(), subject, rules.Options{Patience: Patience}) {
		if r.State == rules.Fail {
			t.Errorf("%s: %s; expected: %s", r.Rule, r.Seen, r.Expected)
		}
	}
}

// process is one start of the extension, served as in a process of its own.
func (c conformance) process(t *testing.T) (*rules.Process, error) {
	t.Helper()
	server, err := sdk.NewServer(Logger(t), c.newExtension())
	if err != nil {
		return nil, err
	}
	g := grpc.NewServer(server.Options()...)
	server.Register(g)
	listener := bufconn.Listen(64 << 10)
	conn, err := dial(listener)
	if err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() { _ = g.Serve(listener) }()
	go func() {
		<-server.Done()
		g.Stop()
		close(gone)
	}()
	cut := sync.OnceFunc(func() { _ = conn.Close() })
	none := func() []string { return nil }
	return &rules.Process{
		Conn: conn, Gone: gone, Cut: cut, Quit: func() {}, Stdout: none, Stderr: none,
		Kill: func() {
			server.Close(0)
			<-gone
			cut()
		},
		Exit: func() (bool, string) { return false, "the extension has closed" },
	}, nil
}
