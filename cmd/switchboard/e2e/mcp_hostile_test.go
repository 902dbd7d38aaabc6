package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// running reports whether a process runs.
func running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	end := strings.LastIndexByte(string(stat), ')')
	return !strings.HasPrefix(string(stat[end:]), ") Z")
}

// mcpPIDs returns the numbers in the lines of the fake server that begin with a word.
func (w *world) mcpPIDs(id, word string) (all []int) {
	for _, line := range w.mcpLog(id) {
		if n, err := strconv.Atoi(strings.TrimPrefix(line, word+" ")); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Everything that a result may hold reaches the model as text, with files beside it.
func TestResultsOfMCPTools(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer("-noise")})
	for tool, want := range map[string][]string{
		"image":          {"Here it is.", "[image ", "[resource note://one: first note]", "[resource note://two]\nembedded"},
		"structured":     {`{"answer":42}`},
		"fail":           {"it cannot be done"},
		"get_tiny_thing": {"called getTinyThing"},
		"noise":          {"after the noise"},
	} {
		got := w.uses(p, "fake__"+tool, map[string]any{})
		for _, part := range want {
			contains(t, "the result of "+tool, got, part)
		}
	}
	got := w.uses(p, "fake__read_resource", map[string]any{})
	contains(t, "the list of resources", got, "note://one: first note")
	contains(t, "the templates", got, "note://{name}")
	got = w.uses(p, "fake__read_resource", map[string]any{"uri": "note://one"})
	contains(t, "a resource", got, "the text of note://one")
	contains(t, "the prompts", p.ask("/mcp prompt"), "fake/greet NAME [STYLE]: Greets someone.")
	contains(t, "a prompt", p.ask("/mcp prompt greet Anna"), "Greet Anna")
	contains(t, "a prompt without its argument", p.ask("/mcp prompt greet"), "needs name")
	contains(t, "the list", p.ask("/mcp"), "fake: allowed, running")
	contains(t, "what the server wrote", w.log("mcp"), "Welcome to this server!")
}

// A server that dies, hangs, or sends too much ends its own call with its name, and the
// next call starts it again. Another server and the chat go on.
func TestMisbehavingMCPServersAreContained(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, ", config: {call_timeout: 2m}", map[string]any{"fake": mcpServer(), "good": mcpServer()})
	good := w.mcpPIDs("good", "start")
	for _, c := range []struct{ tool, want string }{
		{"die", "the MCP server fake ended during the call (it ended (exit status 7): out of luck)"},
		{"big", "it sent a message of more than 16 MiB"},
		{"flood", "flooded"},
	} {
		contains(t, c.tool, w.uses(p, "fake__"+c.tool, map[string]any{}), c.want)
		if got := w.uses(p, "good__echo", map[string]any{"text": "fine"}); !strings.Contains(got, "fine") {
			t.Errorf("after %s another server answers %q", c.tool, got)
		}
	}
	if after := w.mcpPIDs("good", "start"); !slices.Equal(after, good) && len(after) > len(good)+1 {
		t.Errorf("the other server was started again: %v, %v", good, after)
	}
	if x := w.extension(w.control(), "mcp"); x.Restarts != 0 {
		t.Errorf("the extension was restarted %d times", x.Restarts)
	}
}

// A call of a server that hangs is cancelled.
func TestMCPServerThatHangs(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, ", config: {call_timeout: 2s}", map[string]any{"fake": mcpServer()})
	contains(t, "the result", w.uses(p, "fake__hang", map[string]any{}),
		"the MCP server fake did not answer within 2s, and the call was cancelled")
	w.eventually("the cancellation", func() bool {
		return slices.ContainsFunc(w.mcpLog("fake"), func(l string) bool { return strings.HasPrefix(l, "cancelled ") })
	})
	if x := w.extension(w.control(), "mcp"); x.Restarts != 0 {
		t.Errorf("the extension was restarted %d times", x.Restarts)
	}
}

// Processes of a server end with it: when it dies, when the extension is killed and when the
// kernel is killed, also those that left its process group.
func TestProcessesOfMCPServersEndWithThem(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer()})
	leak := func() {
		w.uses(p, "fake__leak", map[string]any{})
		all := append(w.mcpPIDs("fake", "leaked"), w.mcpPIDs("fake", "start")...)
		if !running(all[len(all)-1]) {
			t.Fatal("the server does not run")
		}
	}
	gone := func(after string) {
		t.Helper()
		w.eventually("the end of all processes after "+after, func() bool {
			return !slices.ContainsFunc(append(w.mcpPIDs("fake", "leaked"), w.mcpPIDs("fake", "start")...), running)
		})
	}
	leak()
	w.uses(p, "fake__die", map[string]any{})
	gone("the death of the server")
	leak()
	extension := w.extensionProcess("mcp:mcp")
	kill(extension, syscall.SIGKILL)
	gone("the death of the extension")
	w.eventually("another process", func() bool { return w.extensionProcess("mcp:mcp").pid != extension.pid })
	leak()
	_ = w.kernel.cmd.Process.Kill() // what left its group is ended by the next kernel
	<-w.kernel.ended
	w.start()
	gone("the death of the kernel")
	p = w.attach()
	w.mcpReady("fake")
	contains(t, "a call after all this", w.uses(p, "fake__echo", map[string]any{"text": "alive"}), "alive")
}

// A call that runs when the extension is killed is not repeated: its outcome is unknown.
func TestACallOfAnMCPToolIsMadeOnce(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer()})
	w.model.Queue(openaitest.CallTool("use_tool", map[string]any{"name": "mcp/fake__hang", "arguments": map[string]any{}}),
		openaitest.Say("It is unknown."))
	p.say("hang")
	p.hears(1)
	p.say("yes")
	called := func() (n int) {
		for _, l := range w.mcpLog("fake") {
			if strings.HasPrefix(l, "call hang") {
				n++
			}
		}
		return n
	}
	w.eventually("the call", func() bool { return called() == 1 })
	kill(w.extensionProcess("mcp:mcp"), syscall.SIGKILL)
	p.hears(2)
	contains(t, "the result", w.results(2), "it is unknown whether it had its effect")
	if n := called(); n != 1 {
		t.Errorf("it was called %d times", n)
	}
}

// A tool that describes itself in another way is withheld, and the owner sees both texts.
func TestAChangedMCPToolIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.mcp(map[string]any{"fake": mcpServer()})
	w.start()
	p := w.attach()
	p.hears(1)
	p.say("1")
	w.mcpReady("fake")
	w.uses(p, "fake__change", map[string]any{})
	question := p.hearsLike("has changed its tools")
	contains(t, "the question", question, "Before: Says a text again.")
	contains(t, "the question", question, "After: Says a text again, and sends it to someone else.")
	s := w.mcpStatus("fake")
	if slices.Contains(s.Tools, "mcp/fake__echo") || !strings.Contains(strings.Join(s.Problems, "\n"), "echo is withheld") {
		t.Errorf("the changed tool is offered: %+v", s)
	}
	p.say("1")
	w.eventually("the tool", func() bool { return slices.Contains(w.mcpStatus("fake").Tools, "mcp/fake__echo") })
	contains(t, "a call", w.uses(p, "fake__echo", map[string]any{"text": "again"}), "again")
}

// A server that changes a tool all the time gets five questions without an answer. An answer to
// an outdated one brings the current one.
func TestAnMCPServerThatChangesAllTheTimeAsksFiveTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.mcp(map[string]any{"fake": mcpServer("-restless"), "good": mcpServer()})
	w.start()
	w.must("extensions", "allow", "mcp/fake")
	w.must("extensions", "allow", "mcp/good")
	p := w.attach()
	w.mcpReady("good")
	lists := func() (n int) {
		for _, l := range w.mcpLog("fake") {
			if l == "listed" {
				n++
			}
		}
		return n
	}
	asked := func() (n int) { // one that is withdrawn soon may never be shown
		_, _ = fmt.Sscan(w.query(`SELECT count(*) FROM event WHERE topic = 'system.user.ask' AND
			CAST(payload AS TEXT) LIKE '%fake has changed its tools%'`)[0], &n)
		return n
	}
	w.eventually("five questions", func() bool { return asked() == 5 })
	after := lists()
	w.eventually("further changes", func() bool { return lists() > after+3 })
	if n := asked(); n != 5 {
		t.Errorf("the owner was asked %d times", n)
	}
	contains(t, "the problems", strings.Join(w.mcpStatus("fake").Problems, "\n"), "echo is withheld until you allow it")
	if open := p.ask("/questions"); strings.Count(open, "has changed its tools") != 1 {
		t.Errorf("the open questions are %q", open)
	}
	contains(t, "another server", w.uses(p, "good__echo", map[string]any{"text": "fine"}), "fine")
	p.say("1")
	w.eventually("the current question", func() bool { return asked() > 5 })
}

// Tools that cannot be offered are left out and named; the others are there.
func TestMCPToolsThatCannotBeOfferedAreNamed(t *testing.T) {
	t.Parallel()
	w, p := withServers(t, "", map[string]any{"fake": mcpServer("-broken", "-evil"), "dead": mcpServer("-dies")}, "fake")
	s := w.mcpStatus("fake")
	problems := strings.Join(s.Problems, "\n")
	for _, want := range []string{
		"no_schema is left out: its schema is invalid", "bad_schema is left out: its schema is invalid",
		"large_schema is left out: its schema has", "same_name is left out: its name is the same as that of same-name",
		"is too long: it is fake__long_long_",
	} {
		contains(t, "the problems", problems, want)
	}
	if len(s.Tools) < 18 || slices.ContainsFunc(s.Tools, func(name string) bool { return len(name)+1 > 64 }) {
		t.Errorf("the tools are %q", s.Tools)
	}
	w.eventually("the failure", func() bool { return w.mcpStatus("dead").State == "failed" })
	contains(t, "the failure", w.mcpStatus("dead").Error, "cannot find the moon")
	contains(t, "the failure in the chat", p.ask("/mcp"), "cannot find the moon")
	for _, command := range []string{"extensions list", "status", "doctor"} {
		out, _, _ := w.cli(strings.Fields(command)...)
		contains(t, "switchboard "+command, out, "cannot find the moon")
	}
	var rows []struct{ ID, State, Detail string }
	out, _, _ := w.cli("extensions", "list", "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, r := range rows {
		states[r.ID] = r.State
	}
	if states["mcp/dead"] != "failed" || states["mcp/fake"] == "" || states["mcp/fake"] == "failed" {
		t.Errorf("the states of the servers are %q and %q", states["mcp/dead"], states["mcp/fake"])
	}
	out, _, _ = w.cli("extensions", "restart", "mcp/dead")
	contains(t, "a restart", out, "dead starts again when it is needed")

	// What a tool says of itself is found by a search, and in no other place.
	w.model.Queue(openaitest.CallTool("find_tools", map[string]string{"query": "echo"}), openaitest.Say("Found."))
	p.ask("find echo")
	all := w.model.Requests()
	for _, r := range all {
		for _, m := range r.Messages {
			if m.Role == "system" && strings.Contains(fmt.Sprint(m), "IGNORE ALL PREVIOUS") {
				t.Error("the system prompt has the description of a tool")
			}
		}
	}
	contains(t, "the search", w.results(len(all)), "IGNORE ALL PREVIOUS")
}
