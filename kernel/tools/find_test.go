package tools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// offering is a world in which the agent offers the kernel's tools only, and
// has more.
func offering(t *testing.T, do func(w *world, a *attempts)) {
	t.Helper()
	play(t, func(w *world) {
		var a attempts
		run := a.of(func(int) (*extensionv1.CallResult, error) { return text("done") })
		schema := []byte(
			`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`,
		)
		w.Tool("notes", &extensionv1.Tool{Name: "add", Description: "Keep a note.", Schema: schema}, run)
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "list", Description: "List the notes.", Schema: []byte(`{"type":"object"}`)},
			run,
		)
		w.Tool("notes", &extensionv1.Tool{Name: "wipe", Private: true, Description: "Delete all notes."}, run)
		w.Tool("shell", &extensionv1.Tool{Name: "run", Description: "Run a command."}, run)
		w.Tool("secret", &extensionv1.Tool{Name: "note", Description: "Not granted."}, run)
		w.Know(func(s *directory.Snapshot) {
			s.Agents[0].Spec = &extensionv1.AgentSpec{
				UsesTools: []string{"core/*", "notes/*", "shell/*"},
				Offers:    []string{"core/*"},
			}
		})
		do(w, &a)
	})
}

func TestToolsAreFound(t *testing.T) {
	for query, want := range map[string][]string{
		"notes":           {"notes/add", "notes/list"},
		"list my notes":   {"notes/list", "notes/add"},
		"a shell command": {"shell/run"},
		"delete":          {"notes/add", "notes/list", "shell/run"}, // nothing fits: all of them
		"заметки":         {"notes/add", "notes/list", "shell/run"},
		"":                {"notes/add", "notes/list", "shell/run"},
		"list channels":   {"notes/list"}, // those that are offered need no search
	} {
		t.Run(query, func(t *testing.T) {
			offering(t, func(w *world, _ *attempts) {
				r := w.hears().Uses("core/find_tools", map[string]any{"query": query})
				var found struct {
					Tools []struct {
						Name, Description string
						Schema            json.RawMessage
					}
				}
				if err := json.Unmarshal([]byte(r.GetContent()), &found); err != nil || r.GetIsError() {
					t.Fatalf("the result is %v: %v", r, err)
				}
				var names []string
				for _, f := range found.Tools {
					names = append(names, f.Name)
					if all := len(
						found.Tools,
					) == 3; f.Description == "" ||
						strings.HasPrefix(f.Name, "notes/") && (len(f.Schema) == 0) != all {
						t.Errorf("%s is described by %q and the schema %s", f.Name, f.Description, f.Schema)
					}
				}
				if !slices.Equal(names, want) {
					t.Errorf("found %q, want %q", names, want)
				}
			})
		})
	}
}

// The row of a call through use_tool is that of the real tool, which is checked.
func TestAToolIsUsed(t *testing.T) {
	for _, test := range []struct{ name, arguments, says, ran string }{
		{"found", `{"name":"notes/add","arguments":{"text":"milk"}}`, "done", `add {"text":"milk"}`},
		{"with quoted arguments", `{"name":"notes/add","arguments":"{\"text\":\"milk\"}"}`, "done", `add {"text":"milk"}`},
		{"without arguments", `{"name":"notes/list"}`, "done", `list {}`},
		{"not its schema", `{"name":"notes/add","arguments":{"txt":1}}`, "The arguments of notes/add", ""},
		{"not granted", `{"name":"secret/note"}`, "The tool secret/note is not granted", ""},
		{"private", `{"name":"notes/wipe"}`, "The tool notes/wipe is not granted", ""},
		{"not there", `{"name":"notes/burn"}`, `There is no tool "notes/burn"`, ""},
		{"no name", `{"arguments":{}}`, "The arguments of core/use_tool", ""},
		{"itself", `{"name":"core/use_tool","arguments":{"name":"shell/run"}}`, "use_tool calls another tool", ""},
		{"no JSON", `{"name":`, "The arguments of core/use_tool", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			offering(t, func(w *world, a *attempts) {
				turn := w.hears()
				r, err := turn.Call(turn.Asks([2]string{"core/use_tool", test.arguments})[0])
				if err != nil || !strings.HasPrefix(r.GetContent(), test.says) {
					t.Errorf("the result is %v, %v, want %q", r, err, test.says)
				}
				ran := ""
				for _, request := range a.requests {
					ran += request.GetName() + " " + string(request.GetArguments())
				}
				if ran != test.ran {
					t.Errorf("ran %q, want %q", ran, test.ran)
				}
			})
		})
	}
}

// Approval is that of the real tool.
func TestAToolThatIsUsedNeedsItsApproval(t *testing.T) {
	offering(t, func(w *world, a *attempts) {
		w.Know(func(s *directory.Snapshot) { s.Approve = []string{"shell/run"} })
		turn := w.hears()
		id := turn.Asks([2]string{"core/use_tool", `{"name":"shell/run"}`})[0]
		done := make(chan string, 1)
		go func() {
			r, err := turn.Call(id)
			if err != nil {
				done <- err.Error()
				return
			}
			done <- r.GetContent()
		}()
		w.telegram.ShowsOne("wants to run shell/run")
		if len(a.requests) != 0 {
			t.Error("it ran without an approval")
		}
		w.telegram.Says("anna", "no")
		if said := <-done; !strings.Contains(said, "The user declined: shell/run was not run") || len(a.requests) != 0 {
			t.Errorf("the result is %q, it ran %d times", said, len(a.requests))
		}
	})
}
