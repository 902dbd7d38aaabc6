package telegramchannel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is the kernel as the channel uses it. It outlives activations.
type memory struct {
	mu        sync.Mutex
	moved     chan struct{}
	values    map[string]sdk.Value
	seen      map[string]bool
	got       []contract.UserMessage
	batches   []int // number of messages in each commit that had some
	readiness []string
	commands  []*kernelv1.Command
	refuse    func(messages []contract.UserMessage) error // called with mu held
	logs      bytes.Buffer
	files     map[string]string       // by hash
	keep      func(text string) error // called with mu held, for each file
	stranger  string                  // user id of a person who is not admitted
}

func newMemory() *memory {
	return &memory{moved: make(chan struct{}), values: map[string]sdk.Value{}, seen: map[string]bool{},
		files: map[string]string{}}
}

// move wakes the waiters. The caller holds mu.
func (k *memory) move() {
	close(k.moved)
	k.moved = make(chan struct{})
}

func (k *memory) Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.move()
	var messages []contract.UserMessage
	var fresh []string
	results := make([]*busv1.EffectResult, len(effects))
	values := map[string]sdk.Value{}
	var gone []string
	for i, e := range effects {
		pb, err := e.Proto()
		if err != nil {
			return nil, err
		}
		results[i] = &busv1.EffectResult{}
		switch {
		case pb.GetPublish() != nil:
			var m contract.UserMessage
			if err := json.Unmarshal(pb.GetPublish().GetPayload(), &m); err != nil {
				return nil, err
			}
			for _, hash := range contract.BlobsOf(m.Attachments) {
				if _, ok := k.files[hash]; !ok || !slices.Contains(pb.GetPublish().GetBlobs(), hash) {
					return nil, fmt.Errorf("publish: file %s: %w", hash, contract.ErrNotFound)
				}
			}
			if m.UserID == k.stranger && m.UserID != "" {
				continue
			}
			key := pb.GetPublish().GetDedupeKey()
			results[i].EventId = "event:" + key
			if k.seen[key] || slices.Contains(fresh, key) {
				results[i].Duplicate = true
				continue
			}
			fresh = append(fresh, key)
			messages = append(messages, m)
		case pb.GetPut() != nil:
			put := pb.GetPut()
			if put.Version != nil && k.values[put.GetKey()].Version != put.GetVersion() {
				return nil, fmt.Errorf("put: %w", contract.ErrConflict)
			}
			v := sdk.Value{Key: put.GetKey(), Value: put.GetValue(), Version: k.values[put.GetKey()].Version + 1}
			values[v.Key] = v
			results[i].Version = v.Version
		case pb.GetDelete() != nil:
			gone = append(gone, pb.GetDelete().GetKey())
		}
	}
	if k.refuse != nil {
		if err := k.refuse(messages); err != nil {
			return nil, err
		}
	}
	maps.Copy(k.values, values)
	for _, key := range gone {
		delete(k.values, key)
	}
	for _, key := range fresh {
		k.seen[key] = true
	}
	if len(messages) > 0 {
		k.got = append(k.got, messages...)
		k.batches = append(k.batches, len(messages))
	}
	return results, nil
}

// PutBlob stores a file that was read to its end.
func (k *memory) PutBlob(ctx context.Context, from io.Reader) (sdk.Blob, error) {
	b, err := io.ReadAll(from)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return sdk.Blob{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep != nil {
		if err := k.keep(string(b)); err != nil {
			return sdk.Blob{}, err
		}
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(b))
	k.files[hash] = string(b)
	k.move()
	return sdk.Blob{Hash: hash, Size: int64(len(b))}, nil
}

func (k *memory) GetBlob(_ context.Context, name string, to io.Writer) (sdk.Blob, error) {
	k.mu.Lock()
	text, ok := k.files[name]
	k.mu.Unlock()
	if !ok {
		return sdk.Blob{}, fmt.Errorf("read file %s: %w", name, contract.ErrNotFound)
	}
	n, err := io.WriteString(to, text)
	return sdk.Blob{Hash: name, Size: int64(n)}, err
}

func (k *memory) Get(_ context.Context, key string) (sdk.Value, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[key], nil
}

func (k *memory) Commands(context.Context) ([]*kernelv1.Command, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.commands, nil
}

// offers changes the available commands.
func (k *memory) offers(names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.commands = nil
	for _, name := range names {
		k.commands = append(k.commands, &kernelv1.Command{Name: name, Description: "what " + name + " does"})
	}
}

// describes changes the available commands to one.
func (k *memory) describes(name, description string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.commands = []*kernelv1.Command{{Name: name, Description: description}}
}

func (k *memory) Node() string { return "" }

func (k *memory) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	k.mu.Lock()
	values := maps.Clone(k.values)
	k.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(key, prefix) {
			if err := each(values[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *memory) SetReadiness(state extensionv1.Readiness_State, detail string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readiness = append(k.readiness, strings.ToLower(strings.TrimPrefix(state.String(), "STATE_"))+": "+detail)
	k.move()
}

func (k *memory) Log() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: lockedWriter{k}})
}

type lockedWriter struct{ k *memory }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.k.mu.Lock()
	defer w.k.mu.Unlock()
	return w.k.logs.Write(p)
}

// await waits until done, which is called with mu held, reports true.
func (k *memory) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for {
		k.mu.Lock()
		ok, moved := done(), k.moved
		k.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-t.Context().Done():
			t.Fatalf("waiting for %s", what)
		case <-time.After(2 * time.Minute):
			k.mu.Lock()
			defer k.mu.Unlock()
			t.Fatalf("waiting for %s: messages %+v, readiness %q, logs:\n%s", what, k.got, k.readiness, k.logs.String())
		}
	}
}

// messages waits for n reported messages and returns all there are.
func (k *memory) messages(t *testing.T, n int) []contract.UserMessage {
	t.Helper()
	k.await(t, fmt.Sprintf("%d messages", n), func() bool { return len(k.got) >= n })
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.got)
}

// ready waits until the last readiness begins so.
func (k *memory) ready(t *testing.T, prefix string) {
	t.Helper()
	k.await(t, "readiness "+prefix, func() bool {
		return len(k.readiness) > 0 && strings.HasPrefix(k.readiness[len(k.readiness)-1], prefix)
	})
}

func (k *memory) cursor(bot int64) cursor {
	k.mu.Lock()
	defer k.mu.Unlock()
	var c cursor
	_ = k.values[fmt.Sprintf("cursor/%d", bot)].Decode(&c)
	return c
}

// begin starts the channel on a server; end stops it, and so does the end of the test.
func begin(t *testing.T, k *memory, s *telegramtest.Server, token string, change ...func(*settings)) (c *channel,
	end func()) {
	t.Helper()
	set, err := Config{APIURL: s.URL()}.settings("")
	if err != nil {
		t.Fatal(err)
	}
	set.conflictPause, set.menuInterval = 10*time.Millisecond, 10*time.Millisecond
	for _, f := range change {
		f(&set)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c = &channel{}
	if err := c.start(ctx, k, set, token); err != nil {
		cancel()
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		cancel()
		if err := c.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return c, end
}

// running is a channel that is ready, with its server and kernel.
func running(t *testing.T) (*channel, *telegramtest.Server, *memory) {
	t.Helper()
	s := telegramtest.Start(t)
	k := newMemory()
	c, _ := begin(t, k, s, s.Token())
	k.ready(t, "ready: @switchboard_test_bot")
	return c, s, k
}

func text(chat int64, s string) sdk.Message {
	return sdk.Message{ID: "e1", Text: s, Conversation: fmt.Sprint(chat)}
}
