package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

// fake is a kernel that answers what it was asked.
type fake struct {
	control.Kernel
	asked []string
}

func (f *fake) note(format string, args ...any) {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fake) Status(context.Context) (control.Status, error) {
	return control.Status{Version: "1.2.3"}, nil
}

func (f *fake) Session(_ context.Context, id string) (control.Session, error) {
	f.note("session %s", id)
	return control.Session{}, fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, id)
}

func (f *fake) Send(_ context.Context, channel, text string) (control.Sent, error) {
	f.note("send %s %d", channel, len(text))
	return control.Sent{Status: control.SentQueued}, nil
}

func (f *fake) CallTool(_ context.Context, name string, arguments json.RawMessage) (control.ToolResult, error) {
	f.note("tool %s %s", name, arguments)
	return control.ToolResult{Content: "done"}, nil
}

func (f *fake) Reached(_ context.Context, events []trace.Ref) ([]trace.Reach, error) {
	f.note("reached %v", events)
	return []trace.Reach{{Event: "e3", Delivered: true}, {}}, nil
}

func (f *fake) Follow(_ context.Context, q control.EventQuery, each func(control.Event) error) error {
	for _, id := range []string{"e1", "e2"} {
		if err := each(control.Event{ID: id, Topic: q.Topic}); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: enough", contract.ErrInvalid)
}

// serve runs a server and returns where it is.
func serve(t *testing.T, k control.Kernel) (socket, tokenFile string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, tokenFile = filepath.Join(dir, control.SocketName), filepath.Join(dir, control.TokenName)
	token, err := control.NewToken(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, l, token, k, hclog.NewNullLogger()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return socket, tokenFile
}

func TestClient(t *testing.T) {
	t.Parallel()
	f := &fake{}
	socket, token := serve(t, f)
	c, err := control.Dial(t.Context(), socket, token)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s, err := c.Status(t.Context()); err != nil || s.Version != "1.2.3" {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = c.Session(t.Context(), "a/../b?c")
	if !errors.Is(err, contract.ErrNotFound) || !strings.Contains(err.Error(), `there is no session "a/../b?c"`) {
		t.Errorf("error of an odd id: %v", err)
	}
	if r, err := c.CallTool(t.Context(), "x/y", json.RawMessage(`{"a":1}`)); err != nil || r.Content != "done" {
		t.Errorf("%+v, %v", r, err)
	}
	got, err := c.Reached(t.Context(), []trace.Ref{{Source: "x", DedupeKey: "a:1"}, {ID: "e4"}})
	if err != nil || len(got) != 2 || got[0] != (trace.Reach{Event: "e3", Delivered: true}) || got[1] != (trace.Reach{}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Send(t.Context(), "x", strings.Repeat("é", contract.MaxPayload/4)); err != nil {
		t.Errorf("a long text: %v", err)
	}
	if _, err := c.Send(t.Context(), "x", strings.Repeat("x", 3*contract.MaxPayload)); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("a text that is too long: %v", err)
	}
	want := fmt.Sprintf("[session a/../b?c tool x/y {\"a\":1} reached [{ x a:1} {e4  }] send x %d]", contract.MaxPayload/2)
	if got := fmt.Sprint(f.asked); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	var seen []string
	err = c.Follow(t.Context(), control.EventQuery{Topic: "a.b"}, func(e control.Event) error {
		seen = append(seen, e.ID+" "+e.Topic)
		return nil
	})
	if fmt.Sprint(seen) != "[e1 a.b e2 a.b]" || !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("followed %v, %v", seen, err)
	}
}

func TestDialNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := control.Dial(t.Context(), filepath.Join(dir, "none"), ""); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("no socket: %v", err)
	}
	socket := abandoned(t)
	if _, err := control.Dial(t.Context(), socket, ""); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("a socket that a dead kernel left: %v", err)
	}
}

// abandoned is a socket that nobody listens on.
func abandoned(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return socket
}

// TestRefusals: nothing but the command line of the same home may use the
// socket, least of all a web page.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := &fake{}
	socket, tokenFile := serve(t, f)
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	good := "Bearer " + strings.TrimSpace(string(token))
	for name, tc := range map[string]struct {
		method, url, body string
		header            map[string]string
		want              int
	}{
		"as it should be":  {want: 200},
		"no token":         {header: map[string]string{"Authorization": ""}, want: 401},
		"another token":    {header: map[string]string{"Authorization": good + "0"}, want: 401},
		"another scheme":   {header: map[string]string{"Authorization": "Basic " + strings.TrimSpace(string(token))}, want: 401},
		"of a web page":    {header: map[string]string{"Origin": "http://localhost"}, want: 403},
		"of a null origin": {header: map[string]string{"Origin": "null"}, want: 403},
		"of a browser":     {header: map[string]string{"Sec-Fetch-Site": "none"}, want: 403},
		"with a cookie":    {header: map[string]string{"Cookie": "a=b"}, want: 403},
		"another host":     {url: "http://localhost/v1/status", want: 403},
		"an unknown path":  {url: "http://switchboard/v2/status", want: 404},
		"another method":   {method: "POST", want: 404},
		"no JSON":          {method: "POST", url: "http://switchboard/v1/people/approve", body: "code", want: 400},
	} {
		if tc.url == "" {
			tc.url = "http://switchboard/v1/status"
		}
		r, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", good)
		for key, value := range tc.header {
			r.Header.Set(key, value)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != tc.want {
			t.Errorf("%s: %s: %s, want %d", name, response.Status, body, tc.want)
		}
		if !json.Valid(body) {
			t.Errorf("%s: the answer is no JSON: %s", name, body)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("the kernel was asked: %v", f.asked)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), control.TokenName)
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil { //nolint:gosec // that is what is wrong with it
		t.Fatal(err)
	}
	first, err := control.NewToken(file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := control.NewToken(file)
	if err != nil || first == second || len(first) != 64 {
		t.Errorf("tokens %q, %q, %v", first, second, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := control.NewToken(filepath.Join(file, "x")); err == nil {
		t.Error("a token was written where no file can be")
	}
}
