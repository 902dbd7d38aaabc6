package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/internal/loopback"
)

// ofBoris lets MCP clients act for Boris and for the owner.
const ofBoris = `mcp:
  clients:
    desk: {person: Boris, tools: [core/send_to_person, core/send_to_channel, core/ask_user, memory/*]}
    claude: {tools: [core/send_to_person]}
`

// withBoris is a world where Anna, the owner, and Boris have written.
func withBoris(t *testing.T) *world {
	w := newWorld(t, withTelegram())
	w.write(w.text("config.yaml")+"\n"+ofBoris, 0o600, "config.yaml")
	w.start()
	w.telegramReady()
	w.meet()
	return w
}

// meet has Anna and Boris write.
func (w *world) meet() {
	w.t.Helper()
	for chat, name := range map[int64]string{anna: "Anna", boris: "Boris"} {
		w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: chat, FirstName: name}, Text: "/help"})
		w.eventually("an answer to "+name, func() bool { return len(w.texts(chat)) > 0 })
	}
	w.settled()
}

func (w *world) reads(chat int64, text string) {
	w.t.Helper()
	w.eventually(text, func() bool { return slices.Contains(w.texts(chat), text) })
}

// What the client of another person asks and sends concerns that person alone.
func TestMCPClientOfAnotherPerson(t *testing.T) {
	t.Parallel()
	w := withBoris(t)
	c := w.client("desk", "")
	answer := make(chan string, 1)
	go func() { answer <- c.does("ask_user", map[string]any{"question": "Which milk?"}) }()
	asked := func(chat int64) bool {
		return slices.ContainsFunc(w.texts(chat), func(s string) bool { return strings.Contains(s, "Which milk?") })
	}
	w.eventually("the question to Boris", func() bool { return asked(boris) })
	if asked(anna) {
		t.Error("the owner is asked what a client asks Boris")
	}
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: boris, FirstName: "Boris"}, Text: "oat"})
	contains(t, "the answer", <-answer, `"oat"`, "Boris")

	c.does("send_to_channel", map[string]any{"channel_id": "telegram_channel", "text": "to himself"})
	w.reads(boris, "desk (MCP): to himself")
	c.does("send_to_person", map[string]any{"person": "Anna", "text": "to Anna"})
	w.reads(anna, "From Boris: desk (MCP): to Anna")
	owners := w.client("claude", "")
	owners.does("send_to_person", map[string]any{"person": "Boris", "text": "dinner"})
	w.reads(boris, "From the owner: claude (MCP): dinner")
	if got, isError := owners.try("send_to_person", map[string]any{"person": "Zed", "text": "x"}); !isError ||
		!strings.Contains(got, "nothing was sent") || !strings.Contains(got, "Boris") {
		t.Errorf("to no one: %s", got)
	}
	if slices.ContainsFunc(w.texts(anna), func(s string) bool { return strings.Contains(s, "to himself") }) {
		t.Error("the owner reads what Boris's client sends to him")
	}

	// The end of the person ends the client, at once.
	go func() {
		text, _ := c.try("ask_user", map[string]any{"question": "Which tea?"})
		answer <- text
	}()
	w.eventually("the second question", func() bool {
		return slices.ContainsFunc(w.texts(boris), func(s string) bool { return strings.Contains(s, "Which tea?") })
	})
	w.must("people", "role", "Boris", "blocked")
	contains(t, "the open question", <-answer, "there is no answer")
	for name, arguments := range map[string]map[string]any{
		"memory__recall": {"query": "x"}, "ask_user": {"question": "Still there?"},
		"send_to_channel": {"channel_id": "telegram_channel", "text": "x"}, "send_to_person": {"person": "Anna", "text": "x"},
	} {
		if got, isError := c.try(name, arguments); !isError || !strings.Contains(got, "is blocked") {
			t.Errorf("%s for a blocked person: %s", name, got)
		}
	}
	if _, err := c.ListTools(w.ctx(), nil); err == nil || !strings.Contains(err.Error(), "is blocked") {
		t.Errorf("the tools for a blocked person: %v", err)
	}
}

// A text that is under way when the kernel dies is sent once, or is marked, and the client gets
// its result: the kernel dies on each side of each commit of the call.
func TestMCPTextIsSentOnceOverCrashes(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, point, trace string) *shop {
		s := &shop{world: newWorld(t, withTelegram())}
		s.world.write(s.text("config.yaml")+"\n"+ofBoris, 0o600, "config.yaml")
		s.open()
		s.meet()
		s.stop()
		s.env["SWITCHBOARD_CRASH_FROM"], s.env["SWITCHBOARD_CRASH_TRACE"] = "mcp_server.called", trace
		s.env["SWITCHBOARD_CRASH"] = point
		s.open()
		return s
	}
	// sends has a client send a text.
	sends := func(t *testing.T, s *shop) {
		t.Helper()
		c := s.client("claude", "")
		done := make(chan string, 1)
		send := func() {
			text, isError := c.try("send_to_person", map[string]any{"person": "Boris", "text": "dinner"})
			if isError {
				text = "failed: " + text
			}
			done <- text
		}
		go send()
		s.reaches("the result", func() bool {
			select {
			case text := <-done:
				if strings.Contains(text, "nothing was done") { // it died when it recorded the call
					go send()
					return false
				}
				if strings.HasPrefix(text, "failed: ") {
					t.Error(text)
				}
				return true
			default:
				return false
			}
		})
		s.reaches("the end", func() bool { return len(s.pending()) == 0 })
		all, marked := 0, 0
		for _, text := range s.texts(boris) {
			if strings.Contains(text, "claude (MCP): dinner") {
				all++
			}
			if strings.Contains(text, "possibly sent before") {
				marked++
			}
		}
		if all == 0 || all-marked > 1 {
			t.Errorf("%d texts, %d of them marked", all, marked)
		}
		if n := s.count("tool.call.core"); n != 1 {
			t.Errorf("%d calls of send_to_channel", n)
		}
	}
	trace := filepath.Join(t.TempDir(), "commits")
	whole := open(t, "", trace)
	sends(t, whole)
	did := whole.linesOf(trace)
	t.Logf("commits:\n%s", strings.Join(did, "\n"))
	for _, point := range fewerPoints(t, len(did), 8) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			sends(t, open(t, point, ""))
		})
	}
}

// A client whose process ended before it had the result sends again: the text is sent once.
func TestMCPTextOfAClientThatDied(t *testing.T) {
	t.Parallel()
	w := withBoris(t)
	w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Hang: true})
	calls := w.telegram.Calls("sendMessage")
	dinner := map[string]any{"person": "Boris", "text": "dinner"}
	server := w.command("mcp", "--client", "claude")
	first, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(w.ctx(),
		&mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = first.CallTool(w.ctx(), &mcp.CallToolParams{Name: "send_to_person", Arguments: dinner}) }()
	if err := w.telegram.WaitCalls(w.ctx(), "sendMessage", calls+1); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	w.telegram.Release()
	second := w.client("claude", "")
	second.does("send_to_person", dinner)
	w.settled()
	if n := w.count("tool.call.core"); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	// What has its result is no repetition.
	second.does("send_to_person", dinner)
	w.settled()
	if n := w.count("tool.call.core"); n != 2 {
		t.Errorf("another text of the same words: %d are sent", n)
	}
}

// A client gives tasks, changes them and reads their results, also over a crash.
func TestMCPClientGivesTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.write(w.text("config.yaml")+"\nmcp: {clients: {claude: {tools: [tasks/list, tasks/show, tasks/create, tasks/update, "+
		"tasks/cancel]}}}\n", 0o600, "config.yaml")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		for _, what := range []string{"spoons", "forks", "knives"} {
			if strings.Contains(r.Last("user"), "count the "+what) {
				return openaitest.Say("counted the " + what)
			}
		}
		return openaitest.Say("done")
	})
	w.start()
	w.telegramReady()
	c := w.client("claude", "")
	shown := func(id, want string) {
		t.Helper()
		w.eventually(id+": "+want, func() bool { return strings.Contains(c.does("tasks__show", map[string]any{"id": id}), want) })
	}
	c.does("tasks__create", map[string]any{"agent": "orchestrator", "prompt": "count the spoons", "name": "spoons"})
	shown("spoons", "counted the spoons")
	c.does("tasks__create", map[string]any{
		"agent": "orchestrator", "prompt": "count the forks", "name": "forks", "start": false,
	})
	w.restart()
	w.telegramReady()
	contains(t, "given again", c.does("tasks__create", map[string]any{
		"agent": "orchestrator", "prompt": "count the forks", "name": "forks", "start": false,
	}), `"queued"`)
	c.does("tasks__update", map[string]any{"id": "forks", "prompt": "count the knives", "start": true})
	shown("forks", "counted the knives")
	if got, isError := c.try("tasks__update", map[string]any{"id": "forks", "message": "x"}); !isError ||
		!strings.Contains(got, "has ended") {
		t.Errorf("a finished task: %s", got)
	}
	contains(t, "unnamed", c.does("tasks__create", map[string]any{"agent": "orchestrator", "prompt": "x"}), `"task-`)
	w.settled()
	contains(t, "the list", c.does("tasks__list", nil), `"spoons"`, `"forks"`, `"task-`)
	if texts := w.texts(anna); len(texts) > 0 {
		t.Errorf("the owner is sent %q", texts)
	}
}

// A token of a person who is blocked lets no one in, whatever it could do before, and works again
// when the person may write again.
func TestTokenOfABlockedPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	allowed := w.text("config.yaml")
	port, err := loopback.Take()
	if err != nil {
		t.Fatal(err)
	}
	port.Release()
	w.write(fmt.Sprintf("%s\nextensions: {web_channel: {config: {listen: %q}}}\n", allowed, port.Addr), 0o600, "config.yaml")
	w.start()
	w.telegramReady()
	w.meet()
	p := &program{w: w, url: "http://" + port.Addr}
	p.token = list[struct{ Token string }](w, "tokens", "create", "boris", "--person", "Boris", "--scope", "all").Token
	status := func(what, body string) int {
		t.Helper()
		said, err := p.request(what, body)
		if err != nil {
			t.Fatal(err)
		}
		defer said.Body.Close()
		_, _ = io.Copy(io.Discard, said.Body)
		return said.StatusCode
	}
	requests := map[string]string{
		"GET /api/v1/me": "", "GET /api/v1/sessions": "", "GET /v1/models": "",
		"POST /api/v1/messages": `{"text": "hello", "conversation": "x"}`,
	}
	for what, body := range requests {
		if got := status(what, body); got >= 400 {
			t.Errorf("%s of a member: %d", what, got)
		}
	}
	w.must("people", "role", "Boris", "blocked")
	for what, body := range requests {
		w.eventually(what+" is refused", func() bool { return status(what, body) == http.StatusUnauthorized })
	}
	w.must("people", "role", "Boris", "member")
	w.eventually("he is let in again", func() bool { return status("GET /api/v1/me", "") == http.StatusOK })
}
