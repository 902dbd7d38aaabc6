package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// allowClaude lets an MCP client use some tools.
const allowClaude = `mcp:
  clients:
    claude: {tools: [core/list_channels, core/send_to_channel, core/ask_user, memory/*, scheduler/*, tasks/list]}
    reader: {}
`

// mcpClient is a client of the real binary over its standard streams.
type mcpClient struct {
	*mcp.ClientSession
	w        *world
	changed  chan struct{} // the tools
	progress chan string
}

// client connects as a client of the configuration.
func (w *world) client(name, version string) *mcpClient {
	w.t.Helper()
	c := &mcpClient{w: w, changed: make(chan struct{}, 100), progress: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "somebody else", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
			select {
			case c.progress <- p.Params.Message:
			default:
			}
		},
	})
	session, err := client.Connect(w.ctx(), &mcp.CommandTransport{Command: w.command("mcp", "--client", name)},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatalf("connect as %s with protocol %s: %v", name, version, err)
	}
	c.ClientSession = session
	w.t.Cleanup(func() { _ = session.Close() })
	return c
}

// tools are the names of the tools that the client sees, sorted.
func (c *mcpClient) tools() (names []string) {
	c.w.t.Helper()
	all, err := c.ListTools(c.w.ctx(), nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	for _, tool := range all.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// try calls a tool and returns the text of its result.
func (c *mcpClient) try(name string, arguments any) (text string, isError bool) {
	c.w.t.Helper()
	result, err := c.CallTool(c.w.ctx(), &mcp.CallToolParams{
		Name: name, Arguments: arguments, Meta: mcp.Meta{"progressToken": "p"},
	})
	if err != nil {
		return err.Error(), true
	}
	for _, part := range result.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	return text, result.IsError
}

// does calls a tool that has to work.
func (c *mcpClient) does(name string, arguments any) string {
	c.w.t.Helper()
	text, isError := c.try(name, arguments)
	if isError {
		c.w.t.Fatalf("%s: %s", name, text)
	}
	return text
}

// called are the tools of a client that are recorded.
func (w *world) called(client string) (tools []string) {
	w.t.Helper()
	out := w.must("events", "tail", "--json", "-n", "200")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "mcp_server.called") {
			var e struct{ Payload struct{ Client, Tool string } }
			if json.Unmarshal([]byte(line), &e) == nil && e.Payload.Client == client {
				tools = append(tools, e.Payload.Tool)
			}
		}
	}
	return tools
}

func TestMCPClientUsesTheAssistant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.write(w.text("config.yaml")+"\n"+allowClaude, 0o600, "config.yaml")
	w.start()
	w.telegramReady()
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		c := w.client("claude", version)
		tools := c.tools()
		for _, name := range []string{
			"list_channels", "send_to_channel", "ask_user", "memory__recall", "memory__remember", "scheduler__schedule_once",
			"scheduler__cancel_schedule", "tasks__list",
		} {
			if !slices.Contains(tools, name) {
				t.Errorf("%s: %s is missing in %v", version, name, tools)
			}
		}
		for _, name := range []string{"memory__forget_all", "list_agents", "tasks__push", "mcp_server__call", "find_tools"} {
			if slices.Contains(tools, name) {
				t.Errorf("%s: %s is in %v", version, name, tools)
			}
		}
		contains(t, "list_channels", c.does("list_channels", nil), `"telegram_channel"`, `"ready"`)
		text := "protocol " + version
		contains(t, "send_to_channel", c.does("send_to_channel", map[string]any{
			"channel_id": "telegram_channel", "text": text,
		}), `"delivered"`)
		all := w.telegram.Messages(anna)
		if got := all[len(all)-1].Text; got != "claude (MCP): "+text {
			t.Errorf("Anna reads %q", got)
		}
		c.does("memory__remember", map[string]any{"text": "the " + version + " kettle is blue"})
		contains(t, "recall", c.does("memory__recall", map[string]any{"query": version}), "kettle is blue")
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(c.does("scheduler__schedule_once", map[string]any{
			"message": "feed the cat", "delay_seconds": 7200,
		})), &made); err != nil || made.ID == "" {
			t.Fatalf("the reminder: %+v, %v", made, err)
		}
		contains(t, "the schedules", c.does("scheduler__list_schedules", nil), made.ID, "feed the cat")
		c.does("scheduler__cancel_schedule", map[string]any{"id": made.ID})
		if got, isError := c.try("memory__forget_all", map[string]any{}); !isError {
			t.Errorf("a tool that is not granted: %s", got)
		}
		if got, isError := c.try("send_to_channel", map[string]any{"channel_id": "telegram_channel"}); !isError ||
			!strings.Contains(got, "nothing was sent") {
			t.Errorf("without a text: %s", got)
		}
		if got, isError := c.try("memory__recall", map[string]any{"query": 7}); !isError || got == "" {
			t.Errorf("a wrong argument: %s", got)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: close: %v", version, err)
		}
	}
	for _, tool := range []string{"core/send_to_channel", "memory/remember", "scheduler/schedule_once"} {
		if !slices.Contains(w.called("claude"), tool) {
			t.Errorf("%s is not recorded in %v", tool, w.called("claude"))
		}
	}
	contains(t, "the log", w.must("logs", "mcp_server"), "claude", "memory/remember")
	reader := w.client("reader", "")
	if got := reader.tools(); !slices.Contains(got, "memory__recall") || slices.Contains(got, "memory__remember") ||
		slices.Contains(got, "send_to_channel") {
		t.Errorf("a client without a list of tools has %v", got)
	}
}

// A client learns of more tools while it is connected.
func TestMCPClientIsToldOfNewTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("mcp: {clients: {claude: {tools: [core/list_channels]}}}")
	w.start()
	c := w.client("claude", "2025-11-25")
	if got := c.tools(); !slices.Equal(got, []string{"list_channels"}) {
		t.Fatalf("the tools are %v", got)
	}
	w.config(allowClaude)
	for !slices.Contains(c.tools(), "memory__remember") {
		select {
		case <-c.changed:
		case <-w.ctx().Done():
			t.Fatal("the client was not told")
		}
	}
}

func TestMCPClientWhoseKernelDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.write(w.text("config.yaml")+"\n"+allowClaude, 0o600, "config.yaml")
	w.start()
	w.telegramReady()
	c := w.client("claude", "")
	c.does("memory__remember", map[string]any{"text": "the kettle is blue"})
	w.crash()
	for _, name := range []string{"memory__recall", "send_to_channel", "ask_user"} {
		got, isError := c.try(name, map[string]any{
			"query": "kettle", "channel_id": "telegram_channel", "text": "hi", "question": "Which one?",
		})
		if !isError || !strings.Contains(got, "no kernel is running") || !strings.Contains(got, "switchboard run") {
			t.Errorf("%s without a kernel: %s", name, got)
		}
	}
	w.start()
	w.telegramReady()
	contains(t, "recall", c.does("memory__recall", map[string]any{"query": "kettle"}), "blue")

	// A send that is under way.
	w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Hang: true})
	calls := w.telegram.Calls("sendMessage")
	type outcome struct {
		text    string
		isError bool
	}
	sent := make(chan outcome, 1)
	go func() {
		text, isError := c.try("send_to_channel", map[string]any{"channel_id": "telegram_channel", "text": "the tea is ready"})
		sent <- outcome{text, isError}
	}()
	if err := w.telegram.WaitCalls(w.ctx(), "sendMessage", calls+1); err != nil {
		t.Fatal(err)
	}
	w.crash()
	w.telegram.Release()
	w.start()
	w.telegramReady()
	if o := <-sent; o.isError || !strings.Contains(o.text, `"telegram_channel"`) {
		t.Errorf("a send under way: %+v", o)
	}
	w.eventually("the text", func() bool {
		return slices.Contains(w.texts(anna), "(possibly sent before) claude (MCP): the tea is ready")
	})

	// A question that is open: asked once, answered in the next kernel's time.
	asked := make(chan outcome, 1)
	ask := func() {
		text, isError := c.try("ask_user", map[string]any{"question": "Which milk?", "options": []string{"oat", "soy"}})
		asked <- outcome{text, isError}
	}
	go ask()
	questions := func() (n int) {
		for _, m := range w.telegram.Messages(anna) {
			if strings.Contains(m.Text, "claude (MCP): Which milk?") {
				n++
			}
		}
		return n
	}
	w.eventually("the question", func() bool { return questions() == 1 })
	for message := ""; message != "waiting for the user's answer"; {
		select {
		case message = <-c.progress:
		case <-w.ctx().Done():
			t.Fatal("no progress is reported")
		}
	}
	w.restart()
	w.telegramReady()
	w.telegram.Say(anna, "oat")
	o := <-asked
	if o.isError || !strings.Contains(o.text, `"oat"`) {
		t.Errorf("the answer is %+v", o)
	}
	if n := questions(); n != 1 {
		t.Errorf("the question was asked %d times", n)
	}
	// The same question is a new one now.
	go ask()
	w.eventually("the second question", func() bool { return questions() == 2 })
	w.telegram.Say(anna, "soy")
	if o := <-asked; o.isError || !strings.Contains(o.text, `"soy"`) {
		t.Errorf("the second answer is %+v", o)
	}
}

// A client that gives up, or dies, gets the answer when it asks again.
func TestMCPQuestionOutlivesItsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.write(w.text("config.yaml")+"\n"+allowClaude, 0o600, "config.yaml")
	w.start()
	w.telegramReady()
	first := w.client("claude", "")
	ctx, cancel := context.WithCancel(w.ctx())
	gone := make(chan error, 1)
	question := map[string]any{"question": "Where are the keys?"}
	go func() {
		_, err := first.CallTool(ctx, &mcp.CallToolParams{Name: "ask_user", Arguments: question})
		gone <- err
	}()
	said := func(what string) bool {
		return slices.ContainsFunc(w.telegram.Messages(anna), func(m telegramtest.Message) bool {
			return strings.Contains(m.Text, what)
		})
	}
	w.eventually("the question", func() bool { return said("Where are the keys?") })
	cancel()
	if err := <-gone; err == nil {
		t.Error("the call was not cancelled")
	}
	_ = first.Close()
	w.telegram.Say(anna, "under the mat")
	contains(t, "the answer", w.client("claude", "").does("ask_user", question), "under the mat")
}

func TestMCPClientThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for name, tt := range map[string]struct{ config, client, want string }{
		"none": {"", "claude", "config.yaml allows no MCP client; add `mcp: {clients: {claude: {}}}`"},
		"other": {
			"mcp: {clients: {zed: {}}}", "claude", `config.yaml does not allow the MCP client "claude", only zed`,
		},
		"several": {"mcp: {clients: {a: {}, b: {}}}", "", "several MCP clients: choose one with --client (a, b)"},
	} {
		w.config(tt.config)
		if tt.config != "" {
			w.eventually("the extension for "+name, func() bool {
				return strings.Contains(w.must("extensions", "list", "--json"), `"mcp_server"`)
			})
		}
		w.eventually(name+": "+tt.want, func() bool {
			out, complaints := w.raw(tt.client, initialize)
			return strings.Contains(complaints, tt.want) && len(out) == 1 &&
				strings.Contains(strings.ReplaceAll(out[0], `\"`, `"`), tt.want)
		})
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// raw writes lines to the server, reads as many answers, and ends it.
func (w *world) raw(client string, lines ...string) (answers []string, complaints string) {
	w.t.Helper()
	args := []string{"mcp"}
	if client != "" {
		args = append(args, "--client", client)
	}
	cmd := w.command(args...)
	in, out, stderr := pipes(w.t, cmd)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	read := bufio.NewReader(out)
	for _, line := range lines {
		if _, err := fmt.Fprintln(in, line); err != nil {
			w.t.Error(err)
		}
		answer, err := read.ReadString('\n')
		if err != nil {
			w.t.Fatalf("no answer to %.200s: %v", line, err)
		}
		answers = append(answers, answer)
	}
	_ = in.Close()
	_ = cmd.Wait()
	return answers, stderr.String()
}

func pipes(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser, stderr *buffer) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	stderr = &buffer{}
	cmd.Stderr = stderr
	return in, out, stderr
}

// What is no message is answered with an error, and the server goes on.
func TestMCPServerSurvivesBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config(allowClaude)
	w.start()
	answers, _ := w.raw("claude", initialize, "garbage", strings.Repeat("x", 5<<20),
		`{"jsonrpc":"2.0","id":2,"method":"tools/fly","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fly","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"memory__remember","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	for i, want := range []string{
		`"protocolVersion":"2025-06-18"`, "not JSON", "longer than 4 MiB", "-32601", `unknown tool`, `"isError":true`,
		`"id":5,"result"`,
	} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d is %.300s, want %s", i, answers[i], want)
		}
	}
	for bad, want := range map[string]string{
		"mcp: {clients: {Claude: {}}}":                       "lower-case",
		"mcp: {clients: {claude: {tools: [everything]}}}":    "everything",
		"mcp: {clients: {claude: {tool: [core/ask_user]}}}":  "tool",
		"mcp: {client: {claude: {tools: [core/list_x, 7]}}}": "client",
	} {
		w.write(bad, 0o600, "config.yaml")
		if out, complaints, code := w.cli("config", "check"); code == 0 || !strings.Contains(out+complaints, want) {
			t.Errorf("%s: %d %s%s", bad, code, out, complaints)
		}
	}
}
