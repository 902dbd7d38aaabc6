package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// connected starts an extension without handlers and returns its kernel.
func connected(t *testing.T) (*sdktest.Kernel, *sdk.Kernel) {
	t.Helper()
	var kernel *sdk.Kernel
	start := func(_ context.Context, k *sdk.Kernel) error {
		kernel = k
		return nil
	}
	k := sdktest.Start(t, sdk.Extension{ID: "subject", Channel: uncertain{}, Start: start}, sdktest.Options{})
	return k, kernel
}

func TestCommitKeepsTheOrderOfOneCaller(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	const callers, each = 32, 40
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				r, err := k.Commit(t.Context(), sdk.Publish("subject.n", fmt.Sprintf("%d:%d", c, i)))
				if err != nil || len(r) != 1 || r[0].GetEventId() == "" {
					t.Errorf("commit: %v, %v", r, err)
					return
				}
			}
		})
	}
	wg.Wait()
	next := map[string]int{}
	events := fake.Published("subject.n")
	for _, e := range events {
		caller, _, _ := strings.Cut(strings.Trim(string(e.GetPayload()), `"`), ":")
		if want := fmt.Sprintf("%q", fmt.Sprintf("%s:%d", caller, next[caller])); string(e.GetPayload()) != want {
			t.Fatalf("got %s, want %s", e.GetPayload(), want)
		}
		next[caller]++
	}
	if len(events) != callers*each {
		t.Errorf("%d events", len(events))
	}
}

func TestEachCallerGetsItsOwnReceipt(t *testing.T) {
	t.Parallel()
	_, k := connected(t)
	var wg sync.WaitGroup
	for c := range 64 {
		wg.Go(func() {
			key := fmt.Sprintf("key%d", c)
			if c%2 == 0 {
				if _, err := k.Commit(t.Context(), sdk.PutAt(key, c, 99)); !errors.Is(err, contract.ErrConflict) {
					t.Errorf("%s: %v", key, err)
				}
				return
			}
			r, err := k.Commit(t.Context(), sdk.PutAt(key, c, 0))
			if err != nil {
				t.Errorf("%s: %v", key, err)
				return
			}
			v, err := k.Get(t.Context(), key)
			if err != nil || v.Version != r[0].GetVersion() {
				t.Errorf("%s: version %d, receipt says %d (%v)", key, v.Version, r[0].GetVersion(), err)
			}
		})
	}
	wg.Wait()
}

func TestCommitIsAtomicAndMapsErrors(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	ctx := t.Context()
	if _, err := k.Commit(ctx, sdk.Put("a", 1), sdk.Publish("not a topic", 1)); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("bad topic: %v", err)
	}
	if _, err := k.Commit(ctx, sdk.Put("a", 1), sdk.PutAt("b", 1, 5)); !errors.Is(err, contract.ErrConflict) {
		t.Errorf("conflict: %v", err)
	}
	if _, err := k.Commit(ctx, sdk.Put("a", 1), sdk.Publish("subject.x", func() {})); !errors.Is(err,
		contract.ErrInvalid) {
		t.Errorf("not JSON: %v", err)
	}
	large := sdk.Publish("subject.x", strings.Repeat("x", contract.MaxPayload))
	if _, err := k.Commit(ctx, sdk.Put("a", 1), large); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("large payload: %v", err)
	}
	large = sdk.Put("a", []byte(strings.Repeat("x", contract.MaxMessage)))
	if _, err := k.Commit(ctx, large); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("large commit: %v", err)
	}
	if fake.Stored("a", nil) != 0 {
		t.Error("a part was committed")
	}
	if _, err := k.Commit(ctx, sdk.Put("a", 1)); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

func TestCommitOnce(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	first, err := k.CommitOnce(t.Context(), "id", sdk.Publish("subject.x", 1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := k.CommitOnce(t.Context(), "id", sdk.Publish("subject.x", 1))
	if err != nil || again[0].GetEventId() != first[0].GetEventId() || len(fake.Published("subject.x")) != 1 {
		t.Errorf("%v then %v, %v", first, again, err)
	}
}

func TestCommitEndsWithItsContextAndItsKernel(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Commit(over, sdk.Put("a", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	if fake.Stored("a", nil) != 0 {
		t.Error("committed although the context had ended")
	}
	fake.Lose()
	if _, err := k.Commit(t.Context(), sdk.Put("a", 1)); !errors.Is(err, contract.ErrGone) {
		t.Errorf("without a kernel: %v", err)
	}
	if _, err := k.Get(t.Context(), "a"); err == nil {
		t.Error("a read succeeds without a kernel")
	}
}

func TestLaneTokenIsCarriedAndEnds(t *testing.T) {
	t.Parallel()
	var kernel *sdk.Kernel
	kept := make(chan context.Context, 1)
	fake := sdktest.Start(t, sdk.Extension{
		ID: "subject",
		Start: func(_ context.Context, k *sdk.Kernel) error {
			kernel = k
			return nil
		},
		Handle: func(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
			if e.Topic != "subject.test" {
				return nil, nil
			}
			if sdk.LaneOf(ctx) == "" {
				return nil, sdk.Drop("no lane")
			}
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			if _, err := kernel.Commit(child, sdk.Publish("subject.inside", 1)); err != nil {
				return nil, err
			}
			kept <- ctx
			return nil, nil
		},
	}, sdktest.Options{})
	o := fake.Deliver("subject.test", 1).MustAck(t)
	if e := fake.Await("subject.inside"); e.GetCausationId() != o.Event.GetId() {
		t.Errorf("caused by %q", e.GetCausationId())
	}
	ctx := <-kept
	if ctx.Err() == nil {
		t.Error("the context outlives its delivery")
	}
	stale := sdk.WithLane(t.Context(), sdk.LaneOf(ctx))
	if _, err := kernel.Commit(stale, sdk.Put("a", 1)); !errors.Is(err, contract.ErrStale) {
		t.Errorf("commit after the delivery: %v", err)
	}
	if sdk.LaneOf(t.Context()) != "" {
		t.Error("a context without a handler has a lane")
	}
}

func TestScanReadsAllPages(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	for i := range 2500 {
		fake.Put(fmt.Sprintf("p/%04d", i), i)
	}
	fake.Put("q/other", 1)
	n := 0
	err := k.Scan(t.Context(), "p/", func(v sdk.Value) error {
		var i int
		if err := v.Decode(&i); err != nil || i != n {
			return fmt.Errorf("key %s holds %d, want %d: %w", v.Key, i, n, err)
		}
		n++
		return nil
	})
	if err != nil || n != 2500 {
		t.Errorf("%d keys, %v", n, err)
	}
	stop := errors.New("stop")
	if err := k.Scan(t.Context(), "p/", func(sdk.Value) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped with %v", err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	seen := make(chan sdk.Event)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- k.Watch(ctx, []string{"subject.*"}, func(e sdk.Event) error {
			seen <- e
			return nil
		})
	}()
	for watching := false; !watching; { // what is published before is not seen
		fake.Publish("other", "subject.begin", 1)
		select {
		case <-seen:
			watching = true
		case <-time.After(time.Millisecond):
		}
	}
	fake.Publish("other", "subject.x", 1)
	fake.Publish("third", "third.x", 1)
	fake.Publish("other", "subject.y", 2)
	next := func() (e sdk.Event) {
		for e = <-seen; e.Topic == "subject.begin"; e = <-seen {
			continue
		}
		return e
	}
	if a, b := next(), next(); a.Topic != "subject.x" || b.Topic != "subject.y" || a.Source != "other" {
		t.Errorf("saw %v, %v", a, b)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestWithdrawAndReceive(t *testing.T) {
	t.Parallel()
	fake, k := connected(t)
	for range 2 {
		m := contract.UserMessage{Text: "hi", UserID: "u", ConversationID: "c"}
		if err := k.Receive(t.Context(), m, "update:1", sdk.Put("cursor", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := fake.AwaitReceived(1); len(got) != 1 || got[0].Text != "hi" || fake.Stored("cursor", nil) == 0 {
		t.Errorf("received %v", got)
	}
	published, err := k.Commit(t.Context(), sdk.Publish("subject.later", 1, sdk.Dedupe("later")))
	if err != nil {
		t.Fatal(err)
	}
	withdrawn, err := k.Commit(t.Context(), sdk.Withdraw("later"))
	if err != nil || withdrawn[0].GetEventId() != published[0].GetEventId() {
		t.Errorf("withdrawn %v of %v: %v", withdrawn, published, err)
	}
	if r, err := k.Commit(t.Context(), sdk.Withdraw("never")); err != nil || r[0].GetEventId() != "" {
		t.Errorf("withdraw of nothing: %v, %v", r, err)
	}
	if _, err := k.Commit(t.Context(), sdk.Raw(&busv1.Withdraw{EventId: "e999"})); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("withdraw of an event that is not there: %v", err)
	}
	raw := sdk.Raw(&busv1.SessionEnsure{Agent: "caller", Key: "k"})
	if r, err := k.Commit(t.Context(), raw); err != nil || r[0].GetSession() == "" {
		t.Errorf("session: %v, %v", r, err)
	}
}
