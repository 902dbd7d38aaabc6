package draft_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/draft"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type posted struct {
	ID int   `json:"id"`
	At int64 `json:"at"`
}

func (p posted) SentAt() time.Time { return time.Unix(p.At, 0) }

var errRefused = errors.New("refused")

// platform has one message for each draft, and a request takes a second.
type platform struct {
	mu     sync.Mutex
	texts  []string // by message
	states []string
	errs   []error // of the next requests
	fails  error   // of deletions
	next   draft.Failure
	busy   time.Duration // until there is spare budget
}

func (p *platform) Reserve(string) (func(), time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.busy; wait > 0 {
		p.busy = 0
		return nil, wait
	}
	return func() {}, 0
}

func (p *platform) request(text string, plain bool) error {
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = append(p.states, fmt.Sprintf("%d %v", len(text), plain))
	if len(p.errs) > 0 {
		err := p.errs[0]
		p.errs = p.errs[1:]
		return err
	}
	return nil
}

func (p *platform) Post(_ context.Context, _, _, text string, plain bool) (posted, error) {
	if err := p.request(text, plain); err != nil {
		return posted{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts = append(p.texts, text)
	return posted{ID: len(p.texts), At: time.Now().Unix()}, nil
}

func (p *platform) Edit(_ context.Context, _ string, m posted, text string, plain bool) error {
	if err := p.request(text, plain); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts[m.ID-1] = text
	return nil
}

// Remove clears a text: a later edit would fill it again.
func (p *platform) Remove(ctx context.Context, m posted) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails == nil {
		p.texts[m.ID-1] = ""
	}
	return cmp.Or(ctx.Err(), p.fails)
}

func (p *platform) Failed(string, bool, error) draft.Failure { return p.next }

// kernel stores values.
type kernel struct {
	node string

	mu     sync.Mutex
	values map[string]json.RawMessage
	fenced error // of commits
}

func (k *kernel) Node() string { return k.node }

func (k *kernel) Log() hclog.Logger { return hclog.NewNullLogger() }

func (k *kernel) Commit(_ context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fenced != nil {
		return nil, k.fenced
	}
	for _, e := range effects {
		pb, err := e.Proto()
		if err != nil {
			return nil, err
		}
		if put := pb.GetPut(); put != nil {
			k.values[put.GetKey()] = put.GetValue()
		}
		delete(k.values, pb.GetDelete().GetKey())
	}
	return nil, nil
}

func (k *kernel) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	k.mu.Lock()
	values := maps.Clone(k.values)
	k.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(key, prefix) {
			if err := each(sdk.Value{Key: key, Value: values[key], Version: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// inBubble runs a test with a platform and a kernel; begin starts the drafts of a process,
// and ends those of the process before.
func inBubble(
	t *testing.T, f func(t *testing.T, p *platform, k *kernel, begin func() *draft.Drafts[string, posted]),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, k, end := &platform{}, &kernel{values: map[string]json.RawMessage{}}, func() {}
		defer func() { end() }()
		f(t, p, k, func() *draft.Drafts[string, posted] {
			end()
			ctx, cancel := context.WithCancel(t.Context())
			d, err := draft.New(ctx, p, k, "bot")
			if err != nil {
				t.Fatal(err)
			}
			end = func() { cancel(); d.Stop() }
			return d
		})
	})
}

// rest lets a time pass, and what happens then.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// grow updates a draft ten times a second, up to n characters.
func grow(d *draft.Drafts[string, posted], n int) {
	for i := 1; i <= n; i++ {
		d.Update(sdk.Draft{ID: "e1", Text: strings.Repeat("x", i)}, "here")
		time.Sleep(100 * time.Millisecond)
	}
	rest(time.Minute)
}

func TestADraftGrowsInOneMessageAndSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, p *platform, k *kernel, begin func() *draft.Drafts[string, posted]) {
		d := begin()
		p.busy = 5 * time.Second
		grow(d, 100)
		if len(p.texts) != 1 || len(p.texts[0]) != 100 || len(p.states) < 2 {
			t.Errorf("messages %q, states %q", p.texts, p.states)
		}
		d = begin()
		d.Update(sdk.Draft{ID: "e1", Text: strings.Repeat("y", 50)}, "here")
		rest(time.Minute)
		if len(p.texts) != 1 || !strings.HasPrefix(p.texts[0], "y") {
			t.Errorf("after a restart: messages %q", p.texts)
		}
		if m, err := d.Finish(t.Context(), "e1"); err != nil || m.ID != 1 {
			t.Errorf("finished %+v, %v", m, err)
		}
		if d.Update(sdk.Draft{ID: "e1", Text: strings.Repeat("z", 90)}, "here") {
			t.Error("an ended draft is still running")
		}
		if _, err := k.Commit(t.Context(), d.Delivered("e1")...); err != nil || len(k.values) != 0 {
			t.Errorf("stored %v, %v", k.values, err)
		}
	})
}

func TestADraftOfAnotherNodeIsDeletedBeforeTheTurnGoesOn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, p *platform, k *kernel, begin func() *draft.Drafts[string, posted]) {
		k.node = "a"
		grow(begin(), 50)
		k.node, p.fails = "b", errRefused
		d := begin()
		if _, err := d.Finish(t.Context(), "e1"); !errors.Is(err, errRefused) {
			t.Errorf("the message of another node may still be there: %v", err)
		}
		d, p.fails = begin(), nil
		if m, err := d.Finish(t.Context(), "e1"); err != nil || m != (posted{}) || p.texts[0] != "" {
			t.Errorf("finished %+v, %v, messages %q", m, err, p.texts)
		}
		d, p.fails = begin(), errRefused
		grow(d, 60)
		if len(p.texts) != 1 {
			t.Errorf("began beside the message of another node: messages %q", p.texts)
		}
		p.fails = nil
		grow(d, 70)
		if len(p.texts) != 2 || p.texts[0] != "" || len(p.texts[1]) != 70 || len(k.values) != 1 {
			t.Errorf("messages %q, stored %q", p.texts, k.values)
		}
		if m, err := begin().Finish(t.Context(), "e1"); err != nil || m.ID != 2 {
			t.Errorf("the same node finished %+v, %v", m, err)
		}
		k.node = "a"
		d = begin()
		if err := d.Remove(t.Context(), "e1"); err != nil || p.texts[1] != "" || len(k.values) != 0 {
			t.Errorf("removed: %v, messages %q, stored %q", err, p.texts, k.values)
		}
	})
}

func TestANodeDeletesAMessageThatItCannotStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, p *platform, k *kernel, begin func() *draft.Drafts[string, posted]) {
		k.node, k.fenced = "a", errRefused
		d := begin()
		grow(d, 50)
		if m, err := d.Finish(t.Context(), "e1"); err != nil || m != (posted{}) || !slices.Equal(p.texts, []string{""}) {
			t.Errorf("finished %+v, %v, messages %q", m, err, p.texts)
		}
	})
}

func TestTheFinalTextWaitsForTheRunningRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, p *platform, _ *kernel, begin func() *draft.Drafts[string, posted]) {
		d := begin()
		d.Update(sdk.Draft{ID: "e1", Text: strings.Repeat("x", 50)}, "here")
		time.Sleep(draft.Delay + time.Millisecond) // the request runs
		m, err := d.Finish(t.Context(), "e1")
		if err != nil || m.ID != 1 || len(p.texts) != 1 {
			t.Errorf("finished %+v, %v, messages %q", m, err, p.texts)
		}
	})
}

func TestFailedRequestsOfADraft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		next draft.Failure
		want []string
	}{
		"refused":               {draft.Mute, []string{"50 false"}},
		"limited":               {draft.Wait, []string{"50 false", "50 false"}},
		"unreachable":           {draft.Repeat, []string{"50 false", "50 false"}},
		"its formatting is bad": {draft.Plain, []string{"50 false", "50 true"}},
	} {
		inBubble(t, func(t *testing.T, p *platform, _ *kernel, begin func() *draft.Drafts[string, posted]) {
			p.errs, p.next = []error{errRefused}, tc.next
			begin().Update(sdk.Draft{ID: "e1", Text: strings.Repeat("x", 50)}, "here")
			rest(time.Minute)
			if !slices.Equal(p.states, tc.want) {
				t.Errorf("%s: requests %q, want %q", name, p.states, tc.want)
			}
		})
	}
}

func TestOldMessagesOfDraftsAreDeleted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *platform, k *kernel, begin func() *draft.Drafts[string, posted]) {
		d := begin()
		grow(d, 50)
		k.values["draft/other/e9"] = json.RawMessage(`{"id":1,"at":` + fmt.Sprint(time.Now().Unix()) + `}`)
		k.values["draft/bot/e8"] = json.RawMessage(`"damaged"`)
		rest(time.Hour)
		if begin().Len() != 1 || len(k.values) != 2 {
			t.Errorf("stored %v", k.values)
		}
		rest(draft.MaxAge)
		if begin().Len() != 0 || len(k.values) != 0 {
			t.Errorf("after a week: stored %v", k.values)
		}
	})
}
