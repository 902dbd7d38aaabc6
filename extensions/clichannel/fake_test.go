package clichannel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
)

// fakeKernel accepts or refuses messages as the test sets.
type fakeKernel struct {
	mu       sync.Mutex
	changed  *sync.Cond
	taking   func() // called by Receive
	fail     error  // result of Receive
	messages []contract.UserMessage
	dedupe   map[string]bool
	states   []extensionv1.Readiness_State
	values   map[string]sdk.Value
	files    map[string]string // by hash
	storing  func() error      // called by PutBlob with the file
}

func (k *fakeKernel) Receive(_ context.Context, m contract.UserMessage, dedupe string, effects ...sdk.Effect) error {
	if k.taking != nil {
		k.taking()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	if !k.dedupe[dedupe] {
		k.dedupe[dedupe] = true
		k.messages = append(k.messages, m)
	}
	k.changed.Broadcast()
	return k.apply(effects)
}

// Commit applies what the channel writes. A file that is not stored can't be kept.
func (k *fakeKernel) Commit(_ context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return nil, k.apply(effects)
}

// apply is Commit; k.mu is held.
func (k *fakeKernel) apply(effects []sdk.Effect) error {
	for _, e := range effects {
		pb, err := e.Proto()
		if err != nil {
			return err
		}
		for _, hash := range pb.GetPut().GetBlobs() {
			if _, ok := k.files[hash]; !ok {
				return fmt.Errorf("file %s: %w", hash, contract.ErrNotFound)
			}
		}
		switch put := pb.GetPut(); {
		case put != nil:
			k.values[put.GetKey()] = sdk.Value{Key: put.GetKey(), Value: put.GetValue(), Version: 1}
		case pb.GetDelete() != nil:
			delete(k.values, pb.GetDelete().GetKey())
		}
	}
	return nil
}

// Page returns two values at a time, whatever the limit.
func (k *fakeKernel) Page(_ context.Context, prefix, after string, _ int) (page []sdk.Value, more bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(k.values)) {
		if !strings.HasPrefix(key, prefix) || key <= after {
			continue
		}
		if len(page) == 2 {
			return page, true, nil
		}
		page = append(page, k.values[key])
	}
	return page, false, nil
}

func (k *fakeKernel) PutBlob(ctx context.Context, from io.Reader) (sdk.Blob, error) {
	b, err := io.ReadAll(from)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return sdk.Blob{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.storing != nil {
		if err := k.storing(); err != nil {
			return sdk.Blob{}, err
		}
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(b))
	k.files[hash] = string(b)
	return sdk.Blob{Hash: hash, Size: int64(len(b))}, nil
}

func (k *fakeKernel) GetBlob(_ context.Context, name string, to io.Writer) (sdk.Blob, error) {
	k.mu.Lock()
	text, ok := k.files[name]
	k.mu.Unlock()
	if !ok {
		return sdk.Blob{}, fmt.Errorf("read file %s: %w", name, contract.ErrNotFound)
	}
	n, err := io.WriteString(to, text)
	return sdk.Blob{Hash: name, Size: int64(n)}, err
}

func (k *fakeKernel) SetReadiness(state extensionv1.Readiness_State, _ string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.states = append(k.states, state)
	k.changed.Broadcast()
}

func (k *fakeKernel) Commands(context.Context) ([]*kernelv1.Command, error) {
	return []*kernelv1.Command{{Name: "new"}, {Name: "schedules"}}, nil
}

func (k *fakeKernel) Log() hclog.Logger { return hclog.NewNullLogger() }

func (k *fakeKernel) failWith(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = err
}

func (k *fakeKernel) received() []contract.UserMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]contract.UserMessage(nil), k.messages...)
}

// awaitState waits until the channel's last reported state is state.
func (k *fakeKernel) awaitState(want extensionv1.Readiness_State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.states) == 0 || k.states[len(k.states)-1] != want {
		k.changed.Wait()
	}
}

// rig is a channel that serves a socket, and its kernel.
type rig struct {
	*channel
	t      *testing.T
	kernel *fakeKernel
	dir    string
	token  string                      // required of terminals
	whose  func(net.Conn) (int, error) // instead of ownuser.Check
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newGuardedRig(t, ownuser.Check)
}

func newGuardedRig(t *testing.T, whose func(net.Conn) (int, error)) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "clich") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &rig{t: t, dir: dir, whose: whose}
	r.begin()
	return r
}

// begin starts the channel, like a new process of the extension.
func (r *rig) begin() {
	r.t.Helper()
	r.kernel = &fakeKernel{dedupe: map[string]bool{}, values: map[string]sdk.Value{}, files: map[string]string{}}
	r.kernel.changed = sync.NewCond(&r.kernel.mu)
	r.channel = newChannel()
	r.aloneTimeout = time.Hour
	r.sendTimeout, r.helloTimeout, r.writeTimeout, r.checkPeer = time.Hour, time.Hour, time.Hour, r.whose
	r.channel.token = r.token
	if err := r.serve(r.t.Context(), r.kernel, r.dir, Config{Greeting: "a test model", Hint: "no hint"}); err != nil {
		r.t.Fatal(err)
	}
	c := r.channel
	r.t.Cleanup(func() { _ = c.stop(context.Background()) })
}

// A short timeout is for sends that must fail.
const little = 100 * time.Millisecond

// chat is a terminal that the test controls.
type chat struct {
	t    *testing.T
	raw  net.Conn
	conn *wire.Conn
}

func (r *rig) dial() *chat {
	r.t.Helper()
	c, err := net.Dial("unix", filepath.Join(r.dir, wire.SocketName))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return &chat{t: r.t, raw: c, conn: wire.NewConn(c, 0)}
}

// attach dials and waits for the welcome; the terminal is attached when it returns.
func (r *rig) attach(hello wire.Frame) (*chat, wire.Frame) {
	r.t.Helper()
	c := r.dial()
	hello.Type, hello.Version = wire.Hello, wire.Version
	if hello.Terminal == "" {
		hello.Terminal = wire.NewID()
	}
	c.write(hello)
	welcome := c.expect(wire.Welcome)
	c.write(wire.Frame{Type: wire.Message, ID: "probe", Text: " "}) // refused once attached
	if f := c.expect(wire.Error); f.ID != "probe" {
		r.t.Fatalf("got %+v", f)
	}
	return c, welcome
}

func (c *chat) write(f wire.Frame) {
	c.t.Helper()
	if err := c.conn.Write(f); err != nil {
		c.t.Fatal("write:", err)
	}
}

func (c *chat) read() wire.Frame {
	c.t.Helper()
	f, err := c.conn.Read()
	if err != nil {
		c.t.Fatal("read:", err)
	}
	return f
}

func (c *chat) expect(want wire.Type) wire.Frame {
	c.t.Helper()
	f := c.read()
	if f.Type != want {
		c.t.Fatalf("got %+v, want %s", f, want)
	}
	return f
}

// expectEnd reads until the channel closes the connection and returns the last
// frame.
func (c *chat) expectEnd() (last wire.Frame) {
	c.t.Helper()
	for {
		f, err := c.conn.Read()
		if errors.Is(err, wire.ErrBadFrame) {
			c.t.Fatal(err)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !isReset(err) {
				c.t.Fatal(err)
			}
			return last
		}
		last = f
	}
}

// sent is the result of a Send.
type sent struct {
	receipt sdk.Receipt
	err     error
}

func (r *rig) send(m sdk.Message) <-chan sent {
	out := make(chan sent, 1)
	go func() {
		receipt, err := r.Send(r.t.Context(), m)
		out <- sent{receipt, err}
	}()
	return out
}
