package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// visitors that requests of tests come from.
var visitors = map[string]door.Visitor{
	"owner":    {User: "u1", Account: "a1", Person: "owner", Name: "Ann", Role: "owner", Token: "t", Scopes: []string{"all"}},
	"reader":   {User: "u1", Account: "a1", Person: "owner", Name: "Ann", Role: "owner", Token: "r", Scopes: []string{"read"}},
	"messages": {User: "u1", Account: "a1", Person: "owner", Role: "owner", Token: "m", Scopes: []string{"messages"}},
	"page":     {User: "u1", Account: "a1", Person: "owner", Role: "owner", Login: "l"},
	"member":   {User: "u2", Account: "a2", Person: "p2", Name: "Bob", Role: "member", Token: "b", Scopes: []string{"all"}},
	"guest":    {User: "u3", Account: "a3", Person: "p3", Name: "Cat", Role: "guest", Token: "g", Scopes: []string{"all"}},
	"nobody":   {},
}

// world is what the API works on, in memory.
type world struct {
	adminv1.ReadClient
	adminv1.ManageClient
	url string

	mu       sync.Mutex
	events   []*busv1.Event
	more     chan struct{} // closed when an event came
	sessions []*adminv1.Session
	history  []*busv1.Entry
	turns    []*adminv1.Turn
	open     []*adminv1.Question
	roles    map[string]string
	deleted  []string
	calls    []*adminv1.CallToolRequest
	tool     func(*adminv1.CallToolRequest) (string, error)
	kv       map[string]sdk.Value
	version  int64
	commits  int
	die      func() error // before a commit
	restarts int
	lines    map[string][]chat.Line
	drafts   []chat.Draft
	changed  chan struct{}
	reply    func(chat.Message) []chat.Line
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{
		kv: map[string]sdk.Value{}, roles: map[string]string{}, lines: map[string][]chat.Line{},
		more: make(chan struct{}), changed: make(chan struct{}),
	}
	w.serve(t, change...)
	return w
}

// serve starts the API over the world; again after a crash.
func (w *world) serve(t *testing.T, change ...func(*Options)) {
	t.Helper()
	closing, stop := context.WithCancel(context.Background())
	o := Options{
		Read: w, Manage: w, Chat: w, Files: uploads{}, Store: w, Log: hclog.NewNullLogger(), Closing: closing, Now: time.Now,
	}
	for _, c := range change {
		c(&o)
	}
	mux := http.NewServeMux()
	Register(mux, o)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		v := visitors[cmp.Or(r.Header.Get("X-Visitor"), "owner")]
		mux.ServeHTTP(rw, r.WithContext(door.With(r.Context(), v)))
	}))
	t.Cleanup(func() { stop(); s.Close() })
	w.url = s.URL
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request: "METHOD path", and headers as "Name: value".
func (w *world) do(t *testing.T, visitor, what, body string, headers ...string) answer {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Visitor", visitor)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	said, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Body.Close()
	text, err := io.ReadAll(said.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{said.StatusCode, said.Header, string(text)}
}

// must is do, of a request that succeeds; the body is decoded into v.
func (w *world) must(t *testing.T, visitor, what, body string, v any, headers ...string) answer {
	t.Helper()
	a := w.do(t, visitor, what, body, headers...)
	if a.status/100 != 2 {
		t.Fatalf("%s of %s: %d %s", what, visitor, a.status, a.body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(a.body), v); err != nil {
			t.Fatalf("%s: %v in %s", what, err, a.body)
		}
	}
	return a
}

// refused checks that a response is a problem.
func (a answer) refused(t *testing.T, status int, detail string) {
	t.Helper()
	var p struct {
		Title, Detail, Type string
		Status              int
	}
	if a.status != status || a.header.Get("Content-Type") != "application/problem+json" ||
		json.Unmarshal([]byte(a.body), &p) != nil || p.Status != status || p.Title == "" ||
		!strings.Contains(a.body, detail) {
		t.Errorf("got %d %s %s, want a problem %d with %q", a.status, a.header.Get("Content-Type"), a.body, status, detail)
	}
}

// rows is a stream of the kernel.
type rows[T any] struct {
	grpc.ClientStream
	next func() (*T, error)
}

func (r rows[T]) Recv() (*T, error) { return r.next() }

func stored[T any](all []*T) (grpc.ServerStreamingClient[T], error) {
	return rows[T]{next: func() (*T, error) {
		if len(all) == 0 {
			return nil, io.EOF
		}
		first := all[0]
		all = all[1:]
		return first, nil
	}}, nil
}

func (w *world) publish(topic string, payload any) *busv1.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, _ := json.Marshal(payload)
	n := int64(len(w.events) + 1)
	e := &busv1.Event{Seq: n, Id: fmt.Sprintf("e%d", n), Topic: topic, Source: "test", Payload: raw, CorrelationId: "e1",
		CreatedAtUs: time.Now().UnixMicro()}
	w.events = append(w.events, e)
	close(w.more)
	w.more = make(chan struct{})
	return e
}

func matches(pattern, topic string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == "" || pattern == topic || wild && strings.HasPrefix(topic, prefix)
}

// Events implements adminv1.ReadClient.
func (w *world) Events(
	ctx context.Context, q *adminv1.EventsRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[busv1.Event], error) {
	selected := func(after int64) (found []*busv1.Event, more chan struct{}) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range w.events {
			switch {
			case len(q.GetIds()) > 0:
				if slices.Contains(q.GetIds(), e.GetId()) {
					found = append(found, e)
				}
			case matches(q.GetTopic(), e.GetTopic()) && e.GetSeq() > after && (q.GetBefore() == 0 || e.GetSeq() < q.GetBefore()) &&
				(q.GetCorrelationId() == "" || q.GetCorrelationId() == e.GetCorrelationId()):
				found = append(found, e)
			}
		}
		return found, w.more
	}
	if !q.GetFollow() {
		found, _ := selected(q.GetAfter())
		if !q.GetAscending() && len(q.GetIds()) == 0 {
			slices.Reverse(found)
		}
		return stored(found[:min(len(found), int(cmp.Or(q.GetLimit(), 100)))])
	}
	after := q.GetAfter()
	return rows[busv1.Event]{next: func() (*busv1.Event, error) {
		for {
			found, more := selected(after)
			if len(found) > 0 {
				after = found[0].GetSeq()
				return found[0], nil
			}
			select {
			case <-more:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}}, nil
}

// Deliveries implements adminv1.ReadClient.
func (w *world) Deliveries(
	_ context.Context, q *adminv1.DeliveriesRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Delivery], error) {
	var all []*adminv1.Delivery
	for _, e := range q.GetEvents() {
		all = append(all, &adminv1.Delivery{Event: e, Extension: "x", State: "done"})
	}
	return stored(all)
}

// Sessions implements adminv1.ReadClient.
func (w *world) Sessions(
	_ context.Context, q *adminv1.SessionsRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Session], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*adminv1.Session
	for _, s := range w.sessions {
		if len(q.GetIds()) == 0 && (q.GetAgent() == "" || q.GetAgent() == s.GetAgent()) || slices.Contains(q.GetIds(), s.GetId()) {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b *adminv1.Session) int { return cmp.Compare(b.GetActiveAtUs(), a.GetActiveAtUs()) })
	return stored(found[:min(len(found), int(cmp.Or(q.GetLimit(), 100)))])
}

// History implements adminv1.ReadClient.
func (w *world) History(
	_ context.Context, q *adminv1.HistoryRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[busv1.Entry], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*busv1.Entry
	for _, e := range w.history {
		if q.GetBefore() == 0 || e.GetSeq() < q.GetBefore() {
			found = append(found, e)
		}
	}
	if n := int(q.GetLimit()); n > 0 && len(found) > n {
		found = found[len(found)-n:]
	}
	return stored(found)
}

// Turns implements adminv1.ReadClient.
func (w *world) Turns(
	_ context.Context, q *adminv1.TurnsRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Turn], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*adminv1.Turn
	for _, t := range w.turns {
		if slices.Contains(q.GetIds(), t.GetId()) {
			found = append(found, t)
		}
	}
	return stored(found)
}

// Directory implements adminv1.ReadClient.
func (w *world) Directory(
	context.Context, *adminv1.DirectoryRequest, ...grpc.CallOption,
) (*adminv1.DirectoryResponse, error) {
	return &adminv1.DirectoryResponse{
		Channels:       []*adminv1.Channel{{Id: "cli_channel", Name: "Terminal", State: "active"}},
		DefaultChannel: "cli_channel", DefaultAgent: "chat",
	}, nil
}

// People implements adminv1.ReadClient.
func (w *world) People(context.Context, *adminv1.PeopleRequest, ...grpc.CallOption) (*adminv1.PeopleResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &adminv1.PeopleResponse{People: []*adminv1.Person{
		{Id: "owner", Name: "Ann", Role: "owner"},
		{Id: "p2", Name: "Bob", Role: cmp.Or(w.roles["p2"], "member"), Accounts: []*adminv1.Account{
			{Id: "a2", Channel: "web_channel", UserId: "u2"}, {Id: "a4", Channel: "telegram_channel", UserId: "7", Conversation: "77"},
		}},
	}}, nil
}

// Usage implements adminv1.ReadClient.
func (w *world) Usage(context.Context, *adminv1.UsageRequest, ...grpc.CallOption) (*adminv1.UsageResponse, error) {
	return &adminv1.UsageResponse{Rows: []*adminv1.Usage{{Day: "2026-01-02", Agent: "chat", Model: "m", Calls: 2, InputTokens: 3}}}, nil
}

// Extensions implements adminv1.ReadClient.
func (w *world) Extensions(
	context.Context, *adminv1.ExtensionsRequest, ...grpc.CallOption,
) (*adminv1.ExtensionsResponse, error) {
	return &adminv1.ExtensionsResponse{Extensions: []*adminv1.Extension{
		{Id: "memory", State: "active", Readiness: "ready", Builtin: true, Kinds: []string{"tools"}},
		{Id: "web_channel", State: "active", Builtin: true},
	}}, nil
}

// Status implements adminv1.ReadClient.
func (w *world) Status(context.Context, *adminv1.StatusRequest, ...grpc.CallOption) (*adminv1.Status, error) {
	return &adminv1.Status{}, nil
}

// Questions implements adminv1.ReadClient.
func (w *world) Questions(
	context.Context, *adminv1.QuestionsRequest, ...grpc.CallOption,
) (*adminv1.QuestionsResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &adminv1.QuestionsResponse{Questions: w.open}, nil
}

// SetRole implements adminv1.ManageClient.
func (w *world) SetRole(_ context.Context, q *adminv1.SetRoleRequest, _ ...grpc.CallOption) (*adminv1.Person, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles[q.GetPerson()] = q.GetRole()
	return &adminv1.Person{Id: q.GetPerson()}, nil
}

// Restart implements adminv1.ManageClient.
func (w *world) Restart(
	_ context.Context, q *adminv1.RestartRequest, _ ...grpc.CallOption,
) (*adminv1.RestartResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarts++
	return &adminv1.RestartResponse{Restarted: []string{q.GetId()}}, nil
}

// DeleteSession implements adminv1.ManageClient.
func (w *world) DeleteSession(
	_ context.Context, q *adminv1.DeleteSessionRequest, _ ...grpc.CallOption,
) (*adminv1.DeleteSessionResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = append(w.deleted, q.GetId())
	w.sessions = slices.DeleteFunc(w.sessions, func(s *adminv1.Session) bool { return s.GetId() == q.GetId() })
	return &adminv1.DeleteSessionResponse{}, nil
}

// CallTool implements adminv1.ManageClient.
func (w *world) CallTool(
	_ context.Context, q *adminv1.CallToolRequest, _ ...grpc.CallOption,
) (*adminv1.ToolResult, error) {
	w.mu.Lock()
	w.calls = append(w.calls, q)
	tool := w.tool
	w.mu.Unlock()
	if tool == nil {
		return nil, fmt.Errorf("%w: no tool %s", contract.ErrNotFound, q.GetName())
	}
	content, err := tool(q)
	if err != nil {
		return &adminv1.ToolResult{Content: err.Error(), IsError: true}, nil //nolint:nilerr // an error of the tool
	}
	return &adminv1.ToolResult{Content: content}, nil
}

// Get implements Store.
func (w *world) Get(_ context.Context, key string) (sdk.Value, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kv[key], nil
}

// Page implements Store.
func (w *world) Page(_ context.Context, prefix, after string, limit int) (page []sdk.Value, more bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, v := range w.kv {
		if strings.HasPrefix(key, prefix) && key > after {
			page = append(page, v)
		}
	}
	slices.SortFunc(page, func(a, b sdk.Value) int { return strings.Compare(a.Key, b.Key) })
	return page[:min(len(page), limit)], len(page) > limit, nil
}

// Commit implements Store.
func (w *world) Commit(_ context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	if w.die != nil {
		if err := w.die(); err != nil {
			return nil, err
		}
	}
	for _, e := range effects {
		p, err := e.Proto()
		if err != nil {
			return nil, err
		}
		if put := p.GetPut(); put != nil {
			if put.Version != nil && w.kv[put.GetKey()].Version != put.GetVersion() {
				return nil, contract.ErrConflict
			}
			w.version++
			w.kv[put.GetKey()] = sdk.Value{Key: put.GetKey(), Value: bytes.Clone(put.GetValue()), Version: w.version}
		}
		if del := p.GetDelete(); del != nil {
			delete(w.kv, del.GetKey())
		}
	}
	return nil, nil
}

// tell wakes the followers; mu is held.
func (w *world) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) add(user string, l chat.Line) chat.Line {
	l.Seq, l.At = int64(len(w.lines[user+l.Conversation])+1), time.Now()
	w.lines[user+l.Conversation] = append(w.lines[user+l.Conversation], l)
	w.tell()
	return l
}

// Say implements chat.Conversations.
func (w *world) Say(_ context.Context, v door.Visitor, m chat.Message) (chat.Line, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lines[v.User+m.Conversation] {
		if l.Mine && l.ID == m.ID {
			return l, nil
		}
	}
	n := int64(len(w.events) + 1)
	e := &busv1.Event{Seq: n, Id: fmt.Sprintf("e%d", n), Topic: contract.TopicUserMessage, CorrelationId: fmt.Sprintf("e%d", n)}
	w.events = append(w.events, e)
	said := w.add(v.User, chat.Line{ID: m.ID, Conversation: m.Conversation, Mine: true, Text: m.Text, Event: e.GetId()})
	if w.reply != nil {
		for _, l := range w.reply(m) {
			l.Conversation = m.Conversation
			w.add(v.User, l)
		}
	}
	return said, nil
}

// Lines implements chat.Conversations.
func (w *world) Lines(
	_ context.Context, v door.Visitor, conversation string, after, before int64, limit int,
) (found []chat.Line, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lines[v.User+conversation] {
		if l.Seq > after && (before == 0 || l.Seq < before) {
			found = append(found, l)
		}
	}
	if before > 0 {
		return found[max(0, len(found)-limit):], nil
	}
	return found[:min(len(found), limit)], nil
}

// Follow implements chat.Conversations.
func (w *world) Follow(
	ctx context.Context, v door.Visitor, conversation string, after int64,
) iter.Seq2[chat.Frame, error] {
	return func(yield func(chat.Frame, error) bool) {
		for shown := 0; ; {
			w.mu.Lock()
			var lines []chat.Line
			for _, l := range w.lines[v.User+conversation] {
				if l.Seq > after {
					lines = append(lines, l)
					after = l.Seq
				}
			}
			drafts, changed := w.drafts[min(shown, len(w.drafts)):], w.changed
			shown = len(w.drafts)
			w.mu.Unlock()
			for _, l := range lines {
				if !yield(chat.Frame{Line: &l}, nil) {
					return
				}
			}
			for _, d := range drafts {
				if !yield(chat.Frame{Draft: &d}, nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// List implements chat.Conversations.
func (w *world) List(_ context.Context, v door.Visitor) (all []chat.Conversation, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, lines := range w.lines {
		if of, is := strings.CutPrefix(name, v.User); is {
			all = append(all, chat.Conversation{Name: of, Last: lines[len(lines)-1]})
		}
	}
	return all, nil
}

// Read implements chat.Conversations.
func (w *world) Read(context.Context, door.Visitor, string, int64) error { return nil }

// Delete implements chat.Conversations.
func (w *world) Delete(_ context.Context, v door.Visitor, conversation string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.lines, v.User+conversation)
	return nil
}
