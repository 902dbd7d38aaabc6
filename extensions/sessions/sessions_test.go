package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	sdktest.Conformance(t, New, sdktest.Options{Manifest: "../../manifests/sessions.yaml"})
}

// Times are in the zone of the person.
func TestTimesInTheZoneOfThePerson(t *testing.T) {
	t.Parallel()
	k := &kernel{rows: []*busv1.Entry{{Kind: contract.EntryAnswer, Seq: 1, Text: "hi"}}}
	c := sdk.ToolCall{Session: "s1", Arguments: json.RawMessage(`{"session_id":"s1"}`), Location: time.FixedZone("there", 9*3600)}
	for _, tool := range []func(context.Context, sdk.ToolCall) (sdk.ToolResult, error){
		(&reader{sessions: k, channels: k, location: time.UTC}).list, (&reader{sessions: k, channels: k, location: time.UTC}).get,
	} {
		if got, err := tool(t.Context(), c); err != nil || !strings.Contains(got.Content, "1970-01-01T09:00:00+09:00") ||
			strings.Contains(got.Content, "00:00:00Z") {
			t.Errorf("%s, %v", got.Content, err)
		}
	}
}

// kernel has one session of many rows.
type kernel struct {
	kernelv1.SessionsClient
	rows []*busv1.Entry
}

func (k *kernel) List(
	_ context.Context,
	r *kernelv1.ListSessionsRequest,
	_ ...grpc.CallOption,
) (*kernelv1.ListSessionsResponse, error) {
	return &kernelv1.ListSessionsResponse{Sessions: []*kernelv1.Session{
		{Id: "s1", Agent: "orchestrator", Key: "chan", State: "idle", HistorySeq: int64(len(k.rows)), Channel: "telegram"},
		{Id: "s2", Agent: "helper", Key: "task:t1:s1:tidy", Title: "task tidy for main", State: "running"},
		{Id: "s3", Agent: "helper", Key: "job:helper:nightly", Title: "job nightly", State: "waiting"},
		{Id: "s4", Agent: "a", Key: "mine", State: "idle"},
	}[:map[bool]int{true: 1, false: 4}[r.GetSession() != ""]]}, nil
}

func (k *kernel) History(
	_ context.Context,
	r *kernelv1.HistoryRequest,
	_ ...grpc.CallOption,
) (*kernelv1.HistoryResponse, error) {
	if r.GetSession() != "s1" {
		return nil, status.Error(codes.NotFound, "there is no session "+r.GetSession())
	}
	end := len(k.rows)
	if before := int(r.GetBeforeSeq()); before > 0 {
		end = before - 1
	}
	return &kernelv1.HistoryResponse{Entries: k.rows[max(0, end-int(r.GetLimit())):end]}, nil
}

func (k *kernel) Channels(context.Context) ([]*kernelv1.Channel, error) {
	return []*kernelv1.Channel{{Id: "telegram", Name: "Telegram"}}, nil
}

func call(
	t *testing.T,
	tool func(context.Context, sdk.ToolCall) (sdk.ToolResult, error),
	arguments string,
	into any,
) string {
	t.Helper()
	r, err := tool(t.Context(), sdk.ToolCall{Session: "s1", Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	if err := json.Unmarshal([]byte(r.Content), into); err != nil {
		t.Fatal(err)
	}
	return r.Content
}

func TestSessionsAreNamedInWords(t *testing.T) {
	t.Parallel()
	k := &kernel{}
	var got struct{ Sessions []row }
	call(t, (&reader{sessions: k, channels: k, location: time.UTC}).list, `{}`, &got)
	names := make([]string, 0, len(got.Sessions))
	for _, s := range got.Sessions {
		names = append(names, fmt.Sprintf("%s %s %q own:%t %q", s.ID, s.Kind, s.Name, s.Own, s.Channel))
	}
	want := []string{
		`s1 chat "conversation s1" own:true "Telegram"`, `s2 task "task tidy for main" own:false ""`,
		`s3 job "job nightly" own:false ""`, `s4 other "mine" own:false ""`,
	}
	if !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}

func TestATranscriptIsReadInPages(t *testing.T) {
	t.Parallel()
	k := &kernel{}
	for i := range 20 {
		k.rows = append(
			k.rows,
			&busv1.Entry{Kind: contract.EntryInput, InputKind: "user", Sender: "boris", Text: fmt.Sprint("message ", i)},
			&busv1.Entry{
				Kind:  contract.EntryAnswer,
				Calls: []*busv1.Call{{CallId: "c1", Name: "notes/add", Arguments: []byte(`{"n":1}`)}},
			},
			&busv1.Entry{Kind: contract.EntryResult, CallId: "c1", Text: strings.Repeat("x", 2000)},
			&busv1.Entry{Kind: contract.EntryAnswer, Text: strings.Repeat("ы", 10_000*(i%2)) + fmt.Sprint("answer ", i)},
		)
	}
	for i, e := range k.rows {
		e.Seq = int64(i + 1)
	}
	r := &reader{sessions: k, channels: k, location: time.UTC}
	var seqs []int64
	for before := int64(0); before > 0 || seqs == nil; {
		arguments := `{"session_id":"s1","limit":25}`
		if before > 0 {
			arguments = fmt.Sprintf(`{"session_id":"s1","limit":25,"before":%d}`, before)
		}
		var p page
		content := call(t, r.get, arguments, &p)
		if len(content) > contract.MaxToolResult || len(p.Transcript) == 0 || p.ID != "s1" {
			t.Fatalf("%d bytes, %d rows of %s", len(content), len(p.Transcript), p.ID)
		}
		var these []int64
		for _, row := range p.Transcript {
			these = append(these, row.Seq)
			switch row.Kind {
			case contract.EntryResult:
				if len(row.Text) > 600 || !strings.HasSuffix(row.Text, "[cut: 2000 bytes in all]") || row.CallID != "c1" {
					t.Errorf("%+v", row)
				}
			case contract.EntryInput:
				if row.Of != "user" || row.From != "boris" {
					t.Errorf("%+v", row)
				}
			}
		}
		seqs, before = append(these, seqs...), p.Before
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			t.Fatalf("the rows are %v", seqs)
		}
	}
	if len(seqs) != 80 {
		t.Errorf("%d rows of 80", len(seqs))
	}
	if _, err := r.get(
		t.Context(),
		sdk.ToolCall{Arguments: json.RawMessage(`{"session_id":"s99"}`)},
	); err == nil ||
		!strings.Contains(err.Error(), "there is no session s99") {
		t.Errorf("a session that does not exist: %v", err)
	}
}
