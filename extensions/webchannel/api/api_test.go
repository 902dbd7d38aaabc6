package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
)

// operation is one of the OpenAPI document.
type operation struct{ method, path, scope string }

// operations reads the document.
func operations(t *testing.T, w *world) (all []operation) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Description string
			Responses   map[string]any
		}
	}
	w.must(t, "guest", "GET /openapi.json", "", &doc)
	for path, methods := range doc.Paths {
		for method, o := range methods {
			_, scope, _ := strings.Cut(o.Description, "Scope: ")
			scope, _, _ = strings.Cut(strings.TrimRight(scope, "."), " or")
			scope, _, _ = strings.Cut(scope, ",")
			all = append(all, operation{strings.ToUpper(method), path, scope})
			if o.OperationID == "" || len(o.Responses) < 2 {
				t.Errorf("%s %s is not described: %+v", method, path, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.method, b.method))
	})
	return all
}

func TestDocumentListsEachOperation(t *testing.T) {
	t.Parallel()
	var got []string
	for _, o := range operations(t, newWorld(t)) {
		got = append(got, strings.TrimSpace(o.method+" "+strings.TrimPrefix(o.path, prefix)+" "+o.scope))
	}
	want := strings.Split(strings.TrimSpace(`
GET /channels channels
GET /channels/{id} channels
GET /conversations messages
DELETE /conversations/{name} messages
POST /conversations/{name}/read messages
GET /conversations/{name}/stream messages
GET /events events
GET /events/{id} events
GET /extensions admin
GET /extensions/{id} admin
POST /extensions/{id}/restart admin
POST /files messages
GET /me
GET /memory memory
POST /memory memory
DELETE /memory/{id} memory
GET /memory/{id} memory
PATCH /memory/{id} memory
GET /messages messages
POST /messages messages
GET /messages/{id} messages
GET /people people
GET /people/{id} people
PATCH /people/{id} people
GET /questions messages
POST /questions/{id}/answer messages
GET /schedules schedules
POST /schedules schedules
DELETE /schedules/{id} schedules
GET /schedules/{id} schedules
PATCH /schedules/{id} schedules
POST /schedules/{id}/pause schedules
POST /schedules/{id}/resume schedules
GET /sessions sessions
DELETE /sessions/{id} sessions
GET /sessions/{id} sessions
GET /sessions/{id}/entries sessions
GET /tasks tasks
POST /tasks tasks
GET /tasks/{id} tasks
POST /tasks/{id}/cancel tasks
GET /usage usage`), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("the document has\n%s", strings.Join(got, "\n"))
	}
}

// bodies are valid ones of the operations that need one.
var bodies = map[string]string{
	"POST /conversations/{name}/read": `{"seq":1}`, "POST /memory": `{"text":"x"}`, "PATCH /memory/{id}": `{"text":"x"}`,
	"POST /messages": `{"text":"x"}`, "PATCH /people/{id}": `{"role":"guest"}`,
	"POST /questions/{id}/answer": `{"answer":"x"}`, "POST /schedules": `{"message":"x","delay_seconds":60}`,
	"PATCH /schedules/{id}": `{"message":"x"}`, "POST /tasks": `{"prompt":"x"}`,
}

// TestEachOperationChecksItsScope also keeps a new operation from being left out.
func TestEachOperationChecksItsScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reply = func(m chat.Message) []chat.Line { return []chat.Line{{ID: "r" + m.ID, ReplyTo: m.ID, Text: "x"}} }
	ownersOnly := []string{"channels", "events", "admin", "people", "usage"}
	for _, o := range operations(t, w) {
		path := strings.NewReplacer("{id}", "none", "{name}", "none").Replace(o.path)
		what, body := o.method+" "+path, bodies[o.method+" "+strings.TrimPrefix(o.path, prefix)]
		for name, v := range visitors {
			may := v.User != "" && (o.scope == "" || v.May(o.scope, o.method != http.MethodGet))
			switch { // what May must say
			case o.scope == "":
			case v.Role == "guest" && may != (o.scope == "messages"),
				slices.Contains(ownersOnly, o.scope) && v.Role != "owner" && may,
				name == "reader" && o.method != http.MethodGet && may,
				name == "messages" && may != (o.scope == "messages"):
				t.Errorf("%s may use %s: %v", name, what, may)
			}
			if may && (o.path == prefix+"/events" || strings.HasSuffix(o.path, "/stream")) {
				continue // it does not end
			}
			got := w.do(t, name, what, body)
			switch {
			case v.User == "":
				got.refused(t, http.StatusUnauthorized, "token")
			case !may:
				got.refused(t, http.StatusForbidden, typeScope)
			case got.status == http.StatusForbidden || got.status == http.StatusUnauthorized ||
				got.status == http.StatusInternalServerError:
				t.Errorf("%s by %s: %d %s", what, name, got.status, got.body)
			}
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, "owner", "GET /api/v1/nothing", "").refused(t, http.StatusNotFound, "openapi.json")
	w.do(t, "owner", "GET /api/v1/../x", "").refused(t, http.StatusNotFound, "")
	wrong := w.do(t, "owner", "PUT /api/v1/messages", "{}")
	wrong.refused(t, http.StatusMethodNotAllowed, "PUT")
	if wrong.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("allowed: %q", wrong.header.Get("Allow"))
	}
	large := `{"text":"` + strings.Repeat("x", maxBody) + `"}`
	w.do(t, "owner", "POST /api/v1/messages", large).refused(t, http.StatusRequestEntityTooLarge, "")
	w.do(t, "owner", "POST /api/v1/messages", large, "Idempotency-Key: k").refused(t, http.StatusRequestEntityTooLarge, "")
	w.do(t, "owner", "POST /api/v1/messages", `{"text":""}`).refused(t, http.StatusUnprocessableEntity, "body.text")
	w.do(t, "owner", "POST /api/v1/messages", `{"text":"x","txet":1}`).refused(t, http.StatusUnprocessableEntity, "txet")
	w.do(t, "owner", "POST /api/v1/messages", `{`).refused(t, http.StatusBadRequest, "")
	w.do(t, "owner", "POST /api/v1/messages", `text=x`, "Content-Type: application/x-www-form-urlencoded").
		refused(t, http.StatusUnsupportedMediaType, "")
	w.do(t, "owner", "POST /api/v1/messages", `{"text":"x","conversation":"a~b"}`).
		refused(t, http.StatusUnprocessableEntity, "conversation")
	w.do(t, "owner", "GET /api/v1/channels?limit=0", "").refused(t, http.StatusUnprocessableEntity, "query.limit")
	w.do(t, "owner", "GET /api/v1/channels?what=0", "").refused(t, http.StatusUnprocessableEntity, "what")
	w.do(t, "owner", "GET /api/v1/channels?cursor=!", "").refused(t, http.StatusBadRequest, "cursor")
	w.do(t, "owner", "GET /api/v1/channels/none", "").refused(t, http.StatusNotFound, "none")
	w.do(t, "owner", "GET /api/v1/memory", "").refused(t, http.StatusServiceUnavailable, typeDown)
	w.tool = func(*adminv1.CallToolRequest) (string, error) { panic("a bug") }
	w.do(t, "owner", "GET /api/v1/memory", "").refused(t, http.StatusInternalServerError, "log")
	w.tool = func(*adminv1.CallToolRequest) (string, error) { return "", errors.New("no such kind") }
	w.do(t, "owner", "GET /api/v1/memory", "").refused(t, http.StatusUnprocessableEntity, "no such kind")
}

func TestMe(t *testing.T) {
	t.Parallel()
	var me Me
	newWorld(t).must(t, "guest", "GET /api/v1/me", "", &me)
	if me.Name != "Cat" || me.Role != "guest" || me.Token != "g" || !slices.Equal(me.Scopes, []string{"all"}) {
		t.Errorf("got %+v", me)
	}
}

func TestOwnersLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]string{
		"/channels":              `"id":"cli_channel"`,
		"/channels/cli_channel":  `"default":true`,
		"/usage?by=model&days=1": `"name":"m"`,
		"/extensions":            `"id":"memory"`,
		"/extensions/memory":     `"readiness":"ready"`,
		"/people":                `"user_id":"u2"`,
		"/people/p2":             `"role":"member"`,
	} {
		if got := w.must(t, "owner", "GET /api/v1"+path, "", nil); !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	w.do(t, "owner", "GET /api/v1/usage?by=moon", "").refused(t, http.StatusUnprocessableEntity, "by")
	w.must(t, "owner", "POST /api/v1/extensions/memory/restart", "", nil)
	w.do(t, "owner", "POST /api/v1/extensions/none/restart", "").refused(t, http.StatusNotFound, "none")
	w.do(t, "owner", "POST /api/v1/extensions/web_channel/restart", "").refused(t, http.StatusConflict, "switchboard")
	if w.restarts != 1 {
		t.Errorf("%d restarts", w.restarts)
	}
	var changed Person
	w.must(t, "owner", "PATCH /api/v1/people/p2", `{"role":"guest"}`, &changed)
	if changed.Role != "guest" {
		t.Errorf("the role is %s", changed.Role)
	}
	w.do(t, "owner", "PATCH /api/v1/people/owner", `{"role":"guest"}`).refused(t, http.StatusUnprocessableEntity, "yourself")
	w.do(t, "owner", "PATCH /api/v1/people/none", `{"role":"guest"}`).refused(t, http.StatusNotFound, "none")
}

// ids reads all pages of a list.
func ids(t *testing.T, w *world, visitor, path string) (all []string) {
	t.Helper()
	for next := ""; ; {
		var page Page[struct {
			ID  string
			Seq int64
		}]
		w.must(t, visitor, "GET /api/v1"+path+next, "", &page)
		for _, x := range page.Items {
			if x.ID == "" {
				x.ID = fmt.Sprint(x.Seq)
			}
			all = append(all, x.ID)
		}
		if page.Next == "" {
			return all
		}
		if next = "&cursor=" + page.Next; len(all) > 1000 {
			t.Fatal("the pages do not end")
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("s%d", i)
		s := &adminv1.Session{Id: id, Agent: "chat", Channel: "cli_channel", ActiveAtUs: int64(1000 - i/3)}
		switch i {
		case 3:
			s.Channel, s.Conversation = "telegram_channel", "77"
		case 4:
			s.Within = "s3"
		case 5:
			s.Channel, s.Conversation, s.Group = "telegram_channel", "77", true
		case 6:
			s.Channel, s.Conversation = "telegram_channel", "8"
		case 7:
			s.Channel, s.Conversation, s.Thread = "web_channel", "u2", "x"
		}
		w.sessions, want = append(w.sessions, s), append(want, id)
	}
	if got := ids(t, w, "owner", "/sessions?limit=4"); !slices.Equal(got, want) {
		t.Errorf("pages: %v", got)
	}
	if got := ids(t, w, "member", "/sessions?limit=1"); !slices.Equal(got, []string{"s3", "s4", "s7"}) {
		t.Errorf("a member's: %v", got)
	}
	w.must(t, "member", "GET /api/v1/sessions/s4", "", nil)
	w.do(t, "member", "GET /api/v1/sessions/s5", "").refused(t, http.StatusNotFound, "s5")
	w.do(t, "member", "GET /api/v1/sessions/s6/entries", "").refused(t, http.StatusNotFound, "s6")
	w.do(t, "member", "DELETE /api/v1/sessions/s6", "").refused(t, http.StatusNotFound, "s6")
	for i := range 7 {
		w.history = append(w.history, &busv1.Entry{Seq: int64(i + 1), Kind: "input", Text: "x"})
	}
	if got := ids(t, w, "member", "/sessions/s3/entries?limit=3"); !slices.Equal(got, strings.Split("7 6 5 4 3 2 1", " ")) {
		t.Errorf("entries: %v", got)
	}
	w.do(t, "member", "DELETE /api/v1/sessions/s3", "").refused(t, http.StatusForbidden, "owner")
	w.must(t, "owner", "DELETE /api/v1/sessions/s3", "", nil)
	w.do(t, "owner", "GET /api/v1/sessions/s3", "").refused(t, http.StatusNotFound, "s3")
	if !slices.Equal(w.deleted, []string{"s3"}) {
		t.Errorf("deleted %v", w.deleted)
	}
}

func TestToolsAreCalledForTheVisitor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tool = func(q *adminv1.CallToolRequest) (string, error) {
		switch q.GetName() {
		case listSchedules:
			return `{"schedules":[{"id":"r1"},{"id":"r2"},{"id":"r3"}],"text":"x"}`, nil
		case listMemories, recallMemories:
			var a struct{ Offset, Limit int }
			_ = json.Unmarshal(q.GetArguments(), &a)
			all := []string{`{"id":"m1"}`, `{"id":"m2"}`, `{"id":"m3"}`}[min(a.Offset, 3):]
			n := min(a.Limit, len(all))
			return fmt.Sprintf(`{"memories":[%s],"more":%d}`, strings.Join(all[:n], ","), len(all)-n), nil
		case listTasks:
			return `{"tasks":[{"id":"t1","state":"running"}]}`, nil
		case showTask:
			return `{"id":"t1","state":"running","prompt":"p"}`, nil
		}
		return `{"id":"x","status":"done"}`, nil
	}
	for what, want := range map[string]string{
		"GET /schedules/r2": listSchedules, "POST /schedules": addSchedule + ` {"message":"x","delay_seconds":60}`,
		"PATCH /schedules/r1":       updateSchedule + ` {"id":"r1","action":"edit","message":"x"}`,
		"POST /schedules/r1/pause":  updateSchedule + ` {"id":"r1","action":"pause"}`,
		"POST /schedules/r1/resume": updateSchedule + ` {"id":"r1","action":"resume"}`,
		"DELETE /schedules/r1":      cancelSchedule + ` {"id":"r1"}`,
		"GET /memory/m3":            listMemories, "POST /memory": remember + ` {"text":"x"}`,
		"PATCH /memory/m3": remember + ` {"id":"m3","text":"x"}`, "DELETE /memory/m3": forgetMemories + ` {"ids":["m3"]}`,
		"GET /memory?query=tea&kind=open": recallMemories + ` {"kind":"open","limit":50,"query":"tea"}`,
		"GET /tasks/t1":                   showTask + ` {"id":"t1"}`, "GET /tasks?all=true": listTasks + ` {"all":true}`,
	} {
		for _, visitor := range []string{"owner", "member"} {
			method, path, _ := strings.Cut(what, " ")
			generic := strings.NewReplacer("r1", "{id}", "m3", "{id}").Replace(what)
			w.must(t, visitor, method+" "+prefix+path, bodies[generic], nil)
			q := w.calls[len(w.calls)-1]
			if got := q.GetName() + " " + string(q.GetArguments()); !strings.HasPrefix(got, want) {
				t.Errorf("%s calls %s, want %s", what, got, want)
			}
			if visitor == "owner" && q.GetPerson() != "" || visitor == "member" && (q.GetPerson() != "a2" || !q.GetHousehold()) {
				t.Errorf("%s by %s is called for %q", what, visitor, q.GetPerson())
			}
		}
	}
	for _, what := range []string{
		"GET /schedules/no", "PATCH /schedules/no", "DELETE /schedules/no", "POST /schedules/no/pause", "GET /memory/no",
		"PATCH /memory/no", "DELETE /memory/no", "GET /tasks/no", "POST /tasks/no/cancel",
	} {
		method, path, _ := strings.Cut(what, " ")
		w.do(t, "member", method+" "+prefix+path, bodies[strings.Replace(what, "no", "{id}", 1)]).
			refused(t, http.StatusNotFound, "no")
	}
	for path, want := range map[string][]string{
		"/schedules?limit=2": {"r1", "r2", "r3"}, "/memory?limit=2": {"m1", "m2", "m3"}, "/memory?query=x&limit=2": {"m1", "m2", "m3"},
	} {
		if got := ids(t, w, "owner", path); !slices.Equal(got, want) {
			t.Errorf("%s: %v", path, got)
		}
	}
	w.must(t, "owner", "POST /api/v1/schedules", `{"message":"x","task":true,"cron":"0 9 * * *"}`, nil)
	if got := string(w.calls[len(w.calls)-1].GetArguments()); got != `{"message":"x","cron":"0 9 * * *","topic":"system.agent.task"}` {
		t.Errorf("a task is scheduled with %s", got)
	}
}
