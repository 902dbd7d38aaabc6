package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/session"
)

type sessionRow struct {
	ID, Agent, Kind, Channel, State string
	Group, Own                      bool
	CreatedAt                       time.Time `json:"created_at"`
	ActiveAt                        time.Time `json:"active_at"`
	Memory                          []string
	Rows                            int64
}

type sessionPage struct {
	sessionRow
	Transcript []struct {
		Seq              int64
		Kind, From, Text string
		Of               string `json:"input_kind"`
		Calls            []struct{ ID, Tool, Arguments string }
		CallID           string `json:"call_id"`
		IsError          bool   `json:"is_error"`
	}
	Before int64
}

// reads grants the orchestrator the tools that read sessions.
func (w *world) reads() {
	w.Know(func(s *directory.Snapshot) {
		for i := range s.Agents {
			s.Agents[i].Spec = &extensionv1.AgentSpec{Model: "default", UsesTools: []string{"*"}, Memory: []string{"personal"}}
			if s.Agents[i].ID == "orchestrator" {
				s.Agents[i].Spec.UsesTools = []string{"*", "core/list_sessions", "core/get_session"}
			}
		}
	})
}

func TestSessionsAreListedWithoutAddresses(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		w.telegram.Admits("anna", "boris")
		w.reads()
		w.telegram.Reports(contract.UserMessage{UserID: "boris", UserName: "Boris B.", ConversationID: "4711", ThreadID: "7", Text: "hello"})
		boris := w.orchestrator.Hears("hello")
		w.Emits(contract.TopicAgentBackground, contract.AgentBackground{Prompt: "tidy", AgentID: "helper", Name: "nightly"})
		helper.Dies()
		w.Wait(time.Hour)
		turn := w.hears()
		began := time.Now()
		r := turn.Uses("core/list_sessions", map[string]any{})
		if r.GetIsError() {
			t.Fatal(r)
		}
		for _, address := range []string{"4711", "boris", "anna", "chan:", "nightly", boris.Input.ReplyTo} {
			if strings.Contains(r.GetContent(), address) {
				t.Errorf("%q stands in %s", address, r.GetContent())
			}
		}
		rows := read[struct{ Sessions []sessionRow }](t, r).Sessions
		var got []string
		for _, s := range rows {
			got = append(got, fmt.Sprintf("%s %s %s %q %s %v own:%t", s.ID, s.Agent, s.Kind, s.Channel, s.State, s.Memory, s.Own))
		}
		want := []string{
			`s3 orchestrator chat "Telegram" running [personal] own:true`,
			`s1 orchestrator chat "Telegram" running [personal] own:false`,
			`s2 helper job "" waiting [personal] own:false`,
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the sessions are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if rows[0].ID != "s3" || began.Sub(rows[0].CreatedAt) > time.Second || rows[0].ActiveAt.Before(rows[1].ActiveAt) {
			t.Errorf("the first is %+v", rows[0])
		}
		boris.Answers("hi")
		turn.Answers("done")
		turn = w.hears()
		r = turn.Uses("core/list_sessions", map[string]any{"agent": "orchestrator", "limit": 5})
		for _, s := range read[struct{ Sessions []sessionRow }](t, r).Sessions {
			if s.Agent != "orchestrator" || (s.State == "idle") == s.Own {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestATranscriptIsReadInPages(t *testing.T) {
	play(t, func(w *world) {
		w.telegram.Admits("anna", "boris")
		w.reads()
		w.Tool("notes", &extensionv1.Tool{Name: "add"}, new(attempts).of(func(int) (*extensionv1.CallResult, error) { return text(strings.Repeat("x", 2000)) }))
		for i := range 20 {
			w.telegram.Says("boris", fmt.Sprint("message ", i))
			turn := w.orchestrator.Hears(fmt.Sprint("message ", i))
			turn.Uses("notes/add", map[string]int{"n": i})
			turn.Answers(fmt.Sprint("answer ", i))
		}
		w.telegram.Sends()
		reader := w.hears()
		var seqs []int64
		var texts []string
		for before, pages := int64(0), 0; before > 0 || pages == 0; pages++ {
			arguments := map[string]any{"session_id": "s1", "limit": 25}
			if before > 0 {
				arguments["before"] = before
			}
			r := reader.Uses("core/get_session", arguments)
			if r.GetIsError() || len(r.GetContent()) > contract.MaxToolResult {
				t.Fatalf("%d bytes: %v", len(r.GetContent()), r)
			}
			for _, address := range []string{"chan:", `"boris:`, w.Session("orchestrator", "chan:telegram:boris").OutboundTarget} {
				if strings.Contains(r.GetContent(), address) {
					t.Errorf("%q stands in %.300s", address, r.GetContent())
				}
			}
			p := read[sessionPage](t, r)
			if p.ID != "s1" || p.State != "idle" || p.Rows != 80 || p.Channel != "Telegram" || len(p.Transcript) > 25 {
				t.Fatalf("page %d is %+v with %d rows", pages, p.sessionRow, len(p.Transcript))
			}
			var page []int64
			for _, row := range p.Transcript {
				page = append(page, row.Seq)
				texts = append(texts, row.Text)
				switch row.Kind {
				case "answer":
					if len(row.Calls) == 1 && (row.Calls[0].Tool != "notes/add" || !strings.HasPrefix(row.Calls[0].Arguments, `{"n":`)) {
						t.Errorf("%+v", row)
					}
				case "result":
					if len(row.Text) > 600 || !strings.HasSuffix(row.Text, "[cut: 2000 bytes in all]") || row.CallID == "" {
						t.Errorf("%+v", row)
					}
				case "input":
					if row.Of != "user" || row.From != "boris" {
						t.Errorf("%+v", row)
					}
				}
			}
			seqs = append(page, seqs...)
			before = p.Before
		}
		for i, seq := range seqs {
			if seq != int64(i+1) {
				t.Fatalf("the rows are %v", seqs)
			}
		}
		if len(seqs) != 80 || !slices.Contains(texts, "message 0") || !slices.Contains(texts, "answer 19") {
			t.Errorf("%d rows", len(seqs))
		}
		for arguments, says := range map[string]string{
			`{"session_id":"s99"}`: `there is no session "s99"`, `{"session_id":"telegram"}`: `there is no session`, `{"session_id":"s1","limit":0}`: "do not fit", `{}`: "do not fit",
		} {
			if r := reader.Uses("core/get_session", json.RawMessage(arguments)); !r.GetIsError() || !strings.Contains(r.GetContent(), says) {
				t.Errorf("%s: %v", arguments, r)
			}
		}
	})
}

// However large its rows are, a page fits.
func TestALargeTranscriptFits(t *testing.T) {
	play(t, func(w *world) {
		w.reads()
		for i := range 15 {
			w.telegram.Says("anna", fmt.Sprint(i, strings.Repeat("\"", 10_000)))
			w.orchestrator.HearsNext().Answers(strings.Repeat("ы", 10_000))
		}
		r := w.hears().Uses("core/get_session", map[string]string{"session_id": "s1"})
		if p := read[sessionPage](t, r); len(r.GetContent()) > contract.MaxToolResult || len(p.Transcript) < 2 || p.Before == 0 {
			t.Errorf("%d bytes with %d rows, before %d", len(r.GetContent()), len(p.Transcript), p.Before)
		}
	})
}

func TestAGroupSeesItsOwnSessionOnly(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		w.reads()
		w.Know(func(s *directory.Snapshot) { s.Agents[0].Spec = s.Agents[1].Spec }) // the helper reads as well
		w.hears().Answers("a secret")
		w.telegram.Reports(contract.UserMessage{UserID: "anna", UserName: "anna", ConversationID: "family", Group: true, Text: "go"})
		turn := w.orchestrator.Hears("go")
		_, result := delegates(turn, "helper", "look")
		task := helper.Hears("look") // works for the group
		for _, reader := range []*kerneltest.Turn{task, turn} {
			rows := read[struct{ Sessions []sessionRow }](t, reader.Uses("core/list_sessions", map[string]any{})).Sessions
			if len(rows) != 1 || !rows[0].Own || !rows[0].Group {
				t.Errorf("the sessions are %+v", rows)
			}
			if r := reader.Uses("core/get_session", map[string]string{"session_id": rows[0].ID}); r.GetIsError() {
				t.Errorf("its own: %v", r)
			}
			for _, id := range []string{"s1", "s99"} {
				r := reader.Uses("core/get_session", map[string]string{"session_id": id})
				if !r.GetIsError() || !strings.Contains(r.GetContent(), "others read along") || strings.Contains(r.GetContent(), "secret") {
					t.Errorf("%s: %v", id, r)
				}
			}
			if reader == task {
				task.Answers("")
				w.result(result)
			}
		}
	})
}

func TestSessionsAreReadByWhoIsGrantedItByName(t *testing.T) {
	play(t, func(w *world) {
		turn := w.hears()
		for _, tool := range []string{"core/list_sessions", "core/get_session"} {
			r := turn.Uses(tool, map[string]string{"session_id": "s1"})
			if !r.GetIsError() || !strings.Contains(r.GetContent(), `lacks "uses_tools: [`+tool+`]"`) {
				t.Errorf("%s by a wildcard: %v", tool, r)
			}
		}
		extension := &bus.Actor{ID: "console", Tools: []string{"core/list_sessions"}}
		if _, err := w.Tools.Ask(w.T.Context(), extension, nil, "core/get_session", []byte(`{"session_id":"s1"}`)); !errors.Is(err, contract.ErrDenied) {
			t.Errorf("an extension without the grant: %v", err)
		}
		r, err := w.Tools.Ask(w.T.Context(), extension, nil, "core/list_sessions", nil)
		if err != nil || len(read[struct{ Sessions []sessionRow }](t, r).Sessions) != 1 {
			t.Errorf("an extension with the grant: %v, %v", r, err)
		}
	})
}

func TestTheStateOfASession(t *testing.T) {
	play(t, func(w *world) {
		state := func() session.State {
			t.Helper()
			s := w.Session("orchestrator", "chan:telegram:anna")
			var state session.State
			w.Read(func(r journal.Reader) (err error) {
				state, err = w.Sessions.State(r, w.Bus, s)
				return err
			})
			return state
		}
		check := func(when string, want session.State) {
			t.Helper()
			if got := state(); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		turn := w.hears()
		check("a message that the agent has", session.State{Name: "running", Turns: 1})
		turn.Asks([2]string{"core/list_channels", "{}"})
		check("a turn that has begun", session.State{Name: "running", Turns: 1})
		w.telegram.Says("anna", "more")
		check("with a message behind it", session.State{Name: "running", Turns: 1, Waiting: 1})
		w.orchestrator.Dies()
		check("without its agent", session.State{Name: "waiting", Turns: 1, Waiting: 1})
		w.orchestrator.Starts()
		w.Wait(time.Minute)
		turn = w.orchestrator.Hears("go")
		check("taken up again", session.State{Name: "running", Turns: 1, Waiting: 1})
		turn.Answers("done")
		w.orchestrator.Hears("more").Answers("done, too")
		check("at rest", session.State{Name: "idle"})
		w.orchestrator.Stops()
		w.telegram.Says("anna", "still there?")
		check("with a message for nobody", session.State{Name: "waiting", Waiting: 1})
	})
}
