package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/api"
	"github.com/switchboard-run/switchboard/internal/loopback"
)

// program is a client of the HTTP API.
type program struct {
	w     *world
	url   string
	token string
}

// withAPI starts a kernel with the API, and makes a token.
func withAPI(w *world, scopes ...string) *program {
	w.t.Helper()
	port, err := loopback.Take()
	if err != nil {
		w.t.Fatal(err)
	}
	port.Release()
	w.config(fmt.Sprintf("extensions: {web_channel: {config: {listen: %q}}}\n", port.Addr))
	w.start()
	p := &program{w: w, url: "http://" + port.Addr}
	args := []string{"tokens", "create", "program"}
	for _, s := range scopes {
		args = append(args, "--scope", s)
	}
	p.token = list[struct{ Token string }](w, args...).Token
	return p
}

// request sends a request.
func (p *program) request(what, body string, headers ...string) (*http.Response, error) {
	method, path, _ := strings.Cut(what, " ")
	r, err := http.NewRequestWithContext(p.w.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return http.DefaultClient.Do(r)
}

// do sends a request until it is answered, whatever dies meanwhile, and decodes the answer.
func (p *program) do(v any, what, body string, headers ...string) error {
	var last error
	if !p.w.waitFor(func() bool {
		said, err := p.request(what, body, headers...)
		if err != nil {
			last = err
			return false
		}
		defer said.Body.Close()
		text, err := io.ReadAll(said.Body)
		switch {
		case err != nil:
			last = err
			return false
		case said.StatusCode/100 == 2:
			last = json.Unmarshal(text, v)
			return true
		}
		last = fmt.Errorf("%s: %d %s", what, said.StatusCode, text)
		return said.StatusCode/100 == 4 && said.StatusCode != http.StatusConflict
	}) {
		return errors.Join(fmt.Errorf("%s was not answered", what), last)
	}
	return last
}

// all reads all pages of a list.
func all[T any](p *program, path string) (items []T) {
	p.w.t.Helper()
	for next := ""; ; {
		var page api.Page[T]
		if err := p.do(&page, "GET /api/v1"+path+next, "", "Accept: application/json"); err != nil {
			p.w.t.Fatal(err)
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items
		}
		next = "&cursor=" + page.Next
	}
}

// listener follows the events, and comes back whenever the stream ends.
type listener struct {
	mu   sync.Mutex
	seen []int64
}

func (l *listener) follow(p *program) {
	for last := "0"; p.w.t.Context().Err() == nil; {
		said, err := p.request("GET /api/v1/events", "", "Accept: text/event-stream", "Last-Event-ID: "+last)
		if err != nil || said.StatusCode != http.StatusOK {
			if err == nil {
				_ = said.Body.Close()
			}
			continue
		}
		for lines := bufio.NewScanner(said.Body); lines.Scan(); {
			if id, is := strings.CutPrefix(lines.Text(), "id: "); is {
				last = id
			}
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				var e struct{ Seq int64 }
				if json.Unmarshal([]byte(data), &e) == nil && fmt.Sprint(e.Seq) == last {
					l.mu.Lock()
					l.seen = append(l.seen, e.Seq)
					l.mu.Unlock()
				}
			}
		}
		_ = said.Body.Close()
	}
}

// The kernel and the extension are killed with -9 while a program sends messages, sets
// reminders and gives tasks, each with an idempotency key, and follows the events: each is done
// once, each message is answered once, and the stream has each event once.
func TestAPIOverCrashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := withAPI(w, "all")
	var l listener
	var following, sending sync.WaitGroup
	t.Cleanup(following.Wait)
	following.Go(func() { l.follow(p) })
	const clients, each, crashes = 3, 4, 4
	for c := range clients {
		sending.Go(func() {
			for i := range each {
				key := fmt.Sprintf("c%d-%d", c, i)
				var x api.Exchange
				var s api.Schedule
				ask := fmt.Sprintf(`{"text":"what is %d + %d?","conversation":"c%d","wait":60}`, c, i, c)
				err := p.do(&x, "POST /api/v1/messages", ask, "Idempotency-Key: m-"+key)
				for err == nil && x.Status == "waiting" && p.w.t.Context().Err() == nil { // a page that ends ends its waits
					err = p.do(&x, "POST /api/v1/messages", ask, "Idempotency-Key: m-"+key)
				}
				if err == nil && (x.Status != "answered" || x.Message.ID != "m-"+key) {
					err = fmt.Errorf("message %s is %s: %+v", key, x.Status, x)
				}
				err = errors.Join(err, p.do(&s, "POST /api/v1/schedules", fmt.Sprintf(`{"message":%q,"delay_seconds":86400}`, key),
					"Idempotency-Key: s-"+key))
				if i == 0 {
					var task api.Task
					err = errors.Join(err, p.do(&task, "POST /api/v1/tasks", fmt.Sprintf(`{"prompt":"say %s"}`, key), "Idempotency-Key: t-"+key))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range crashes {
		before := len(all[api.Event](p, "/events?limit=200"))
		w.eventually("something to happen", func() bool { return len(all[api.Event](p, "/events?limit=200")) > before })
		if i%2 == 0 {
			w.restart()
		} else {
			kill(w.extensionProcess("web_channel"), syscall.SIGKILL)
		}
	}
	sending.Wait()
	for c := range clients {
		said, answers := map[string]int{}, map[string]int{}
		for _, m := range all[api.Message](p, fmt.Sprintf("/messages?limit=5&conversation=c%d", c)) {
			if m.Role == "user" {
				said[m.ID]++
			} else {
				answers[m.ReplyTo]++
			}
			if strings.HasPrefix(m.Text, contract.RepeatMark) {
				t.Errorf("it is not known whether this was sent: %+v", m)
			}
		}
		for i := range each {
			if id := fmt.Sprintf("m-c%d-%d", c, i); said[id] != 1 || answers[id] != 1 {
				t.Errorf("%s is there %d times with %d answers", id, said[id], answers[id])
			}
		}
	}
	var set []string
	for _, s := range all[api.Schedule](p, "/schedules?limit=5") {
		set = append(set, s.Message)
	}
	if slices.Sort(set); len(set) != clients*each || len(slices.Compact(set)) != clients*each {
		t.Errorf("set: %q", set)
	}
	if given := all[api.Task](p, "/tasks?all=true"); len(given) != clients {
		t.Errorf("given: %+v", given)
	}
	var want []int64
	w.eventually("all events in the stream", func() bool {
		want = nil
		for _, e := range all[api.Event](p, "/events?limit=200") {
			want = append(want, e.Seq)
		}
		slices.Reverse(want)
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.seen) >= len(want)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.seen[:len(want)], want) {
		t.Errorf("the stream had %v, want %v", l.seen, want)
	}
}
