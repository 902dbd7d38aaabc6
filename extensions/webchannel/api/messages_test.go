package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// echo answers each message.
func echo(m chat.Message) []chat.Line {
	return []chat.Line{{ID: "n" + m.ID, Notice: true, Text: "a reminder"}, {ID: "r" + m.ID, ReplyTo: m.ID, Text: "re: " + m.Text}}
}

func TestSendAndWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var x Exchange
	if got := w.must(t, "owner", "POST /api/v1/messages", `{"text":"hi"}`, &x); got.status != http.StatusAccepted ||
		x.Status != waiting || x.Message.Text != "hi" || x.Message.Conversation != "main" || x.Message.Role != "user" {
		t.Errorf("without waiting: %d %s", got.status, got.body)
	}
	w.reply = echo
	got := w.must(t, "owner", "POST /api/v1/messages", `{"text":"tea","conversation":"work","wait":60}`, &x, "Idempotency-Key: k")
	if got.status != http.StatusOK || x.Status != answered || x.Reply == nil || x.Reply.Text != "re: tea" ||
		x.Message.ID != "k" || len(x.Others) != 1 || !x.Others[0].Notice {
		t.Errorf("waiting: %d %s", got.status, got.body)
	}
	again := w.must(t, "owner", "POST /api/v1/messages", `{"text":"tea","conversation":"work","wait":60}`, nil, "Idempotency-Key: k")
	found := w.must(t, "owner", "GET /api/v1/messages/k?conversation=work", "", nil)
	for _, other := range []answer{again, found} {
		if strings.TrimSpace(other.body) != strings.TrimSpace(got.body) {
			t.Errorf("again: %s", other.body)
		}
	}
	if n := len(w.lines["u1api~t~work"]); n != 3 {
		t.Errorf("%d lines", n)
	}
	w.do(t, "member", "GET /api/v1/messages/k?conversation=work", "").refused(t, http.StatusNotFound, "k")
	// A key that this API's record has forgotten is still the id of the message.
	clear(w.kv)
	w.do(t, "owner", "POST /api/v1/messages", `{"text":"coffee","conversation":"work"}`, "Idempotency-Key: k").
		refused(t, http.StatusUnprocessableEntity, typeKeyReused)
}

func TestConversationsAreTheTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, "owner", "POST /api/v1/messages", `{"text":"a","conversation":"work"}`, nil)
	w.must(t, "messages", "POST /api/v1/messages", `{"text":"b"}`, nil)
	w.must(t, "page", "POST /api/v1/messages", `{"text":"c"}`, nil)
	for visitor, want := range map[string]string{"owner": "work: a", "messages": "main: b", "page": "main: c", "member": ""} {
		var page Page[Conversation]
		w.must(t, visitor, "GET /api/v1/conversations", "", &page)
		var got []string
		for _, c := range page.Items {
			got = append(got, c.Name+": "+c.Last.Text)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s sees %q, want %q", visitor, got, want)
		}
	}
	if len(w.lines["u1"]) != 1 || len(w.lines["u1api~m~main"]) != 1 {
		t.Errorf("the conversations are %v", w.lines)
	}
	w.must(t, "owner", "POST /api/v1/conversations/work/read", `{"seq":1}`, nil)
	w.must(t, "owner", "DELETE /api/v1/conversations/work", "", nil)
	if _, is := w.lines["u1api~t~work"]; is {
		t.Error("the conversation is not deleted")
	}
}

func TestListMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 7 {
		w.must(t, "owner", "POST /api/v1/messages", fmt.Sprintf(`{"text":"%d"}`, i), nil, fmt.Sprintf("Idempotency-Key: m%d", i+1))
	}
	if got := ids(t, w, "owner", "/messages?limit=3"); !slices.Equal(got, strings.Split("m7 m6 m5 m4 m3 m2 m1", " ")) {
		t.Errorf("backward: %v", got)
	}
	if got := ids(t, w, "owner", "/messages?limit=2&after=2"); !slices.Equal(got, strings.Split("m3 m4 m5 m6 m7", " ")) {
		t.Errorf("forward: %v", got)
	}
}

// turned makes the kernel's rows of a turn that took messages, after them.
func (w *world) turned(outcome, text string, messages ...string) {
	var inputs []string
	for _, m := range messages {
		e := w.publish(contract.TopicAgentInput+"chat", contract.AgentInput{Session: "s1", Text: "x"})
		e.CausationId, e.CorrelationId = m, m
		inputs = append(inputs, e.GetId())
	}
	w.mu.Lock()
	w.turns = append(w.turns, &adminv1.Turn{Id: 7, Inputs: inputs, Outcome: outcome})
	w.mu.Unlock()
	w.publish(contract.TopicAgentOutput, contract.AgentOutput{Session: "s1", Turn: 6})
	w.publish(contract.TopicAgentOutput, contract.AgentOutput{Session: "s1", Turn: 7, Outcome: outcome, Text: text})
}

func TestAnswerToALaterMessageOfTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, "owner", "POST /api/v1/messages", `{"text":"a"}`, nil, "Idempotency-Key: a")
	w.must(t, "owner", "POST /api/v1/messages", `{"text":"b"}`, nil, "Idempotency-Key: b")
	w.must(t, "owner", "POST /api/v1/messages", `{"text":"c"}`, nil, "Idempotency-Key: c")
	w.turned("ok", "both", "e1", "e2")
	w.mu.Lock()
	w.add("u1", chat.Line{ID: "r", Conversation: "api~t~main", ReplyTo: "b", Text: "both"})
	w.mu.Unlock()
	var x Exchange
	w.must(t, "owner", "GET /api/v1/messages/a?wait=60", "", &x)
	if x.Status != answered || x.Outcome != "ok" || x.Reply.Text != "both" {
		t.Errorf("the first message of the turn: %+v", x)
	}
	w.must(t, "owner", "GET /api/v1/messages/c", "", &x)
	if x.Status != waiting {
		t.Errorf("a message after the turn: %+v", x)
	}
}

func TestTurnWithoutText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, "owner", "POST /api/v1/messages", `{"text":"a"}`, nil, "Idempotency-Key: a")
	w.drafts = []chat.Draft{{ID: "d", ReplyTo: "a"}, {ID: "d", ReplyTo: "a", Done: true}}
	w.turned("cancelled", "", "e1")
	var x Exchange
	w.must(t, "owner", "GET /api/v1/messages/a?wait=60", "", &x)
	if x.Status != ended || x.Outcome != "cancelled" || x.Reply != nil {
		t.Errorf("got %+v", x)
	}
}

// frames reads a stream until it ends or has n events.
type frames struct {
	t    *testing.T
	body *http.Response
	read *bufio.Scanner
}

func (w *world) stream(t *testing.T, visitor, what, body string, headers ...string) *frames {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Visitor", visitor)
	r.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	said, err := http.DefaultClient.Do(r) //nolint:bodyclose // by the cleanup
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = said.Body.Close() })
	if said.StatusCode != http.StatusOK || said.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %d %s", what, said.StatusCode, said.Header)
	}
	return &frames{t, said, bufio.NewScanner(said.Body)}
}

// frame is one event.
type frame struct{ id, event, data string }

// next returns the next event; false: the stream has ended. Comments count as event "beat".
func (f *frames) next() (x frame, ok bool) {
	for f.read.Scan() {
		switch name, value, _ := strings.Cut(f.read.Text(), ": "); name {
		case "id":
			x.id = value
		case "event":
			x.event = value
		case "data":
			x.data = value
		case "":
			if strings.HasPrefix(f.read.Text(), ":") {
				x.event = "beat"
			} else if x != (frame{}) {
				return x, true
			}
		}
	}
	return x, false
}

// until skips to an event.
func (f *frames) until(event string) frame {
	f.t.Helper()
	for {
		x, ok := f.next()
		if !ok {
			f.t.Fatalf("the stream ended before a %s", event)
		}
		if x.event == event {
			return x
		}
	}
}

func TestStreamOfAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.stream(t, "owner", "POST /api/v1/messages", `{"text":"a"}`, "Content-Type: application/json")
	if first, _ := s.next(); first.id != "1" || first.event != "" {
		t.Errorf("begins with %v", first)
	}
	message := s.until("message")
	var m Message
	if err := json.Unmarshal([]byte(message.data), &m); err != nil || m.Text != "a" || message.id != "1" {
		t.Errorf("message %v", message)
	}
	w.mu.Lock()
	w.drafts = append(w.drafts, chat.Draft{ID: "d", ReplyTo: m.ID, Text: "he"})
	w.tell()
	w.mu.Unlock()
	if d := s.until("draft"); !strings.Contains(d.data, `"text":"he"`) {
		t.Errorf("draft %v", d)
	}
	w.mu.Lock()
	w.add("u1", chat.Line{ID: "q", Conversation: "api~t~main", Text: "May I?"})
	w.add("u1", chat.Line{ID: "r", Conversation: "api~t~main", ReplyTo: m.ID, Text: "hello\nyou"})
	w.mu.Unlock()
	if o := s.until("other"); !strings.Contains(o.data, "May I?") || o.id != "2" {
		t.Errorf("other %v", o)
	}
	if r := s.until("reply"); !strings.Contains(r.data, `hello\nyou`) || r.id != "3" {
		t.Errorf("reply %v", r)
	}
	if d := s.until("done"); !strings.Contains(d.data, `"status":"answered"`) {
		t.Errorf("done %v", d)
	}
	if x, more := s.next(); more {
		t.Errorf("after the end: %v", x)
	}
}

func TestFollowAConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, text := range []string{"a", "b", "c"} {
		w.must(t, "owner", "POST /api/v1/messages", `{"text":"`+text+`"}`, nil)
	}
	const path = "GET /api/v1/conversations/main/stream"
	if m := w.stream(t, "owner", path, "", "Last-Event-ID: 1").until("message"); m.id != "2" {
		t.Errorf("after 1: %v", m)
	}
	s := w.stream(t, "owner", path, "")
	w.must(t, "owner", "POST /api/v1/messages", `{"text":"d"}`, nil)
	if m := s.until("message"); m.id != "4" {
		t.Errorf("from now on: %v", m)
	}
}

func TestEventsResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.publish([]string{"a.x", "b.x"}[i%2], i)
	}
	if got := ids(t, w, "owner", "/events?limit=2"); !slices.Equal(got, strings.Split("e5 e4 e3 e2 e1", " ")) {
		t.Errorf("listed %v", got)
	}
	got := w.must(t, "owner", "GET /api/v1/events?topic=a.*", "", nil, "Accept: application/json")
	if strings.Count(got.body, `"seq"`) != 3 || !strings.Contains(got.body, `"deliveries"`) {
		t.Errorf("of a topic: %s", got.body)
	}
	w.must(t, "owner", "GET /api/v1/events/e2", "", nil)
	w.do(t, "owner", "GET /api/v1/events/e99", "").refused(t, http.StatusNotFound, "e99")
	w.do(t, "owner", "GET /api/v1/events", "", "Last-Event-ID: x").refused(t, http.StatusUnprocessableEntity, "Last-Event-ID")
	s := w.stream(t, "owner", "GET /api/v1/events", "")
	if first, _ := s.next(); first.id != "5" {
		t.Errorf("without an id it begins after %v", first)
	}
	var seen []string
	last := "0"
	for n := 1; n <= 4; n++ { // a client that is cut off again and again
		s := w.stream(t, "owner", "GET /api/v1/events?topic=a.*", "", "Last-Event-ID: "+last)
		for range n {
			var e Event
			x, ok := s.next()
			for ok && x.data == "" {
				x, ok = s.next()
			}
			if err := json.Unmarshal([]byte(x.data), &e); err != nil || fmt.Sprint(e.Seq) != x.id {
				t.Fatalf("got %v", x)
			}
			last, seen = x.id, append(seen, x.id)
			w.publish("a.y", 1)
			w.publish("b.y", 1)
		}
		_ = s.body.Body.Close()
	}
	if want := strings.Split("1 3 5 6 8 10 12 14 16 18", " "); !slices.Equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

func TestHeartbeatsAndLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Heartbeat, o.Streams = time.Millisecond, 2 })
	a := w.stream(t, "owner", "GET /api/v1/events", "")
	a.until("beat")
	w.stream(t, "owner", "GET /api/v1/conversations/x/stream", "")
	busy := w.do(t, "owner", "GET /api/v1/events", "")
	busy.refused(t, http.StatusTooManyRequests, typeStreams)
	w.do(t, "owner", "POST /api/v1/messages", `{"text":"x","wait":1}`).refused(t, http.StatusTooManyRequests, typeStreams)
	w.must(t, "owner", "GET /api/v1/events?limit=1", "", nil) // no stream
	w.stream(t, "page", "GET /api/v1/events", "")             // another token's
	_ = a.body.Body.Close()
	for w.do(t, "owner", "POST /api/v1/messages", `{"text":"x","wait":0.01}`).status == http.StatusTooManyRequests {
	}
}

func TestStreamsEndWithTheToken(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	w := newWorld(t, func(o *Options) {
		o.Heartbeat = time.Millisecond
		o.Still = func(_ context.Context, v door.Visitor) bool { return v.Token != "t" || !revoked.Load() }
	})
	s, other := w.stream(t, "owner", "GET /api/v1/events", ""), w.stream(t, "page", "GET /api/v1/events", "")
	s.until("beat")
	revoked.Store(true)
	for more := true; more; {
		_, more = s.next()
	}
	other.until("beat")
}

func TestAnswerQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reply = echo
	w.open = []*adminv1.Question{
		{Id: "q1", Kind: "approve", Text: "May I?"}, {Id: "q2", Kind: "choose", Options: []string{"a", "b"}, Person: "p2"},
		{Id: "q3", Kind: "answer", Person: "p9"},
	}
	if got := ids(t, w, "owner", "/questions?limit=2"); !slices.Equal(got, []string{"q1", "q2", "q3"}) {
		t.Errorf("the owner sees %v", got)
	}
	if got := ids(t, w, "member", "/questions?limit=2"); !slices.Equal(got, []string{"q2"}) {
		t.Errorf("a member sees %v", got)
	}
	w.do(t, "member", "POST /api/v1/questions/q1/answer", `{"answer":"yes"}`).refused(t, http.StatusNotFound, "q1")
	for answer, want := range map[string]string{"yes": "/approve q1", "no": "/deny q1", "always here": "/answer q1 always here"} {
		var x Exchange
		w.must(t, "owner", "POST /api/v1/questions/q1/answer", `{"answer":"`+answer+`"}`, &x)
		if x.Message.Text != want || x.Reply == nil || x.Reply.Text != "re: "+want {
			t.Errorf("%s: %+v", answer, x)
		}
	}
	var x Exchange
	w.must(t, "member", "POST /api/v1/questions/q2/answer", `{"answer":"b","conversation":"work"}`, &x, "Idempotency-Key: k")
	w.open = nil
	clear(w.kv) // as if a crash came before the response
	var again Exchange
	w.must(t, "member", "POST /api/v1/questions/q2/answer", `{"answer":"b","conversation":"work"}`, &again, "Idempotency-Key: k")
	if x.Message.Conversation != "work" || again.Message.ID != x.Message.ID || again.Reply == nil {
		t.Errorf("%+v, again %+v", x, again)
	}
}
