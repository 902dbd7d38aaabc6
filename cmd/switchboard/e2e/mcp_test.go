package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// mcpServer is the entry of the fake server in mcp.json.
func mcpServer(args ...string) map[string]any {
	return map[string]any{"command": binary("mcpserver"), "args": append([]string{}, args...)}
}

// mcp writes mcp.json with servers by their names.
func (w *world) mcp(servers map[string]any) {
	w.t.Helper()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(string(text), 0o600, "mcp.json")
}

// mcpStatus is what the extension says of a server.
type mcpStatus struct {
	ID, Name, Consent, State, Error string
	Tools, Prompts, Problems        []string
}

func (w *world) mcpStatus(id string) mcpStatus {
	w.t.Helper()
	var all []mcpStatus
	out, _, code := w.cli("extensions", "servers", "--json")
	if code == 0 {
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			w.t.Fatalf("%s: %v", out, err)
		}
	}
	i := slices.IndexFunc(all, func(s mcpStatus) bool { return s.ID == id })
	if i < 0 {
		return mcpStatus{}
	}
	return all[i]
}

// mcpReady waits until a server's tools are offered.
func (w *world) mcpReady(id string) mcpStatus {
	w.t.Helper()
	var s mcpStatus
	w.eventually("the tools of "+id, func() bool {
		s = w.mcpStatus(id)
		return len(s.Tools) > 0
	})
	return s
}

// mcpLog returns the lines that the fake server wrote.
func (w *world) mcpLog(id string) []string { return w.linesOf(w.file("data", "mcp", "servers", id, "home", "log")) }

// starts counts how often the fake server was started.
func (w *world) mcpStarts(id string) (n int) {
	for _, line := range w.mcpLog(id) {
		if strings.HasPrefix(line, "start ") {
			n++
		}
	}
	return n
}

// withServers is a world whose owner allowed these servers.
func withServers(t *testing.T, config string, servers map[string]any) (*world, *person) {
	t.Helper()
	w := newWorld(t, withModel)
	var names []string
	for name := range servers {
		names = append(names, name)
	}
	w.config(fmt.Sprintf("extensions: {mcp: {allow: [%s]%s}}", strings.Join(names, ", "), config))
	w.mcp(servers)
	w.start()
	for name := range servers {
		w.mcpReady(name)
	}
	return w, w.attach()
}

// uses makes the model call a tool of a server once, which the person approves.
func (w *world) uses(p *person, tool string, arguments map[string]any) string {
	w.t.Helper()
	n := w.model.Total()
	w.model.Queue(openaitest.CallTool("use_tool", map[string]any{"name": "mcp/" + tool, "arguments": arguments}),
		openaitest.Say("That was it."))
	shown := len(p.texts())
	p.say("use " + tool)
	p.hears(shown + 1)
	if got := p.ask("yes"); got != "That was it." {
		w.t.Fatalf("after the call the terminal shows %q", got)
	}
	return w.results(n + 2)
}

// A new server starts only after the owner allowed it, once for all times. Then the
// assistant finds its tools and calls them, with approval.
func TestAnMCPServerIsUsedAfterConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.mcp(map[string]any{"fake": mcpServer()})
	w.start()
	p := w.attach()
	question := p.hears(1)
	for _, part := range []string{"fake", binary("mcpserver"), "connect to any host", "1. Allow", "2. Refuse"} {
		contains(t, "the question", question, part)
	}
	if n := w.mcpStarts("fake"); n != 0 {
		t.Fatalf("it was started %d times before the owner allowed it", n)
	}
	w.kill(w.kernel) // the question survives
	w.start()
	p = w.attach()
	p.say("1")
	w.mcpReady("fake")

	w.model.Queue(openaitest.CallTool("find_tools", map[string]string{"query": "say a text again"}),
		openaitest.CallTool("use_tool", map[string]any{"name": "mcp/fake__echo", "arguments": map[string]any{"text": "hello"}}),
		openaitest.Say("It said hello."))
	shown := len(p.texts())
	p.say("echo hello")
	contains(t, "the approval", p.hears(shown+1), "mcp/fake__echo")
	if got := p.ask("yes"); got != "It said hello." {
		t.Fatalf("the terminal shows %q", got)
	}
	if found := w.results(2); !strings.Contains(found, "mcp/fake__echo") {
		t.Errorf("the search found %q", found)
	}
	if got := w.results(3); !strings.Contains(got, "hello") {
		t.Errorf("the model was told %q", got)
	}
	w.restart()
	if s := w.mcpReady("fake"); s.Consent != "allowed" {
		t.Errorf("after a restart it is %s", s.Consent)
	}
	if got := w.attach().texts(); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "Allow it?") }) {
		t.Errorf("it was asked again: %q", got)
	}
	if violation := strings.Join(w.mcpLog("fake"), "\n"); strings.Contains(violation, "VIOLATION") {
		t.Error(violation)
	}
}

// A refused server never starts, and the command line can change that.
func TestARefusedMCPServerNeverStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.mcp(map[string]any{"fake": mcpServer()})
	w.start()
	p := w.attach()
	p.hears(1)
	p.say("2")
	w.eventually("the refusal", func() bool { return w.mcpStatus("fake").Consent == "refused" })
	w.restart()
	w.state(w.control(), "mcp", "active")
	if n := w.mcpStarts("fake"); n != 0 {
		t.Fatalf("it was started %d times", n)
	}
	contains(t, "the command", w.must("extensions", "allow", "mcp/fake"), "allowed")
	w.mcpReady("fake")
	contains(t, "the command", w.must("extensions", "refuse", "mcp/fake"), "refused")
	if s := w.mcpStatus("fake"); s.Consent != "refused" || len(s.Tools) > 0 {
		t.Errorf("after the refusal: %+v", s)
	}
	_, problem, code := w.cli("extensions", "allow", "mcp/other")
	if code == 0 || !strings.Contains(problem, "there is fake") {
		t.Errorf("an unknown server: %d %s", code, problem)
	}
}

// Without mcp.json there is no process of the extension.
func TestWithoutServersMCPCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.start()
	for _, x := range w.extensions(w.control()) {
		if x.Id == "mcp" && x.State != "disabled" {
			t.Errorf("mcp is %s", x.State)
		}
	}
	if _, err := os.Stat(w.file("data", "mcp")); err == nil {
		t.Error("it has a directory")
	}
}
