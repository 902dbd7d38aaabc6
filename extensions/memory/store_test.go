package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/sdk"
)

// result calls a tool without committing its effects.
func (b *bench) result(tool string, f fields) []*busv1.Effect {
	b.t.Helper()
	b.mu.Lock()
	b.calls++
	id := fmt.Sprintf("uncommitted%d", b.calls)
	b.mu.Unlock()
	r, err := extensionv1.NewToolsClient(b.Conn()).Call(b.t.Context(),
		&extensionv1.CallRequest{CallId: id, Name: tool, Arguments: []byte(encode(b.t, f))})
	if err != nil || r.GetIsError() {
		b.t.Fatalf("%s: %v, %s", tool, err, r.GetContent())
	}
	return r.GetEffects()
}

// commit commits the effects of a result, which must be puts.
func (b *bench) commit(effects []*busv1.Effect) {
	for _, e := range effects {
		b.Put(e.GetPut().GetKey(), e.GetPut().GetValue())
	}
}

func TestOnlyCommittedMemoriesAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "first thing"})
	b.wantList("recall", fields{"query": "thing"}, "first thing")

	b.FailCommits(1, contract.ErrStale)
	if _, err := b.TryCall(t.Context(), "remember", fields{"text": "refused thing"}); !errors.Is(err,
		contract.ErrStale) {
		t.Fatalf("got %v", err)
	}
	b.wantList("recall", fields{"query": "thing"}, "first thing")

	late := b.result("remember", fields{"text": "late thing"})
	b.wantList("recall", fields{"query": "thing"}, "first thing")
	b.pass(time.Second)
	b.remember(fields{"text": "second thing"})
	b.pass(keepChange / 2)
	b.wantList("recall", fields{"query": "thing"}, "second thing", "first thing")
	b.commit(late)
	if got := b.list("recall", fields{"query": "thing"}); len(got) != 3 {
		t.Errorf("after a late commit: %q", got)
	}

	later := b.result("remember", fields{"text": "much later thing"})
	b.pass(2 * keepChange)
	b.remember(fields{"text": "third thing"})
	b.wantList("recall", fields{"query": "much"})
	b.commit(later)
	b.wantList("recall", fields{"query": "much"}, "much later thing")
}

func TestRowsOfAnotherWriterAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "own thing"})
	b.wantList("recall", fields{"query": "thing"}, "own thing")
	b.Put(rowKey("mother"), item.Item{ID: "mother", Scope: "personal", Kind: item.Fact, Text: "other thing",
		Created: b.clock(), Updated: b.clock()})
	b.Put(changeKey, "from elsewhere")
	if got := b.list("recall", fields{"query": "thing"}); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "kept thing", "due": "2026-03-05", "channel_id": "telegram_channel"})
	lost := b.result("remember", fields{"text": "lost thing"})
	b.restart()
	b.wantList("recall", fields{"query": "things"}, "kept thing")
	b.wantList("open_items", nil, "kept thing")
	if len(lost) == 0 {
		t.Error("nothing was to be lost")
	}
	// The kernel repeats a call without a result.
	b.remember(fields{"text": "lost thing"})
	b.remember(fields{"text": "lost thing"}, func(r *extensionv1.CallRequest) { r.Repeat = true })
	b.wantList("list_memories", fields{"kind": "fact"}, "lost thing")
}

func TestDamagedRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "good thing"})
	b.Put(rowKey("mbad"), []byte(`{"id":"mother"}`))
	b.Put(rowKey("mworse"), []byte(`no JSON`))
	b.restart()
	b.wantList("recall", fields{"query": "thing"}, "good thing")
	got := decode[listing](t, b.MustCall("list_memories", nil))
	if len(got.Unreadable) != 2 || got.Unreadable[0].ID != "mbad" || !strings.Contains(got.Text, "mworse is damaged") {
		t.Errorf("got %+v", got)
	}
	b.refuses("remember", fields{"id": "mbad", "text": "x"}, "read memory mbad: ")
	b.refuses("forget", fields{"ids": []string{"mbad"}}, "there is no memory", as("chat", "personal"))
	for _, p := range []contract.Principal{boris, guest, atHome, atWork} { // it may be anyone's
		if got := b.MustCall("list_memories", nil, by(p)); strings.Contains(got, "mbad") {
			t.Errorf("%+v is shown %s", p, got)
		}
		b.refuses("forget", fields{"ids": []string{"mbad"}}, "there is no memory", by(p))
	}
	owner := contract.Principal{Person: "o1", Accounts: []string{"o1", contract.Owner}, Own: true}
	b.MustCall("forget", fields{"ids": []string{"mbad"}}, by(owner))
	b.MustCall("forget_all", nil)
	if keys := b.Keys(rowPrefix); len(keys) != 0 {
		t.Errorf("left are %q", keys)
	}
}

// again repeats a call after conflicts, like the kernel.
func (b *bench) again(tool string, f fields) error {
	for range 100 {
		r, err := b.TryCall(context.Background(), tool, f)
		if errors.Is(err, contract.ErrConflict) {
			continue
		}
		if err == nil && r.GetIsError() {
			err = errors.New(r.GetContent())
		}
		return err
	}
	return errors.New("too many conflicts")
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if err := b.again("remember", fields{"text": fmt.Sprintf("thing number%d", i%10)}); err != nil {
				t.Error(err)
			}
			if err := b.again("recall", fields{"query": "thing"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := b.list("recall", fields{"query": "thing", "limit": 100}); len(got) != 10 || len(b.Keys(rowPrefix)) != 10 {
		t.Errorf("found %q, stored %q", got, b.Keys(rowPrefix))
	}
}

// TestFollowsTheStore plays random calls, some of them refused, committed late or
// before a restart, and compares search results with the stored rows.
func TestFollowsTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seed.Check(t, func(r *rapid.T) {
		b.MustCall("forget_all", nil)
		words := []string{"apple", "pear", "plum", "cherry", "kettle"}
		var late [][]*busv1.Effect
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			f := fields{"text": rapid.SampledFrom(words).Draw(r, "word") + " " +
				rapid.SampledFrom(words).Draw(r, "word")}
			b.pass(1e9)
			switch rapid.IntRange(0, 8).Draw(r, "step") {
			case 0, 1:
				b.MustCall("remember", f)
			case 2:
				b.FailCommits(1, contract.ErrStale)
				if _, err := b.TryCall(t.Context(), "remember", f); err == nil {
					r.Fatal("it was not refused")
				}
			case 3:
				late = append(late, b.result("remember", f))
			case 4:
				if len(late) > 0 { // only if its row has not changed, as the kernel checks
					if e := late[0][0].GetPut(); b.Stored(e.GetKey(), nil) == e.GetVersion() {
						b.commit(late[0])
					}
					late = late[1:]
				}
			case 5:
				if keys := b.Keys(rowPrefix); len(keys) > 0 {
					b.MustCall("forget", fields{"ids": []string{strings.TrimPrefix(rapid.SampledFrom(keys).Draw(r,
						"key"), rowPrefix)}})
				}
			case 6:
				b.restart()
				late = nil
			case 8: // the kernel repeats it
				b.FailCommits(1, contract.ErrConflict)
				b.MustCall("remember", f)
			case 7:
				b.MustCall("import_memories", fields{"text": "- " + f["text"].(string) + " pie\n  - by: Anna"})
			}
			var stored []string
			for _, key := range b.Keys(rowPrefix) {
				var i item.Item
				b.Stored(key, &i)
				stored = append(stored, i.Text)
			}
			slices.Sort(stored)
			got := b.list("list_memories", fields{"limit": 1000})
			if slices.Sort(got); !slices.Equal(got, stored) {
				r.Fatalf("listed %q, stored %q", got, stored)
			}
			w := rapid.SampledFrom(words).Draw(r, "query")
			want := slices.DeleteFunc(slices.Clone(stored), func(s string) bool { return !strings.Contains(s, w) })
			got = b.list("recall", fields{"query": w, "limit": 1000})
			if slices.Sort(got); !slices.Equal(got, want) {
				r.Fatalf("%s finds %q, want %q", w, got, want)
			}
		}
	})
}

// A call that times out does not restart the first reading.
func TestReadingContinuesAfterTimeout(t *testing.T) {
	t.Parallel()
	k := &slow{reading: make(chan struct{}), proceed: make(chan struct{})}
	s := newStore(t.Context(), k, hclog.NewNullLogger(), time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- s.use(ctx, func(*rows) error { return nil }) }()
	<-k.reading
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := s.use(ctx, func(*rows) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("while it is read: %v", err)
	}
	close(k.proceed)
	if err := s.use(t.Context(), func(r *rows) error { return nil }); err != nil || k.scans != 1 {
		t.Errorf("got %v after %d scans", err, k.scans)
	}
}

// slow is a store whose scan waits.
type slow struct {
	kernel
	reading, proceed chan struct{}
	scans            int
}

func (s *slow) Get(context.Context, string) (sdk.Value, error) { return sdk.Value{}, nil }

func (s *slow) Scan(ctx context.Context, _ string, _ func(sdk.Value) error) error {
	s.scans++
	close(s.reading)
	select {
	case <-s.proceed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
