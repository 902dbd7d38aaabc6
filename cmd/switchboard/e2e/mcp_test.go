package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/home/support"
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
func (w *world) mcpLog(id string) []string {
	return w.linesOf(w.file("data", "mcp", "servers", id, "home", "log"))
}

// starts counts how often the fake server was started.
func (w *world) mcpStarts(id string) (n int) {
	for _, line := range w.mcpLog(id) {
		if strings.HasPrefix(line, "start ") {
			n++
		}
	}
	return n
}

// withServers is a world whose owner allowed these servers. It waits for the tools of some of
// them, or of all.
func withServers(t *testing.T, config string, servers map[string]any, ready ...string) (*world, *person) {
	t.Helper()
	w := newWorld(t, withModel)
	var names []string
	for name := range servers {
		names = append(names, name)
	}
	w.config(fmt.Sprintf("extensions: {mcp: {allow: [%s]%s}}", strings.Join(names, ", "), config))
	w.mcp(servers)
	w.start()
	if len(ready) == 0 {
		ready = names
	}
	for _, name := range ready {
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
	if code == 0 || !strings.Contains(problem, "which has: fake") {
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

// All mistakes of mcp.json are told at once, with their places, and the last good file stays
// in force.
func TestMistakesInMCPFileAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer()})
	w.write(`{
  // three mistakes
  "mcpServers": {
    "a": {"command": 7},
    "b": {"comand": "x", "url": "https://example.org/mcp"},
    "a": {"command": "x"},
  }
}`, 0o600, "mcp.json")
	want := []string{
		"mcp.json:4:22: command must be a text, not a number",
		`mcp.json:5:11: unknown field "comand": did you mean "command"?`,
		`mcp.json:6:5: two servers have the name "a": rename one`,
	}
	w.eventually("the mistakes", func() bool {
		out, _, _ := w.cli("status")
		return strings.Contains(out, want[2])
	})
	for _, line := range want {
		contains(t, "the status", w.must("status"), line)
	}
	out, _, code := w.cli("doctor", "--offline")
	if code == 0 {
		t.Error("the doctor finds nothing")
	}
	for _, line := range want {
		contains(t, "the doctor", out, line)
	}
	contains(t, "the last good file", w.uses(p, "fake__echo", map[string]any{"text": "still here"}), "still here")
}

// An edit of mcp.json takes effect, and comments in it change nothing.
func TestAnEditOfMCPFileTakesEffect(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer()})
	w.write(`{"servers": { // as VS Code writes it
		"fake": {"type": "stdio", "command": "`+binary("mcpserver")+`", "env": {"COLOR": "${COLOR:-blue}"}, "args": []},
		"Other Server": {"command": "`+binary("mcpserver")+`", "disabled": true},
	}}`, 0o600, "mcp.json")
	w.eventually("the edit", func() bool { return w.mcpStarts("fake") > 1 }) // another variable: it is listed again
	w.mcpReady("fake")
	contains(t, "the environment", w.uses(p, "fake__env", map[string]any{}), "COLOR=blue")
	w.write("{}", 0o600, "mcp.json")
	w.write(`{"mcpServers": {}}`, 0o600, "mcp.json")
	w.state(w.control(), "mcp", "disabled")
}

// A server sees its own directory and what its entry names, and gets no variables of others.
func TestAnMCPServerIsInASandbox(t *testing.T) {
	t.Parallel()
	if support.Detect().Landlock == 0 {
		t.Skipf("the sandbox here: %s", support.Detect())
	}
	dir := t.TempDir()
	secret, shared := filepath.Join(dir, "secret"), filepath.Join(dir, "shared")
	for _, path := range []string{secret, shared} {
		if err := os.WriteFile(path, []byte("the text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := mcpServer()
	entry["switchboard"] = map[string]any{"files": []string{shared}, "network": []string{}, "readOnly": []string{"read", "env"}}
	w := newWorld(t, withModel)
	w.env["SOME_TOKEN"] = "must not be seen"
	w.config("extensions: {mcp: {allow: [fake]}}")
	w.mcp(map[string]any{"fake": entry})
	w.start()
	w.mcpReady("fake")
	p := w.attach()
	read := func(tool string, arguments map[string]any) string { // without approval: it is known to read
		n := w.model.Total()
		w.model.Queue(openaitest.CallTool("use_tool", map[string]any{"name": "mcp/" + tool, "arguments": arguments}),
			openaitest.Say("That was it."))
		p.ask("read")
		return w.results(n + 2)
	}
	contains(t, "a file of the entry", read("fake__read", map[string]any{"path": shared}), "the text")
	for _, path := range []string{secret, w.file("config.yaml"), w.file("secrets.env"), w.file("switchboard.db")} {
		if got := read("fake__read", map[string]any{"path": path}); !strings.Contains(got, "permission denied") &&
			!strings.Contains(got, "no such file") {
			t.Errorf("%s: %q", path, got)
		}
	}
	environ := read("fake__env", map[string]any{})
	contains(t, "its home", environ, "HOME="+w.file("data", "mcp", "servers", "fake", "home"))
	for _, word := range []string{"must not be seen", openaiKey, "SWITCHBOARD_SANDBOX"} {
		if strings.Contains(environ, word) {
			t.Errorf("the environment has %q:\n%s", word, environ)
		}
	}
}

// A question of a server reaches the person whose call it is, and the answer the server. The
// time that a call may take does not run meanwhile.
func TestAnMCPServerAsksThePerson(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, ", config: {call_timeout: 1s}", map[string]any{"fake": mcpServer()})
	w.model.Queue(openaitest.CallTool("use_tool", map[string]any{"name": "mcp/fake__ask", "arguments": map[string]any{}}),
		openaitest.Say("Blue it is."))
	p.say("ask me")
	p.hears(1)
	question := p.ask("yes")
	for _, part := range []string{"The MCP server fake asks:", "> Which color?", "1. red", "2. blue", "3. Cancel"} {
		contains(t, "the question", question, part)
	}
	p.say("2")
	p.hearsLike("Blue it is.")
	contains(t, "what the server got", w.results(2), `{"action":"accept","content":{"color":"blue"}}`)
}

// A person who reads Russian is asked and answered in Russian, and answers in Russian.
func TestMCPServersInRussian(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.start()
	p := w.attach(wire.Frame{Language: "ru_RU"})
	p.ask("/help") // so that the language is known
	shown := len(p.texts())
	w.mcp(map[string]any{"fake": mcpServer()})
	question := p.hears(shown + 1)
	for _, part := range []string{
		"В mcp.json новый или изменённый сервер MCP: fake.", "Он запускает программу: " + binary("mcpserver"),
		"- соединяться с любым узлом", "Разрешить?", "1. Разрешить", "2. Отклонить",
	} {
		contains(t, "the question", question, part)
	}
	p.say("Разрешить")
	w.mcpReady("fake")
	contains(t, "the list", p.ask("/mcp"), "fake: разрешено, ")

	w.model.Queue(openaitest.CallTool("use_tool", map[string]any{"name": "mcp/fake__ask", "arguments": map[string]any{}}),
		openaitest.Say("Blue it is."))
	shown = len(p.texts())
	p.say("спроси меня")
	p.hears(shown + 1)
	contains(t, "the question of the server", p.ask("да"), "Сервер MCP fake спрашивает:", "> Which color?", "3. Отменить")
	p.say("отменить")
	p.hearsLike("Blue it is.")
	contains(t, "what the server got", w.results(w.model.Total()), `{"action":"decline"`)
}

// Of 100 tools of a server none is in a request, and the search finds the right one.
func TestTheSearchFindsOneOfManyMCPTools(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer("-tools", "100")})
	for i := range 50 {
		p.ask("/new")
		n := w.model.Total()
		name := fmt.Sprintf("mcp/fake__extra_%d", 2*i)
		w.model.Queue(openaitest.CallTool("find_tools", map[string]string{"query": fmt.Sprintf("further tool number %d", 2*i)}),
			openaitest.Say("Found it."))
		p.ask("find it")
		if found := w.results(n + 2); !strings.Contains(found, `"`+name+`"`) {
			t.Errorf("the search for %s found %s", name, found)
		}
	}
	if first := w.model.Requests()[0]; len(first.Raw) > maxFirst {
		t.Errorf("the first request has %d bytes: %s", len(first.Raw), first.Raw)
	}
}

// While mcp.json starts nothing, the command line says what is wrong with it.
func TestTheCommandLineSaysWhyThereAreNoServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.refused("there are none in", "extensions", "servers")
	w.write(`{"mcpServers": {"a": {"command": 5}, "b": {"args": ["x"]}}}`, 0o600, "mcp.json")
	w.refused("mcp.json:1:", "extensions", "servers")
	w.refused(`the server "b" has neither`, "extensions", "allow", "mcp/b")
}
