package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// store is a kernel in memory that can be killed between any two steps.
type store struct {
	mu       sync.Mutex
	version  int64
	kv       map[string]sdk.Value
	events   []*busv1.Event
	taken    map[string]bool // ids of events whose delivery has begun
	gone     map[string]bool // ids of events that were withdrawn
	receipts map[string][]*busv1.EffectResult
	channels []*kernelv1.Channel
	refuse   error    // of every commit that publishes
	kept     []string // what each event and value keeps, in the order of the commits

	steps   int // taken so far
	dieAt   int // 0: never
	onDeath func()
}

var errDead = errors.New("killed")

func newStore() *store {
	return &store{
		kv: map[string]sdk.Value{}, taken: map[string]bool{}, gone: map[string]bool{},
		receipts: map[string][]*busv1.EffectResult{},
		channels: []*kernelv1.Channel{
			{Id: "cli_channel", Name: "Terminal", Readiness: &extensionv1.Readiness{State: sdk.Ready}},
			{Id: "telegram_channel", Name: "Telegram", Readiness: &extensionv1.Readiness{State: sdk.Ready}},
			{Id: "bare_channel", Name: "Bare", Readiness: &extensionv1.Readiness{State: sdk.Unconfigured,
				Detail: "no token"}},
		},
	}
}

// step counts a step and dies at dieAt. s.mu is held.
func (s *store) step() error {
	s.steps++
	if s.dieAt != 0 && s.steps >= s.dieAt {
		if s.onDeath != nil {
			s.onDeath()
		}
		return errDead
	}
	return nil
}

func (s *store) Get(_ context.Context, key string) (sdk.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.step(); err != nil {
		return sdk.Value{}, err
	}
	v := s.kv[key]
	v.Key = key
	return v, nil
}

func (s *store) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	s.mu.Lock()
	if err := s.step(); err != nil {
		s.mu.Unlock()
		return err
	}
	kv := maps.Clone(s.kv)
	s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(kv)) {
		if strings.HasPrefix(key, prefix) {
			if err := each(kv[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) Channels(context.Context) ([]*kernelv1.Channel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels, nil
}

// Ask knows Clara, who gets private messages on Telegram.
func (s *store) Ask(_ context.Context, tool string, arguments any) (sdk.ToolResult, error) {
	if asked := arguments.(map[string]string); tool != contract.ToolFindPerson || asked["person"] != "Clara" ||
		asked["channel_id"] == "slack_channel" {
		return sdk.ToolResult{}, fmt.Errorf("%w: 0 people are named %q", contract.ErrNotFound, asked["person"])
	}
	return sdk.JSON(contract.Recipient{
		Name: "Clara", ChannelID: "telegram_channel", ReplyTo: "handle-clara", Language: "ru", From: "Анна",
		Text: "Clara on Telegram (private)",
	})
}

// FindBlob has one file, whose hash is of digits 3f2a9c only.
func (s *store) FindBlob(_ context.Context, name string) (sdk.Blob, error) {
	hash := strings.Repeat("3f2a9c", 11)[:64]
	if !strings.HasPrefix(hash, name) {
		return sdk.Blob{}, contract.ErrNotFound
	}
	return sdk.Blob{Hash: hash, Size: 5}, nil
}

func (s *store) Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	return s.CommitOnce(ctx, "", effects...)
}

// CommitOnce has a step before and one after the commit: a kill between them
// leaves a commit without a receipt.
func (s *store) CommitOnce(_ context.Context, id string, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.step(); err != nil {
		return nil, err
	}
	results, ok := s.receipts[id]
	if !ok {
		var err error
		if results, err = s.apply(effects); err != nil {
			return nil, err
		}
		if id != "" {
			s.receipts[id] = results
		}
	}
	return results, s.step()
}

func (s *store) apply(effects []sdk.Effect) (results []*busv1.EffectResult, err error) {
	kv, events, gone := maps.Clone(s.kv), slices.Clone(s.events), maps.Clone(s.gone)
	defer func() {
		if err != nil {
			s.kv, s.events, s.gone = kv, events, gone
		}
	}()
	for _, effect := range effects {
		e, err := effect.Proto()
		if err != nil {
			return nil, err
		}
		result := &busv1.EffectResult{}
		switch {
		case e.GetPublish() != nil:
			if s.refuse != nil {
				return nil, s.refuse
			}
			s.publish(e.GetPublish(), result)
			s.kept = append(s.kept, strings.TrimSpace("event "+strings.Join(e.GetPublish().GetBlobs(), " ")))
		case e.GetPut() != nil:
			p := e.GetPut()
			if p.Version != nil && s.kv[p.GetKey()].Version != *p.Version {
				return nil, fmt.Errorf("put %s: %w", p.GetKey(), contract.ErrConflict)
			}
			s.version++
			s.kept = append(s.kept, strings.TrimSpace(p.GetKey()+" "+strings.Join(p.GetBlobs(), " ")))
			s.kv[p.GetKey()] = sdk.Value{Key: p.GetKey(), Value: p.GetValue(), Version: s.version}
		case e.GetDelete() != nil:
			d := e.GetDelete()
			if d.Version != nil && s.kv[d.GetKey()].Version != *d.Version {
				return nil, fmt.Errorf("delete %s: %w", d.GetKey(), contract.ErrConflict)
			}
			delete(s.kv, d.GetKey())
		case e.GetWithdraw() != nil:
			i := slices.IndexFunc(s.events,
				func(ev *busv1.Event) bool { return ev.GetDedupeKey() == e.GetWithdraw().GetDedupeKey() })
			if i < 0 {
				break // pruned
			}
			result.EventId = s.events[i].GetId()
			if result.TooLate = s.taken[s.events[i].GetId()]; !result.TooLate {
				s.gone[s.events[i].GetId()] = true
			}
		}
		results = append(results, result)
	}
	return results, nil
}

func (s *store) publish(p *busv1.Publish, result *busv1.EffectResult) {
	for _, e := range s.events {
		if p.GetDedupeKey() != "" && e.GetDedupeKey() == p.GetDedupeKey() {
			result.EventId, result.Duplicate = e.GetId(), true
			return
		}
	}
	e := &busv1.Event{
		Id: fmt.Sprintf("e%d", len(s.events)+1), Topic: p.GetTopic(), Key: p.GetKey(), Payload: p.GetPayload(),
		DedupeKey: p.GetDedupeKey(), CreatedAtUs: time.Now().UnixMicro(),
	}
	s.events = append(s.events, e)
	result.EventId = e.GetId()
}

func (s *store) published() []*busv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// texts returns the texts of the published events.
func (s *store) texts() (texts []string) {
	for _, e := range s.published() {
		var p struct{ Text, Prompt string }
		_ = json.Unmarshal(e.GetPayload(), &p)
		texts = append(texts, strings.TrimPrefix(p.Text, schedule.ReminderMark)+p.Prompt)
	}
	return texts
}

// bench is a scheduler over a store, in a bubble of synctest.
type bench struct {
	t      testing.TB
	store  *store
	sched  *scheduler
	tools  map[string]sdk.Tool
	cancel context.CancelFunc
	shift  atomic.Int64 // of the wall clock
	calls  int
}

func setup(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, store: newStore()}
	b.start()
	t.Cleanup(b.kill)
	return b
}

// edit reads or changes the store directly.
func (b *bench) edit(change func(*store)) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	change(b.store)
}

func (s *store) setRow(id, text string) {
	s.kv[rowKey(id)] = sdk.Value{Key: rowKey(id), Value: []byte(text), Version: 99}
}

func (b *bench) withdrawn(event string) (gone bool) {
	b.edit(func(s *store) { gone = s.gone[event] })
	return gone
}

func (b *bench) keys() (n int) {
	b.edit(func(s *store) { n = len(s.kv) })
	return n
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.shift.Load())) }

func (b *bench) start() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.sched, b.tools = cancel, &scheduler{}, map[string]sdk.Tool{}
	for _, tool := range b.sched.tools() {
		b.tools[tool.Name] = tool
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		b.t.Fatal(err)
	}
	b.edit(func(s *store) { s.onDeath = cancel })
	if err := b.sched.start(ctx, b.store, hclog.NewNullLogger(), b.now, berlin, config{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) kill() {
	b.cancel()
	<-b.sched.stopped
}

// call runs a tool like the kernel: it commits the effects with the result, and
// runs the tool again after a conflict.
func (b *bench) call(name, arguments string, options ...func(*sdk.ToolCall)) (map[string]any, error) {
	b.calls++
	c := sdk.ToolCall{ID: fmt.Sprint("c", b.calls), Name: name, Arguments: json.RawMessage(arguments),
		ReplyTo: "handle-1", Channel: "cli_channel"}
	for _, o := range options {
		o(&c)
	}
	for {
		result, err := b.tools[name].Call(context.Background(), c)
		if err != nil {
			return nil, err
		}
		if len(result.Effects) > 0 {
			if _, err = b.store.Commit(context.Background(), result.Effects...); errors.Is(err, contract.ErrConflict) {
				continue
			}
		}
		var out map[string]any
		if jsonErr := json.Unmarshal([]byte(result.Content), &out); jsonErr != nil {
			b.t.Errorf("%s answers %q, not a JSON object: %v", name, result.Content, jsonErr)
		}
		return out, err
	}
}

func (b *bench) must(name, arguments string, options ...func(*sdk.ToolCall)) map[string]any {
	b.t.Helper()
	out, err := b.call(name, arguments, options...)
	if err != nil {
		b.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return out
}

func from(replyTo, channel string) func(*sdk.ToolCall) {
	return func(c *sdk.ToolCall) { c.ReplyTo, c.Channel = replyTo, channel }
}

func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expect compares the published texts, in any order.
func (b *bench) expect(want ...string) {
	b.t.Helper()
	synctest.Wait()
	got := b.store.texts()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.t.Fatalf("published %q, want %q", got, want)
	}
}
