package board

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when the tests happen, a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// kernel is a kernel that knows what a test tells it, and notes what is asked of it.
type kernel struct {
	adminv1.ReadClient
	adminv1.ManageClient
	adminv1.InstallationClient
	chat.Conversations

	mu            sync.Mutex
	err           error // of all calls
	status        *adminv1.Status
	extensions    []*adminv1.Extension
	dir           *adminv1.DirectoryResponse
	people        *adminv1.PeopleResponse
	approvals     []*adminv1.Approval
	events        []*busv1.Event
	deliveries    []*adminv1.Delivery
	sessions      []*adminv1.Session
	history       []*busv1.Entry
	turns         []*adminv1.Turn
	used          []*adminv1.Usage
	asked         []*adminv1.Question
	configuration *adminv1.ConfigurationResponse
	logs          []string
	tools         map[string]string // answers by name
	refused       map[string]string // errors of tools
	offered       *adminv1.InstallResponse
	follow        chan *busv1.Event
	statuses      int      // how often the status was read
	done          []string // what was changed, in the order of the requests
}

// rows is a stream of rows.
type rows[T any] struct {
	grpc.ClientStream
	all  []T
	next func() (T, error) // after them; nil: the end
}

func (r *rows[T]) Recv() (row T, err error) {
	if len(r.all) > 0 {
		row, r.all = r.all[0], r.all[1:]
		return row, nil
	}
	if r.next != nil {
		return r.next()
	}
	return row, io.EOF
}

func (k *kernel) Status(context.Context, *adminv1.StatusRequest, ...grpc.CallOption) (*adminv1.Status, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.statuses++
	return proto.CloneOf(k.status), k.err
}

func (k *kernel) Extensions(
	context.Context, *adminv1.ExtensionsRequest, ...grpc.CallOption,
) (*adminv1.ExtensionsResponse, error) {
	return proto.CloneOf(&adminv1.ExtensionsResponse{Extensions: k.extensions}), k.err
}

func (k *kernel) Directory(
	context.Context, *adminv1.DirectoryRequest, ...grpc.CallOption,
) (*adminv1.DirectoryResponse, error) {
	return k.dir, k.err
}

func (k *kernel) People(context.Context, *adminv1.PeopleRequest, ...grpc.CallOption) (*adminv1.PeopleResponse, error) {
	return proto.CloneOf(k.people), k.err
}

func (k *kernel) Approvals(
	context.Context, *adminv1.ApprovalsRequest, ...grpc.CallOption,
) (*adminv1.ApprovalsResponse, error) {
	return &adminv1.ApprovalsResponse{Approvals: k.approvals}, k.err
}

func (k *kernel) Events(
	ctx context.Context, q *adminv1.EventsRequest, _ ...grpc.CallOption,
) (adminv1.Read_EventsClient, error) {
	if q.GetFollow() {
		return &rows[*busv1.Event]{next: func() (*busv1.Event, error) {
			select {
			case e := <-k.follow:
				return e, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}, k.err
	}
	s := &rows[*busv1.Event]{}
	for _, e := range k.events {
		if q.GetTopic() == "" || strings.HasPrefix(e.GetTopic(), strings.TrimSuffix(q.GetTopic(), "*")) {
			s.all = append(s.all, e)
		}
	}
	return s, k.err
}

func (k *kernel) Deliveries(
	context.Context, *adminv1.DeliveriesRequest, ...grpc.CallOption,
) (adminv1.Read_DeliveriesClient, error) {
	return &rows[*adminv1.Delivery]{all: k.deliveries}, k.err
}

func (k *kernel) Sessions(
	_ context.Context, q *adminv1.SessionsRequest, _ ...grpc.CallOption,
) (adminv1.Read_SessionsClient, error) {
	s := &rows[*adminv1.Session]{}
	for _, x := range k.sessions {
		if len(q.GetIds()) == 0 || strings.Contains(strings.Join(q.GetIds(), " "), x.GetId()) {
			s.all = append(s.all, x)
		}
	}
	return s, k.err
}

func (k *kernel) History(
	_ context.Context, q *adminv1.HistoryRequest, _ ...grpc.CallOption,
) (adminv1.Read_HistoryClient, error) {
	s := &rows[*busv1.Entry]{}
	for _, e := range k.history {
		if q.GetBefore() == 0 || e.GetSeq() < q.GetBefore() {
			s.all = append(s.all, e)
		}
	}
	if n := int(q.GetLimit()); n > 0 {
		s.all = s.all[max(0, len(s.all)-n):]
	}
	return s, k.err
}

func (k *kernel) Turns(context.Context, *adminv1.TurnsRequest, ...grpc.CallOption) (adminv1.Read_TurnsClient, error) {
	return &rows[*adminv1.Turn]{all: k.turns}, k.err
}

func (k *kernel) Usage(context.Context, *adminv1.UsageRequest, ...grpc.CallOption) (*adminv1.UsageResponse, error) {
	return &adminv1.UsageResponse{Rows: k.used, Currency: "EUR"}, k.err
}

func (k *kernel) Questions(
	context.Context, *adminv1.QuestionsRequest, ...grpc.CallOption,
) (*adminv1.QuestionsResponse, error) {
	return proto.CloneOf(&adminv1.QuestionsResponse{Questions: k.asked}), k.err
}

func (k *kernel) Configuration(
	context.Context, *adminv1.ConfigurationRequest, ...grpc.CallOption,
) (*adminv1.ConfigurationResponse, error) {
	return k.configuration, k.err
}

func (k *kernel) Logs(_ context.Context, q *adminv1.LogsRequest, _ ...grpc.CallOption) (*adminv1.LogsResponse, error) {
	return &adminv1.LogsResponse{Lines: k.logs}, k.err
}

// note notes a change.
func (k *kernel) note(q proto.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, _ := json.Marshal(q)
	k.done = append(k.done, fmt.Sprintf("%s %s", q.ProtoReflect().Descriptor().Name(), text))
}

func (k *kernel) Restart(
	_ context.Context, q *adminv1.RestartRequest, _ ...grpc.CallOption,
) (*adminv1.RestartResponse, error) {
	k.note(q)
	return &adminv1.RestartResponse{Restarted: []string{q.GetId(), "other"}}, k.err
}

func (k *kernel) Enable(
	_ context.Context, q *adminv1.EnableRequest, _ ...grpc.CallOption,
) (*adminv1.EnableResponse, error) {
	k.note(q)
	return &adminv1.EnableResponse{Changed: true}, k.err
}

func (k *kernel) Install(
	_ context.Context, q *adminv1.InstallRequest, _ ...grpc.CallOption,
) (*adminv1.InstallResponse, error) {
	k.note(q)
	if k.offered == nil {
		k.offered = &adminv1.InstallResponse{Id: "jotter", Version: "1.2", Hash: "h1"}
	}
	return k.offered, k.err
}

func (k *kernel) Remove(
	_ context.Context, q *adminv1.RemoveRequest, _ ...grpc.CallOption,
) (*adminv1.RemoveResponse, error) {
	k.note(q)
	return &adminv1.RemoveResponse{Data: "/home/data/" + q.GetId()}, k.err
}

func (k *kernel) Send(_ context.Context, q *adminv1.SendRequest, _ ...grpc.CallOption) (*adminv1.Sent, error) {
	k.note(q)
	return &adminv1.Sent{Status: "delivered"}, k.err
}

func (k *kernel) Approve(_ context.Context, q *adminv1.ApproveRequest, _ ...grpc.CallOption) (*adminv1.Account, error) {
	k.note(q)
	return &adminv1.Account{Name: "Boris", Channel: "telegram_channel"}, k.err
}

func (k *kernel) Revoke(
	_ context.Context, q *adminv1.RevokeRequest, _ ...grpc.CallOption,
) (*adminv1.RevokeResponse, error) {
	k.note(q)
	return &adminv1.RevokeResponse{Turns: 2}, k.err
}

func (k *kernel) SetRole(_ context.Context, q *adminv1.SetRoleRequest, _ ...grpc.CallOption) (*adminv1.Person, error) {
	k.note(q)
	return &adminv1.Person{Role: q.GetRole()}, k.err
}

func (k *kernel) Unlink(_ context.Context, q *adminv1.UnlinkRequest, _ ...grpc.CallOption) (*adminv1.Person, error) {
	k.note(q)
	return &adminv1.Person{}, k.err
}

func (k *kernel) RemovePerson(
	_ context.Context, q *adminv1.RemovePersonRequest, _ ...grpc.CallOption,
) (*adminv1.RevokeResponse, error) {
	k.note(q)
	return &adminv1.RevokeResponse{}, k.err
}

func (k *kernel) ClearPairings(
	_ context.Context, q *adminv1.ClearPairingsRequest, _ ...grpc.CallOption,
) (*adminv1.ClearPairingsResponse, error) {
	k.note(q)
	return &adminv1.ClearPairingsResponse{Cleared: 3}, k.err
}

func (k *kernel) SetHousehold(
	_ context.Context, q *adminv1.SetHouseholdRequest, _ ...grpc.CallOption,
) (*adminv1.Group, error) {
	k.note(q)
	return &adminv1.Group{Id: q.GetGroup(), Name: "Home", Household: q.GetHousehold()}, k.err
}

func (k *kernel) RevokeApprovals(
	_ context.Context, q *adminv1.RevokeApprovalsRequest, _ ...grpc.CallOption,
) (*adminv1.RevokeApprovalsResponse, error) {
	k.note(q)
	return &adminv1.RevokeApprovalsResponse{Revoked: 1}, k.err
}

func (k *kernel) Resubmit(
	_ context.Context, q *adminv1.ResubmitRequest, _ ...grpc.CallOption,
) (*adminv1.ResubmitResponse, error) {
	k.note(q)
	return &adminv1.ResubmitResponse{Deliveries: 1}, k.err
}

func (k *kernel) DeleteSession(
	_ context.Context, q *adminv1.DeleteSessionRequest, _ ...grpc.CallOption,
) (*adminv1.DeleteSessionResponse, error) {
	k.note(q)
	return &adminv1.DeleteSessionResponse{}, k.err
}

func (k *kernel) Backup(
	_ context.Context, q *adminv1.BackupRequest, _ ...grpc.CallOption,
) (*adminv1.BackupResponse, error) {
	k.note(q)
	return &adminv1.BackupResponse{Info: []byte(`{"file":"/home/backups/b.tar.gz","bytes":2048}`)}, k.err
}

func (k *kernel) Decide(
	_ context.Context, q *adminv1.DecideRequest, _ ...grpc.CallOption,
) (*adminv1.DecideResponse, error) {
	k.note(q)
	return &adminv1.DecideResponse{Extension: &adminv1.Extension{Id: q.GetId()}, Changed: true}, k.err
}

func (k *kernel) CallTool(
	_ context.Context, q *adminv1.CallToolRequest, _ ...grpc.CallOption,
) (*adminv1.ToolResult, error) {
	k.mu.Lock()
	k.done = append(k.done, fmt.Sprintf("%s %s for %q, household %v", q.GetName(), q.GetArguments(), q.GetPerson(),
		q.GetHousehold()))
	k.mu.Unlock()
	if text, is := k.refused[q.GetName()]; is {
		return &adminv1.ToolResult{Content: text, IsError: true}, k.err
	}
	answer, known := k.tools[q.GetName()]
	if !known && k.err == nil {
		return nil, fmt.Errorf("%w: there is no tool %s", contract.ErrNotFound, q.GetName())
	}
	return &adminv1.ToolResult{Content: answer}, k.err
}

// Say implements chat.Conversations.
func (k *kernel) Say(_ context.Context, v door.Visitor, m chat.Message) (chat.Line, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := "no id"
	if len(m.ID) > len("board-") {
		id = "an id"
	}
	k.done = append(k.done, fmt.Sprintf("%s says %q in %q with %s", v.Person, m.Text, m.Conversation, id))
	return chat.Line{}, k.err
}

// Follow implements chat.Conversations.
func (k *kernel) Follow(context.Context, door.Visitor, string, int64) iter.Seq2[chat.Frame, error] {
	return nil
}

func (k *kernel) Read(context.Context, door.Visitor, string, int64) error { return nil }

// The people of the tests.
var (
	anna = door.Visitor{
		Person: "owner", Account: "a1", User: "anna", Name: "Anna", Role: "owner", Login: "l1", Began: noon,
	}
	boris = door.Visitor{Person: "p2", Account: "a2", User: "boris", Name: "Boris", Role: "member", Login: "l2"}
	gus   = door.Visitor{Person: "p3", Account: "a3", User: "gus", Name: "Gus", Role: "guest", Login: "l3"}
)

// site is the board in a plain frame.
type site struct {
	*kernel
	t     *testing.T
	board *board
	mux   *http.ServeMux
}

func newSite(t *testing.T) *site {
	t.Helper()
	k := known()
	s := &site{kernel: k, t: t, mux: http.NewServeMux()}
	s.board = register(s.mux, Options{
		Read: k, Manage: k, Change: k, Chat: k, Now: func() time.Time { return noon },
		Frame: func(w http.ResponseWriter, _ *http.Request, p Page) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(p.Status)
			fmt.Fprintf(w, "<!doctype html><title>%s</title>%s", template.HTMLEscapeString(p.Title), p.Body)
		},
	})
	return s
}

// get opens a page.
func (s *site) get(v door.Visitor, path string) (status int, body string) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(door.With(s.t.Context(), v), http.MethodGet, path, nil)
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// post sends a form.
func (s *site) post(v door.Visitor, path string, form url.Values) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequestWithContext(door.With(s.t.Context(), v), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w
}

// known is a kernel with something on each page.
func known() *kernel {
	us := noon.UnixMicro()
	return &kernel{
		status: &adminv1.Status{
			Version: "1.0", Home: "/home", StartedAtUs: us, Timezone: "Europe/Berlin", StoreBytes: 2048,
			Models: []string{"openai/mini"}, Sandbox: "full", Problems: []string{"config.yaml:2: unknown key"},
			Hints: []string{"a hint"}, Limits: []string{"a limit"},
			Waiting: []*adminv1.Subscription{{
				Extension: "memory", Topic: "user.message", Deliveries: 3, InFlight: 1, HandlingSinceUs: us,
			}},
			Backup: []byte(`{"nightly":true,"next":"2026-03-05T03:00:00Z","newest":{"file":"/b","at":"2026-03-04T03:00:00Z",` +
				`"bytes":2048},"kept":7,"failure":"disk full","failed_at":"2026-03-03T03:00:00Z"}`),
		},
		extensions: []*adminv1.Extension{
			{
				Id: "jotter", Name: "Jotter", Version: "1.2", Kinds: []string{"tools"}, State: "not_allowed", Detail: "it asks",
				LastError: "exit status 1", LastErrorAtUs: us, Crash: "panic: boom\ngoroutine 1", Problem: "a problem",
				Sandbox: &adminv1.Sandbox{Level: "partial", Network: "none", Files: []string{"/data"}, Reason: "no landlock"},
				Consent: &adminv1.Consent{
					State: "asks", Code: "c1", Asks: []string{"read mail", "send mail"}, More: []string{"send mail"},
					Uses: []string{"keeps notes"}, OffersTools: true, Older: true,
				},
			},
			{Id: "mcp", Name: "MCP", State: "active", Readiness: "ready", SinceUs: us},
			{Id: "telegram_channel", Name: "Telegram", State: "failed", Detail: "no token", SinceUs: us},
			{Id: "web", Name: "Web", Builtin: true, State: "disabled", Kinds: []string{"tools"}},
		},
		dir: &adminv1.DirectoryResponse{
			DefaultChannel: "telegram_channel", DefaultAgent: "chat",
			Channels: []*adminv1.Channel{
				{Id: "telegram_channel", Name: "Telegram", State: "active", Readiness: &extensionv1.Readiness{
					State: extensionv1.Readiness_STATE_READY, Detail: "as @tea_bot",
				}},
				{Id: "slack_channel", Name: "Slack", State: "active", Readiness: &extensionv1.Readiness{
					State: extensionv1.Readiness_STATE_UNCONFIGURED, Detail: "the token is missing",
				}},
			},
		},
		people: &adminv1.PeopleResponse{
			Waiting: []*adminv1.Pairing{{
				Code: "ABCD2345", Channel: "telegram_channel", UserId: "77", Name: "Stranger", ExpiresAtUs: us,
			}},
			Groups: []*adminv1.Group{{Id: "g1", Channel: "telegram_channel", Conversation: "-100", Name: "Home"}},
			People: []*adminv1.Person{
				{Id: "owner", Name: "Anna", Role: "owner", Accounts: []*adminv1.Account{{
					Channel: "cli_channel", UserId: "anna", Id: "a0", Owner: true,
				}, {Channel: "web_channel", UserId: "anna", Id: "a1", Owner: true, ApprovedAtUs: us}}},
				{
					Id: "p2", Name: "Boris", Role: "member", Timezone: "Asia/Tokyo", Quiet: "22:00-07:00", Home: "a2",
					Accounts: []*adminv1.Account{
						{Channel: "web_channel", UserId: "boris", Id: "a2", ApprovedAtUs: us, Conversation: "boris"},
						{Channel: "telegram_channel", UserId: "22", Id: "a4", ApprovedAtUs: us, Name: "Boris B."},
					},
				},
			},
		},
		approvals: []*adminv1.Approval{{
			Agent: "chat", Tool: "core/send", Channel: "telegram_channel", Conversation: "-100", By: "Anna", AtUs: us,
		}},
		events: []*busv1.Event{
			{
				Seq: 9, Id: "e9", Topic: "user.message", Source: "telegram_channel", CreatedAtUs: us,
				Payload: []byte(`{"text":"hello there","user_name":"Boris"}`),
			},
			{
				Seq: 8, Id: "e8", Topic: "channel.send.telegram_channel", CreatedAtUs: us, Payload: []byte(`{"text":"good morning"}`),
			},
		},
		deliveries: []*adminv1.Delivery{{
			Event: "e8", Extension: "telegram_channel", State: "dead", Attempts: 5, SettledAtUs: us, Uncertain: true,
			Reason: "the bot was blocked",
		}},
		sessions: []*adminv1.Session{
			{
				Id: "s1", Agent: "chat", State: "running", Turns: 1, OpenTurns: []int64{4}, Waiting: 2, Channel: "telegram_channel",
				Conversation: "1001", ActiveAtUs: us, CreatedAtUs: us, Rows: 3,
			},
			{
				Id: "s2", Agent: "chat", State: "waiting", Channel: "web_channel", Conversation: "boris", ActiveAtUs: us, Rows: 1,
			},
		},
		history: []*busv1.Entry{
			{Seq: 1, Kind: "input", InputKind: "user", Sender: "Boris", Text: "what is the time?", Input: "e9", CreatedAtUs: us},
			{Seq: 2, Kind: "answer", Model: "mini", Text: "let me see", CreatedAtUs: us, Calls: []*busv1.Call{{
				CallId: "k1", Name: "core/clock", Arguments: []byte(`{"zone":"x"}`),
			}}},
			{Seq: 3, Kind: "result", CallId: "k1", Text: "12:00", CreatedAtUs: us},
			{Seq: 4, Kind: "note", Text: "a note", CreatedAtUs: us},
		},
		turns: []*adminv1.Turn{{Id: 4, Session: "s1", StartedAtUs: us}},
		used: []*adminv1.Usage{
			{
				Day: "2026-03-04", Agent: "chat", Model: "openai/mini", Calls: 2, InputTokens: 1300, OutputTokens: 30,
				Person: "a2", Costs: map[string]int64{"EUR": 250_000},
			},
			{Day: "2026-03-03", Agent: "scout", Model: "local/big", Calls: 1, InputTokens: 70, EstimatedCalls: 1, Person: "a0"},
		},
		asked: []*adminv1.Question{
			{
				Id: "q1", Kind: "approve", Text: "May I send it?", Asker: "chat", Call: "k2", Channel: "telegram_channel",
				AskedAtUs: us, DeadlineUs: us,
			},
			{Id: "q2", Kind: "choose", Text: "Tea or coffee?", Options: []string{"tea", "coffee"}, Asker: "chat", Channel: channel, Person: "p2"},
			{Id: "q3", Kind: "answer", Text: "What is your name?", Asker: "chat", Channel: "telegram_channel", Person: "p2"},
			{Id: "q4", Kind: "answer", Text: "Which city?", Asker: "weather", Channel: channel, Person: "owner"},
		},
		configuration: &adminv1.ConfigurationResponse{
			File: "/home/config.yaml", Text: "timezone: Europe/Berlin\nnonsense: 1\n", Problems: []string{"config.yaml:2: unknown key"},
		},
		logs: []string{
			`{"@level":"warn","@message":"slow","@module":"telegram_channel.poll","@timestamp":"2026-03-04T11:00:00Z","after":"3s"}`,
			"not json",
		},
		tools: map[string]string{
			"mcp/status": `[{"id":"github","name":"GitHub","consent":"asks","state":"inactive","tools":["list"],"permissions":` +
				`["the network"],"error":"not started"}]`,
			"mcp/allow": `{"text":"allowed"}`, "mcp/refuse": `{"text":"refused"}`,
			"memory/list_memories": `{"memories":[{"id":"m1","kind":"open","text":"buy tea","due":"2026-03-05","due_local":` +
				`"Thu 5 Mar 2026","overdue":true,"by":"Anna","created":"2026-03-01T10:00:00Z"}],"more":2,"unreadable":` +
				`[{"id":"m9","error":"bad row"}]}`,
			"memory/recall":   `{"memories":[]}`,
			"memory/remember": `{"status":"remembered","summary":"remembered: m1"}`, "memory/forget": `{"text":"Forgotten: m1"}`,
			"scheduler/list_schedules": `{"schedules":[{"id":"r4","kind":"once","state":"active","message":"kettle","timing":"once",` +
				`"next":"2026-03-05T09:00:00Z","destination":"telegram_channel","problem":"late"},` +
				`{"id":"r5","kind":"recurring","state":"paused","message":"rent","timing":"cron","destination":"x"},` +
				`{"id":"r6","kind":"recurring","state":"active","topic":"a.b","timing":"every 1 h","destination":"x"}]}`,
			"scheduler/calendar": `{"schedules":[{"id":"r4","at":"2026-03-05T10:00","due":["2026-03-05T09:00:00Z"]},` +
				`{"id":"r5","cron":"0 9 1 * *"},{"id":"r6","every_seconds":3600,"due":["2026-03-04T13:00:00Z"],"more":true}]}`,
			"scheduler/schedule_once":      `{"text":"scheduled: r7"}`,
			"scheduler/schedule_recurring": `{"text":"scheduled: r8"}`,
			"scheduler/update_schedule":    `{"text":"changed: r4"}`,
			"scheduler/cancel_schedule":    `{"text":"cancelled: r4"}`,
			"tasks/list": `{"tasks":[{"id":"t1","name":"research","agent":"scout","requester":"main","requester_id":"main",` +
				`"state":"running","begins":"find out","started_at":"2026-03-04T11:00:00Z"},{"id":"t2","name":"read","agent":` +
				`"reader","requester":"research","requester_id":"t1","state":"finished","outcome":"ok"}],"more":1}`,
			"tasks/show": `{"id":"t1","name":"research","agent":"scout","requester":"main","state":"running","prompt":"find out",` +
				`"output":"found","session":"s3"}`,
			"tasks/cancel": `{"text":"Cancelled research."}`,
			"links/list_links": `{"links":[{"from":"a","to":"b","mode":"ask","max_messages":6,"problem":"no agent b"}],"exchanges":` +
				`[{"id":"x1","initiator":"a","peer":"b","messages":2,"max_messages":6},{"id":"x2","initiator":"b","peer":"c",` +
				`"initiated_from":{"exchange":"x1"}}]}`,
			"links/show_exchange": `{"exchange":{"id":"x1","initiator":"a","peer":"b","over":true,"outcome":"concluded","summary":` +
				`"all good"},"messages":[{"from":"a","text":"hi b"}],"sessions":{"a":"s8"},"ending":"a concluded it"}`,
		},
		follow: make(chan *busv1.Event),
	}
}
