package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
)

const tea = `{"message":"tea","delay_seconds":60}`

// scheduling is a scheduler that counts.
func scheduling(w *world, keys *[]string) {
	w.tool = func(q *adminv1.CallToolRequest) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		args := string(q.GetArguments())
		*keys = append(*keys, args)
		return fmt.Sprintf(`{"id":"r%d"}`, slices.Index(*keys, args)+1), nil
	}
}

func TestKeyIsHandledOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var keys []string
	scheduling(w, &keys)
	first := w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k")
	again := w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k")
	if strings.TrimSpace(again.body) != strings.TrimSpace(first.body) || again.status != http.StatusCreated ||
		again.header.Get("Idempotency-Replayed") != "true" || len(keys) != 1 {
		t.Errorf("again: %d %v %s, %d calls", again.status, again.header, again.body, len(keys))
	}
	w.do(t, "owner", "POST /api/v1/schedules", `{"message":"tea","delay_seconds":61}`, "Idempotency-Key: k").
		refused(t, http.StatusUnprocessableEntity, typeKeyReused)
	w.do(t, "owner", "POST /api/v1/messages", `{"text":"x"}`, "Idempotency-Key: k").
		refused(t, http.StatusUnprocessableEntity, typeKeyReused)
	w.must(t, "member", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k") // a key of someone else
	w.must(t, "page", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k")
	w.must(t, "owner", "POST /api/v1/schedules", tea, nil)
	w.must(t, "owner", "POST /api/v1/schedules", tea, nil)
	if len(keys) != 5 {
		t.Errorf("%d calls, want 5", len(keys))
	}
	w.do(t, "owner", "POST /api/v1/schedules", tea, "Idempotency-Key: ä").refused(t, http.StatusBadRequest, "ASCII")
	w.do(t, "owner", "POST /api/v1/schedules", tea, "Idempotency-Key: "+strings.Repeat("k", 256)).
		refused(t, http.StatusBadRequest, "256")
}

// TestKeyHoldsOverCrashes kills the process before each of its commits.
func TestKeyHoldsOverCrashes(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		w := newWorld(t)
		var keys []string
		scheduling(w, &keys)
		dead := false
		w.die = func() error {
			if dead = dead || w.commits == at; dead {
				return contract.ErrGone
			}
			return nil
		}
		w.do(t, "owner", "POST /api/v1/schedules", tea, "Idempotency-Key: k")
		w.mu.Lock()
		died := dead
		w.die = nil
		w.mu.Unlock()
		w.serve(t) // a new process
		w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k")
		for _, k := range keys {
			if k != keys[0] || !strings.Contains(k, `"key":"`) {
				t.Errorf("killed before commit %d: the scheduler is called with %v, which it cannot dedupe", at, keys)
			}
		}
		again := w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k")
		if !strings.Contains(again.body, `"id":"r1"`) || again.header.Get("Idempotency-Replayed") == "" {
			t.Errorf("killed before commit %d: %s", at, again.body)
		}
		if !died {
			if at != 3 { // the claim and the response
				t.Errorf("a request has %d commits", at-1)
			}
			return
		}
	}
}

func TestFailureGivesTheKeyBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tool = func(*adminv1.CallToolRequest) (string, error) { return "", errors.New("no such channel") }
	w.do(t, "owner", "POST /api/v1/schedules", tea, "Idempotency-Key: k").
		refused(t, http.StatusUnprocessableEntity, "no such channel")
	if len(w.kv) != 0 {
		t.Errorf("left: %v", w.kv)
	}
	var keys []string
	scheduling(w, &keys)
	w.must(t, "owner", "POST /api/v1/schedules", `{"message":"other","delay_seconds":60}`, nil, "Idempotency-Key: k")
}

func TestKeyInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	called, answer := make(chan bool), make(chan bool)
	w.tool = func(*adminv1.CallToolRequest) (string, error) {
		called <- true
		<-answer
		return `{"id":"r1"}`, nil
	}
	var first sync.WaitGroup
	first.Go(func() { w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k") })
	<-called
	busy := w.do(t, "owner", "POST /api/v1/schedules", tea, "Idempotency-Key: k")
	busy.refused(t, http.StatusConflict, typeKeyRunning)
	if busy.header.Get("Retry-After") == "" {
		t.Error("a busy key says not when to come back")
	}
	answer <- true
	first.Wait()
}

func TestOldKeysAreDeleted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	w := newWorld(t, func(o *Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	pass := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	var keys []string
	scheduling(w, &keys)
	for range 3 {
		w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: k")
		pass(12 * time.Hour)
	}
	if len(keys) != 1 {
		t.Errorf("within a day: %d calls", len(keys))
	}
	for i := range 1200 {
		w.kv[fmt.Sprintf("%s2026-02-01/%d", keyPrefix, i)] = w.kv[rowOf(now.AddDate(0, 0, -2), "x")]
	}
	for key, v := range w.kv {
		v.Key, v.Version = key, 1
		w.kv[key] = v
	}
	pass(36 * time.Hour)
	w.must(t, "owner", "POST /api/v1/schedules", tea, nil, "Idempotency-Key: other")
	if len(w.kv) != 1 {
		t.Errorf("%d keys are left", len(w.kv))
	}
}

func TestTaskIsGivenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var name string
	w.tool = func(q *adminv1.CallToolRequest) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case q.GetName() == showTask:
			return `{"id":"t1","state":"running","name":"` + name + `"}`, nil
		case name == "":
			return `{"tasks":[]}`, nil
		}
		return `{"tasks":[{"id":"t1","name":"` + name + `"}]}`, nil
	}
	refuse := true
	w.reply = func(m chat.Message) []chat.Line {
		if rest, is := strings.CutPrefix(m.Text, "/push --name "); is && !refuse {
			name, _, _ = strings.Cut(rest, " ")
		}
		return []chat.Line{{ID: "r" + m.ID, ReplyTo: m.ID, Text: "no such agent"}}
	}
	const give = `{"prompt":"look -- and see","name":"tea","agent":"chat","timeout":60}`
	w.do(t, "owner", "POST /api/v1/tasks", give).refused(t, http.StatusUnprocessableEntity, "no such agent")
	w.do(t, "owner", "POST /api/v1/tasks", `{"prompt":"x","agent":"a --deliver announce"}`).
		refused(t, http.StatusUnprocessableEntity, "agent")
	refuse = false
	for range 2 {
		var made Task
		w.must(t, "owner", "POST /api/v1/tasks", give, &made, "Idempotency-Key: k")
		if made.ID != "t1" || !strings.HasPrefix(made.Name, "tea-") {
			t.Errorf("made %+v", made)
		}
		clear(w.kv) // as if a crash came before the response
	}
	var said []string
	for _, l := range w.lines["u1api~t~tasks"] {
		if l.Mine && strings.Contains(l.ID, keyID(visitors["owner"], "k")) {
			said = append(said, l.Text)
		}
	}
	want := []string{"/push --name " + name + " --agent chat --timeout 60 -- look -- and see", "/run"}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
