package hooks

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// receiver is another program's, which fails as the test says.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []Event
	fail func(e Event, attempt int) int // 0: no
	seen map[string]int
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{seen: map[string]int{}, fail: func(Event, int) int { return 0 }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		if !(&inbound{secret: []byte(secret)}).signed(q.Header.Get("X-Switchboard-Signature"), body, time.Now()) {
			t.Errorf("the signature %q is wrong", q.Header.Get("X-Switchboard-Signature"))
		}
		var e Event
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("body %s: %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen[e.ID]++
		if status := r.fail(e, r.seen[e.ID]); status != 0 {
			w.WriteHeader(status)
			return
		}
		r.got = append(r.got, e)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) payloads(of string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.got {
		if e.Key == of {
			all = append(all, string(e.Payload))
		}
	}
	return all
}

func TestEventsAreSentInOrderForEachKey(t *testing.T) {
	t.Parallel()
	to := receive(t)
	to.fail = func(e Event, attempt int) int {
		if string(e.Payload) == `1` && attempt == 1 {
			return http.StatusInternalServerError
		}
		return 0
	}
	b := start(t, Config{Webhooks: map[string]Webhook{
		"log": {URL: to.URL, Topics: []string{"weather.*"}, Secret: "HOOK", Private: true},
	}})
	b.WaitUntil("the cursor is stored", func() bool { return len(b.Keys(cursorKey)) > 0 })
	for n := range 3 {
		b.Publish("weather", "weather.changed", n+1, sdk.Key("a"))
		b.Publish("weather", "weather.changed", n+1, sdk.Key("b"))
		b.Publish("other", "other.changed", n+1)
	}
	want := []string{"1", "2", "3"}
	b.WaitUntil("all are sent", func() bool { return len(to.payloads("a")) == 3 && len(to.payloads("b")) == 3 })
	for _, key := range []string{"a", "b"} {
		if got := to.payloads(key); !slices.Equal(got, want) {
			t.Errorf("key %s: %q", key, got)
		}
	}
	b.Restart(b.extension())
	b.Publish("weather", "weather.changed", 4, sdk.Key("a"))
	b.WaitUntil("it goes on after a restart", func() bool { return len(to.payloads("a")) == 4 })
	if got := to.payloads(""); len(got) != 0 {
		t.Errorf("events of other topics: %q", got)
	}
}

func TestAReceiverThatIsGoneLeavesADeadLetter(t *testing.T) {
	t.Parallel()
	to := receive(t)
	to.fail = func(Event, int) int { return http.StatusGone }
	b := start(t, Config{Webhooks: map[string]Webhook{
		"log": {URL: to.URL, Topics: []string{"weather.*", "system.*"}, Secret: "HOOK", Private: true},
	}})
	b.WaitUntil("the cursor is stored", func() bool { return len(b.Keys(cursorKey)) > 0 })
	b.Publish("weather", "weather.changed", 1)
	b.WaitFor("the event is dead", func() bool { return b.deadLetters() == 1 })
	b.Publish("weather", "weather.changed", 2)
	b.WaitFor("that event is dead, too, and no other", func() bool { return b.deadLetters() == 2 })
	to.mu.Lock()
	defer to.mu.Unlock()
	if len(to.seen) != 2 {
		t.Errorf("sent were %v", to.seen)
	}
}
