package trace

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// rows is the stream of an answer.
type rows[T any] struct {
	grpc.ServerStreamingClient[T]
	left []*T
}

func (r *rows[T]) Recv() (*T, error) {
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	one := r.left[0]
	r.left = r.left[1:]
	return one, nil
}

func of[T any](left ...*T) (grpc.ServerStreamingClient[T], error) { return &rows[T]{left: left}, nil }

// kernel has one message of Anna on Telegram, and what followed.
type kernel struct{ adminv1.ReadClient }

const began = 1_790_000_000_000_000

const nasty = `<script>alert("x")</script>`

var events = []*busv1.Event{
	{
		Id: "e1", Seq: 1, Topic: contract.TopicUserMessage, Source: "telegram_channel", CorrelationId: "e1", CreatedAtUs: began,
		Payload: []byte(`{"text":"note <script>alert(\"x\")</script>","conversation_id":"77","message_id":"5"}`),
	},
	{
		Id: "e2", Seq: 2, Topic: contract.TopicAgentInput + "main", Key: "s1", Source: "kernel", CorrelationId: "e1",
		CausationId: "e1", CreatedAtUs: began + 1000, Payload: []byte(`{"kind":"user","text":"note"}`),
	},
	{
		Id: "e3", Seq: 3, Topic: contract.TopicAgentOutput, Source: "main", CorrelationId: "e1", CausationId: "e2",
		CreatedAtUs: began + 900_000, Payload: []byte(`{"session":"s1","turn":4,"outcome":"ok","text":"Noted."}`),
	},
}

func (kernel) Events(
	_ context.Context, q *adminv1.EventsRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[busv1.Event], error) {
	var found []*busv1.Event
	for _, e := range events {
		if len(q.GetIds()) == 0 || slices.Contains(q.GetIds(), e.GetId()) {
			found = append(found, e)
		}
	}
	if q.GetLimit() == 1 {
		found = found[len(found)-1:]
	}
	return of(found...)
}

func (kernel) Deliveries(
	_ context.Context, q *adminv1.DeliveriesRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Delivery], error) {
	if !slices.Contains(q.GetEvents(), "e2") {
		return of[adminv1.Delivery]()
	}
	return of(&adminv1.Delivery{
		Event: "e2", Extension: "main", Topic: contract.TopicAgentInput + "main", State: "done", Attempts: 2,
		StartedAtUs: began + 2000, SettledAtUs: began + 900_000, Reason: "it died",
	})
}

func (kernel) Sessions(
	_ context.Context, q *adminv1.SessionsRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Session], error) {
	if !slices.Contains(q.GetIds(), "s1") {
		return of[adminv1.Session]()
	}
	return of(&adminv1.Session{Id: "s1", Agent: "main", Channel: "telegram_channel", Conversation: "77", Rows: 4})
}

func (kernel) Turns(
	context.Context, *adminv1.TurnsRequest, ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Turn], error) {
	return of(&adminv1.Turn{
		Id: 4, Session: "s1", Inputs: []string{"e2"}, Outcome: "ok", StartedAtUs: began + 2000, EndedAtUs: began + 900_000,
	})
}

func (kernel) History(
	_ context.Context, q *adminv1.HistoryRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[busv1.Entry], error) {
	all := []*busv1.Entry{
		{
			Seq: 1, Turn: 4, Kind: contract.EntryInput, InputKind: contract.InputUser, Sender: "Anna", Input: "e2",
			Text: "note " + nasty, Preamble: "Current time: noon", CreatedAtUs: began + 2000,
		},
		{
			Seq: 2, Turn: 4, Kind: contract.EntryAnswer, Model: "openai/m", CreatedAtUs: began + 400_000,
			Calls: []*busv1.Call{{CallId: "c1", Name: "notes/add", Arguments: []byte(`{"n":1}`), State: "done"}},
		},
		{Seq: 3, Turn: 4, Kind: contract.EntryResult, CallId: "c1", Text: "added", CreatedAtUs: began + 500_000},
		{Seq: 4, Turn: 4, Kind: contract.EntryAnswer, Model: "openai/m", Text: "Noted.", CreatedAtUs: began + 899_000},
	}
	if b := q.GetBefore(); b > 0 {
		all = all[:min(int(b)-1, len(all))]
	}
	return of(all...)
}

func (kernel) Calls(
	_ context.Context, q *adminv1.CallsRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[adminv1.Call], error) {
	if !slices.Contains(q.GetIds(), "c1") {
		return of[adminv1.Call]()
	}
	return of(&adminv1.Call{
		Id: "c1", Session: "s1", Turn: 4, Name: "notes/add", Arguments: []byte(`{"n":1}`), State: "done", Result: "added " + nasty,
		StartedAtUs: began + 400_000, EndedAtUs: began + 500_000,
	})
}

func (kernel) Directory(
	context.Context, *adminv1.DirectoryRequest, ...grpc.CallOption,
) (*adminv1.DirectoryResponse, error) {
	return &adminv1.DirectoryResponse{
		Channels: []*adminv1.Channel{{Id: "telegram_channel", Name: "Telegram"}},
		Agents: []*adminv1.Agent{{
			Id: "main", Name: "Main", Tools: []string{"notes/add"}, Spec: &extensionv1.AgentSpec{Instructions: "Be brief."},
		}},
		Tools: []*extensionv1.Tool{{Name: "notes/add", Description: "Add a note."}, {Name: "secret/tool"}},
	}, nil
}

var owner = door.Visitor{Role: "owner", Person: "p1"}

func get(t *testing.T, path string, v door.Visitor) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	Register(mux, Options{Read: kernel{}})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(door.With(t.Context(), v), http.MethodGet, path, nil))
	body := w.Body.String()
	if strings.Contains(body, "<script>alert") || strings.Contains(body, " style=") {
		t.Errorf("%s: a text became markup, or a style is inline:\n%s", path, body)
	}
	return w.Code, body
}

func has(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("%q is missing in\n%s", part, body)
		}
	}
}

// The tree has each step once with its times, and a bar from its start to its end. It is the
// same from the id of any event and from that of the platform.
func TestTheTree(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"e1", "e3", "77/5"} {
		status, body := get(t, Path(id), owner)
		if status != http.StatusOK {
			t.Fatalf("%s: %d\n%s", id, status, body)
		}
		has(t, body, `role="treegrid"`, "e1 user.message", `aria-level="1"`, `aria-level="2"`, `aria-level="3"`,
			`<a href="/step/s1.2">model openai/m calls notes/add</a>`, `<a href="/step/c1">tool notes/add</a>`, "→ added",
			"failed 2 times", "100 ms", `href="/step/e2"`)
		bars := regexp.MustCompile(`x="([0-9.]+)" y="1" width="([0-9.]+)"`).FindAllStringSubmatch(body, -1)
		if len(bars) < 5 || len(bars) > 6 { // the one that was asked for is always shown
			t.Fatalf("%d bars in\n%s", len(bars), body)
		}
		for _, bar := range bars {
			var x, width float64
			if _, err := fmt.Sscan(bar[1]+" "+bar[2], &x, &width); err != nil || x < 0 || width <= 0 || x+width > 1003 {
				t.Errorf("a bar from %s, %s wide: %v", bar[1], bar[2], err)
			}
		}
		if bars[3][1] != "444.4" || bars[3][2] != "111.1" { // the call: from 400 to 500 ms of 900
			t.Errorf("the bar of the call begins at %s and is %s wide", bars[3][1], bars[3][2])
		}
	}
	if _, body := get(t, "/trace/e1?all", owner); !strings.Contains(body, "turn 4 of main") {
		t.Errorf("every event lacks the turn:\n%s", body)
	}
}

// A visitor reads the steps, their outcomes and their times in one language.
func TestTheTreeIsInTheLanguageOfTheVisitor(t *testing.T) {
	t.Parallel()
	russian := owner
	russian.Language = "ru"
	for path, want := range map[string][]string{
		"/trace/e1":     {"модель openai/m вызывает notes/add", "инструмент notes/add", "2 неудачные попытки", "100 мс"},
		"/trace/e1?all": {"ход 4: main", "мс"},
		"/step/c1":      {"выполнено"},
	} {
		_, body := get(t, path, russian)
		has(t, body, want...)
		for _, english := range []string{"calls", "handled", "failed 2", "turn 4", " ms<", ">done<"} {
			if strings.Contains(body, english) {
				t.Errorf("%s has %q in\n%s", path, english, body)
			}
		}
	}
}

func TestStepsOpen(t *testing.T) {
	t.Parallel()
	_, body := get(t, "/step/e2", owner)
	has(t, body, "agent.input.main", "it died", `<a href="/step/e1">`, "&#34;kind&#34;: &#34;user&#34;")
	_, body = get(t, "/step/c1", owner)
	has(t, body, "notes/add", "added &lt;script&gt;", "&#34;n&#34;: 1")
	_, body = get(t, "/step/s1.4", owner)
	has(t, body, "openai/m", "Be brief.", "Current time: noon", "note &lt;script&gt;", "notes__add", "Add a note.", "added",
		"Noted.", "Built again from the history")
	if strings.Contains(body, "secret") {
		t.Errorf("a tool of others is shown:\n%s", body)
	}
	for _, id := range []string{"e9", "c9", "s1.3", "s1.9", "s9.1", "s1", "x", "s1.-1"} {
		if status, _ := get(t, "/step/"+id, owner); status != http.StatusNotFound && status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", id, status)
		}
	}
}

func TestOnlyTheOwner(t *testing.T) {
	t.Parallel()
	for _, v := range []door.Visitor{
		{}, {Role: "member", Person: "p2"}, {Role: "guest", Person: "p3"}, {Role: "owner", Person: "p1", Token: "t", Scopes: []string{door.ScopeMemory}},
	} {
		for _, path := range []string{"/trace", "/trace?id=e1", "/trace/e1", "/step/e1", "/step/s1.2"} {
			if status, body := get(t, path, v); status != http.StatusForbidden || strings.Contains(body, "Anna") {
				t.Errorf("%+v gets %s: %d", v, path, status)
			}
		}
	}
	if status, _ := get(t, "/trace?id=77/5", owner); status != http.StatusSeeOther {
		t.Errorf("the field: status %d", status)
	}
}
