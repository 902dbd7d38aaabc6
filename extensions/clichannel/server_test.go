package clichannel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyTerminalsOfTheSameUserAreAccepted(t *testing.T) {
	t.Parallel()
	r := newGuardedRig(t, func(c net.Conn) (int, error) {
		if _, err := ownuser.Check(c); err != nil {
			return 0, fmt.Errorf("the same user is refused: %w", err)
		}
		return 0, errors.New("another user")
	})
	info, err := os.Stat(filepath.Join(r.dir, wire.SocketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket is %v, %v", info.Mode(), err)
	}
	c := r.dial()
	if f := c.expect(wire.Error); !f.Fatal || f.Text != "another user" {
		t.Errorf("got %+v", f)
	}
	c.expectEnd()
}

func TestBadHellosAreRefused(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"another version": `{"type":"hello","version":99}`,
		"no hello":        `{"type":"message","id":"1","text":"x"}`,
		"garbage":         `GET / HTTP/1.1`,
		"oversize":        strings.Repeat("x", wire.MaxFrame+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := r.dial()
			_, _ = io.WriteString(c.raw, line+"\n")
			if f := c.expectEnd(); f.Type != wire.Error || !f.Fatal {
				t.Errorf("got %+v", f)
			}
			if n := len(r.kernel.received()); n != 0 {
				t.Errorf("the kernel has %d messages", n)
			}
		})
	}
}

func TestRepeatedBadFramesEndTheConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	other, _ := r.attach(wire.Frame{})
	_, _ = io.WriteString(c.raw, "what?\n")
	if f := c.expect(wire.Error); f.Fatal || f.ID != "" {
		t.Errorf("got %+v", f)
	}
	_, _ = io.WriteString(c.raw, `{"type":"from the future","x":[1]}`+"\n")
	c.write(wire.Frame{Type: wire.Message, ID: "1", Text: "still here"})
	c.expect(wire.Accepted)
	_, _ = io.WriteString(c.raw, strings.Repeat("what?\n", maxBadFrames))
	c.expectEnd()
	other.expect(wire.Echo) // the others are not affected
	other.write(wire.Frame{Type: wire.Message, ID: "2", Text: "x"})
	other.expect(wire.Accepted)
}

func TestAnOversizeLineEndsItsConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	_, _ = io.WriteString(c.raw, strings.Repeat("x", wire.MaxFrame+64<<10))
	if f := c.expectEnd(); f.Type != wire.Error || !strings.Contains(f.Text, "too long") {
		t.Errorf("got %+v", f)
	}
}

func TestACutOffMessageIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	r.kernel.awaitState(sdk.Ready)
	_, _ = io.WriteString(c.raw, `{"type":"message","id":"1","text":"half`)
	_ = c.raw.Close()
	r.kernel.awaitState(sdk.Offline)
	if got := r.kernel.received(); len(got) != 0 {
		t.Errorf("the kernel has %+v", got)
	}
}

func TestASlowTerminalDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow, _ := r.attach(wire.Frame{})
	fast, _ := r.attach(wire.Frame{})
	text := strings.Repeat("x", 64<<10)
	for i := range 2 * maxQueuedBytes / len(text) {
		id := fmt.Sprint("e", i)
		result := r.send(sdk.Message{ID: id, Text: text, Conversation: "terminal"})
		fast.expect(wire.Message)
		fast.write(wire.Frame{Type: wire.Shown, ID: id})
		if s := <-result; s.err != nil {
			t.Fatal(s.err)
		}
	}
	slow.expectEnd() // it was detached
}

func TestDraftsOfASlowTerminalAreDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow, _ := r.attach(wire.Frame{})
	for i := range 50_000 {
		r.Draft(t.Context(), sdk.Draft{Conversation: "terminal", Text: fmt.Sprint(i)})
	}
	result := r.send(sdk.Message{ID: "e1", Text: "final", Conversation: "terminal"})
	for {
		if f := slow.read(); f.Type == wire.Message {
			break
		}
	}
	slow.write(wire.Frame{Type: wire.Shown, ID: "e1"})
	if s := <-result; s.err != nil {
		t.Error(s.err)
	}
}

func TestTooManyTerminals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range maxTerminals {
		r.attach(wire.Frame{})
	}
	c := r.dial()
	c.write(wire.Frame{Type: wire.Hello, Version: wire.Version})
	if f := c.expectEnd(); !f.Fatal || !strings.Contains(f.Text, "close one") {
		t.Errorf("got %+v", f)
	}
}

func TestAFloodOfConnectionsBlocksNoOthers(t *testing.T) {
	t.Parallel()
	const flood, limit = 300, 128
	var process atomic.Int64 // the connecting process
	r := newGuardedRig(t, func(net.Conn) (int, error) { return int(process.Load()), nil })
	attached, _ := r.attach(wire.Frame{})
	process.Store(1)
	silent := make([]*chat, flood)
	for i := range silent {
		silent[i] = r.dial()
	}
	for _, c := range silent[:flood-limit] {
		c.expectEnd()
	}
	process.Store(2)
	later, _ := r.attach(wire.Frame{})
	for i, c := range []*chat{attached, later} {
		c.write(wire.Frame{Type: wire.Message, ID: fmt.Sprint(i), Text: "hello"})
		for c.read().Type != wire.Accepted {
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	short := func(t *testing.T) string {
		dir, err := os.MkdirTemp("", "l")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	t.Run("makes a private directory", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(short(t), "run")
		l, err := listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("replaces a dead socket", func(t *testing.T) {
		t.Parallel()
		dir := short(t)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, wire.SocketName), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		_ = dead.Close()
		l, err := listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	})
	for name, prepare := range map[string]func(t *testing.T) string{
		"no directory":    func(*testing.T) string { return "" },
		"a path too long": func(t *testing.T) string { return filepath.Join(short(t), strings.Repeat("x", 100)) },
		"open to others":  func(t *testing.T) string { d := short(t); _ = os.Chmod(d, 0o755); return d },
		//nolint:gosec // on purpose
		"a file in the way": func(t *testing.T) string {
			d := short(t)
			_ = os.WriteFile(filepath.Join(d, wire.SocketName), nil, 0o600)
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if l, err := listen(prepare(t)); err == nil {
				_ = l.Close()
				t.Error("no error")
			}
		})
	}
}

func TestTerminalMustSendTheToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.token = "the token"
	r.begin()
	for token, want := range map[string]wire.Type{"": wire.Error, "another": wire.Error, "the token": wire.Welcome} {
		c := r.dial()
		if err := c.conn.Write(wire.Frame{Type: wire.Hello, Version: wire.Version, Terminal: "x", Token: token}); err != nil {
			t.Fatal(err)
		}
		f, err := c.conn.Read()
		if err != nil || f.Type != want || f.Fatal != (want == wire.Error) {
			t.Errorf("with %q the answer is %+v, %v", token, f, err)
		}
	}
}

func TestTokenStaysAndIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := loadToken(dir)
	if err != nil || len(first) < 20 {
		t.Fatalf("%q, %v", first, err)
	}
	if second, err := loadToken(dir); second != first || err != nil {
		t.Errorf("then %q, %v", second, err)
	}
	if info, err := os.Stat(filepath.Join(dir, wire.TokenName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v", info, err)
	}
	if other, err := loadToken(t.TempDir()); other == first || err != nil {
		t.Errorf("elsewhere %q, %v", other, err)
	}
}
