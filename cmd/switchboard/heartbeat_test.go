package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// heartbeatKernel is a kernel whose heartbeat the test plays.
type heartbeatKernel struct {
	adminv1.ReadClient
	adminv1.ManageClient
	says    func(ctx context.Context) (*adminv1.ToolResult, error)
	reached map[string]admin.Reach // by dedupe key
	fails   error                  // of what became of events
}

func (k heartbeatKernel) client() *admin.Client { return &admin.Client{ReadClient: k, ManageClient: k} }

func (k heartbeatKernel) CallTool(ctx context.Context, q *adminv1.CallToolRequest,
	_ ...grpc.CallOption) (*adminv1.ToolResult, error) {
	if q.GetName() != "heartbeat/figures" || string(q.GetArguments()) != "{}" {
		return nil, fmt.Errorf("called %s with %s", q.GetName(), q.GetArguments())
	}
	return k.says(ctx)
}

// Events knows the escalations, each the first of a chain, and what was sent
// right after it.
func (k heartbeatKernel) Events(_ context.Context, q *adminv1.EventsRequest,
	_ ...grpc.CallOption) (adminv1.Read_EventsClient, error) {
	switch r := k.reached[q.GetDedupeKey()]; {
	case q.GetDedupeKey() != "" && q.GetSource() != "heartbeat":
		return nil, fmt.Errorf("asked for %+v", q)
	case k.fails != nil:
		return nil, k.fails
	case r.Event != "":
		return &rowStream[busv1.Event]{rows: []*busv1.Event{{Id: r.Event, Seq: 12, CorrelationId: r.Event}}}, nil
	case q.GetLimit() == 1:
		return &rowStream[busv1.Event]{rows: []*busv1.Event{{Id: "e99", Seq: 99}}}, nil
	case k.delivered(q.GetCorrelationId()):
		return &rowStream[busv1.Event]{rows: []*busv1.Event{{Id: "e14", Seq: 14}}}, nil
	}
	return &rowStream[busv1.Event]{}, nil
}

// Deliveries knows what was sent.
func (k heartbeatKernel) Deliveries(_ context.Context, q *adminv1.DeliveriesRequest,
	_ ...grpc.CallOption) (adminv1.Read_DeliveriesClient, error) {
	s := &rowStream[adminv1.Delivery]{}
	if slices.Contains(q.GetEvents(), "e14") {
		s.rows = append(s.rows, &adminv1.Delivery{Event: "e14", State: "done", ProviderId: "7"})
	}
	return s, nil
}

func (k heartbeatKernel) delivered(event string) bool {
	for _, r := range k.reached {
		if r.Event == event {
			return r.Delivered
		}
	}
	return false
}

// rowStream is a stream of some rows.
type rowStream[T any] struct {
	grpc.ClientStream
	rows []*T
}

func (s *rowStream[T]) Recv() (*T, error) {
	if len(s.rows) == 0 {
		return nil, io.EOF
	}
	row := s.rows[0]
	s.rows = s.rows[1:]
	return row, nil
}

func says(content string, isError bool) func(context.Context) (*adminv1.ToolResult, error) {
	return func(context.Context) (*adminv1.ToolResult, error) {
		return &adminv1.ToolResult{Content: content, IsError: isError}, nil
	}
}

func heartbeatIs(state string) []*adminv1.Extension {
	return []*adminv1.Extension{{Id: "agent", State: "active"}, {Id: "heartbeat", State: state}}
}

func TestAskHeartbeat(t *testing.T) {
	t.Parallel()
	k := heartbeatKernel{
		says: says(`{"every": "1d12h", "runs": 9, "skipped": {"nothing": 4}, "escalations": 3, "last_result": "noop", "recent": [
			{"key": "beat:e1", "at": "2026-11-20T08:00:00Z", "reason": "too old"},
			{"key": "beat:e2", "at": "2026-11-20T09:00:00Z", "reason": "the kettle"},
			{"key": "beat:e3", "at": "2026-11-20T10:00:00Z", "reason": "the stove"}]}`, false),
		reached: map[string]admin.Reach{"beat:e2": {Event: "e12"}, "beat:e3": {Event: "e13", Delivered: true}},
	}
	h, err := askHeartbeat(t.Context(), k.client(), heartbeatIs("active"))
	want := &beats{
		EverySeconds: 36 * 3600, Runs: 9, Skipped: map[string]int64{"nothing": 4}, Escalations: 3, LastResult: "noop",
		Followed: 2, Deliveries: 1,
		Undelivered: []escalation{{Event: "e12", At: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Reason: "the kettle"}},
	}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, %v, want %+v", h, err, want)
	}
	k.fails = errors.New("the store is closed")
	if _, err := askHeartbeat(t.Context(), k.client(), heartbeatIs("active")); err == nil ||
		!strings.Contains(err.Error(), "the store is closed") {
		t.Errorf("when nobody knows what became of it: %v", err)
	}
}

// Whatever state the heartbeat is in, status ends soon and says what is known.
func TestHeartbeatThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context) (*adminv1.ToolResult, error) {
		<-ctx.Done()
		return &adminv1.ToolResult{}, ctx.Err()
	}
	never := func(context.Context) (*adminv1.ToolResult, error) {
		t.Error("it was asked")
		return &adminv1.ToolResult{}, nil
	}
	for name, tc := range map[string]struct {
		extensions []*adminv1.Extension
		says       func(context.Context) (*adminv1.ToolResult, error)
		want       string // what status says; empty: nothing
	}{
		"there is none": {nil, never, ""},
		"switched off":  {heartbeatIs(stateDisabled), never, ""},
		"starting":      {heartbeatIs("starting"), never, "Heartbeat: no answer: it is starting"},
		"crashed":       {heartbeatIs("backing_off"), never, "Heartbeat: no answer: it is backing off"},
		"a bad file":    {heartbeatIs(stateInvalid), never, "Heartbeat: no answer: it is invalid"},
		"it hangs":      {heartbeatIs("active"), hangs, "Heartbeat: no answer: no answer within 3s"},
		"it fails":      {heartbeatIs("active"), says("read the state: no", true), "Heartbeat: no answer: read the state: no"},
		"nonsense": {heartbeatIs("active"), says("nonsense", false),
			"Heartbeat: no answer: read the answer of heartbeat/figures"},
		"it is new": {heartbeatIs("active"), says(`{"every": "10m", "recent": []}`, false), "Heartbeat: hasn't run yet."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h, err := askHeartbeat(t.Context(), heartbeatKernel{says: tc.says}.client(), tc.extensions)
				if took := time.Since(began); took > heartbeatTimeout {
					t.Errorf("it took %s", took)
				}
				problem := ""
				if err != nil {
					problem = message(err)
				}
				var out bytes.Buffer
				(&printer{w: &out}).heartbeat(h, problem)
				if got := out.String(); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("status says %q, not %q", got, tc.want)
				}
			})
		})
	}
}

func TestDoctorOnTheHeartbeat(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := now.Add(-d); return &x }
	sent := func(n int, age time.Duration) escalation {
		return escalation{Event: fmt.Sprintf("e%d", n), At: *at(age), Reason: "the kettle"}
	}
	var many []escalation
	for i := range 8 {
		many = append(many, sent(i+1, 20*time.Hour-time.Duration(i)*time.Hour))
	}
	for name, tc := range map[string]struct {
		h    *beats
		want []string // level and a part of the text or hint
	}{
		"there is none": {nil, nil},
		"healthy": {&beats{EverySeconds: 600, LastRun: at(10 * time.Minute), Escalations: 2, Followed: 2,
			Deliveries: 2}, []string{"ok 2 of the last 2"}},
		"on its way": {&beats{LastRun: at(0), Undelivered: []escalation{sent(7, time.Hour)}}, []string{"ok "}},
		"an hour and a bit": {
			&beats{LastRun: at(0), Undelivered: []escalation{sent(7, time.Hour+time.Second)}},
			[]string{"warning `switchboard trace e7`"},
		},
		"many": {&beats{LastRun: at(0), Undelivered: many}, []string{
			"warning trace e4`", "warning trace e5`", "warning trace e6`", "warning trace e7`", "warning trace e8`",
			"warning 3 earlier escalations",
		}},
		"it has stopped": {&beats{EverySeconds: 600, LastRun: at(32 * time.Minute)},
			[]string{"warning has not run since", "ok "}},
		"it has never run":  {&beats{EverySeconds: 60}, []string{"warning has not run since", "ok "}},
		"it has yet to run": {&beats{EverySeconds: 7200}, []string{"ok "}},
		"a problem":         {&beats{LastRun: at(0), Problem: "no model"}, []string{"note no model", "ok "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &diagnosis{}
			d.heartbeat(tc.h, now.Add(-3*time.Hour), now)
			if len(d.findings) != len(tc.want) {
				t.Fatalf("findings: %+v", d.findings)
			}
			for i, f := range d.findings {
				level, part, _ := strings.Cut(tc.want[i], " ")
				if f.Level != level || !strings.Contains(f.Text+f.Hint, part) {
					t.Errorf("finding %d is %+v, not %s", i+1, f, tc.want[i])
				}
			}
		})
	}
}
