package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/web/webtest"
	"github.com/switchboard-run/switchboard/internal/loopback"
)

// recipes are the servers in the examples of docs/recipes.md, by their names, as they stand
// in mcp.json.
func recipes(t *testing.T) map[string]map[string]any {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "recipes.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		lookup := func(string) (string, bool) { return "value", true }
		servers, err := mcpfile.Read(block[1], mcpfile.Options{File: "docs/recipes.md", Lookup: lookup, Home: "/home/me"})
		if err != nil {
			t.Error(err)
		}
		var file struct {
			Servers map[string]map[string]any `json:"mcpServers"`
		}
		if err := json.Unmarshal(block[1], &file); err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			all[s.Name] = file.Servers[s.Name]
		}
	}
	return all
}

// The recipes are accepted, and name the versions of what they download.
func TestRecipesOfMCPServersAreAccepted(t *testing.T) {
	t.Parallel()
	all := recipes(t)
	for _, name := range []string{"files", "browser", "github", "calendar"} {
		server := all[name]
		if server == nil {
			t.Errorf("there is no recipe for %s", name)
			continue
		}
		if server["command"] != "npx" {
			continue
		}
		args, _ := json.Marshal(server["args"])
		if !regexp.MustCompile(`@\d+\.\d+\.\d+"`).Match(args) {
			t.Errorf("%s has no version: %s", name, args)
		}
	}
}

// downloads skips a test that needs npm's registry, unless it is asked for.
func downloads(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getenv("SWITCHBOARD_RECIPES") == "" {
		t.Skip("downloads packages of npm: set SWITCHBOARD_RECIPES=1")
	}
	for _, program := range append(programs, "npx") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
}

// recipe is one of the recipes, with changes to it for this machine.
func recipe(t *testing.T, name string, changes ...string) map[string]any {
	t.Helper()
	text, err := json.Marshal(recipes(t)[name])
	if err != nil {
		t.Fatal(err)
	}
	server := map[string]any{}
	if err := json.Unmarshal([]byte(strings.NewReplacer(changes...).Replace(string(text))), &server); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestRecipeOfFiles(t *testing.T) {
	t.Parallel()
	downloads(t)
	notes := t.TempDir()
	if err := os.WriteFile(filepath.Join(notes, "list.txt"), []byte("milk"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, p := withServers(t, "", map[string]any{"files": recipe(t, "files", "/home/me/Notes", notes)})
	w.uses(p, "files__write_file", map[string]any{"path": filepath.Join(notes, "new.txt"), "content": "bread"})
	if text, err := os.ReadFile(filepath.Join(notes, "new.txt")); string(text) != "bread" {
		t.Errorf("%q, %v: %s", text, err, w.lastResult())
	}
	w.model.Queue(use("mcp/files__read_text_file", map[string]any{"path": filepath.Join(notes, "list.txt")}), openaitest.Say("Milk."))
	p.ask("What is on my list?") // without a question: it only reads
	contains(t, "the file", w.lastResult(), "milk")
}

func TestRecipeOfABrowser(t *testing.T) {
	t.Parallel()
	downloads(t, "chromium")
	site := webtest.Serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = rw.Write([]byte(`<title>Quay</title><p id=a></p><script>a.textContent = "made by " + "a script"</script>`))
	})
	w, p := withServers(t, "", map[string]any{"browser": recipe(t, "browser")})
	w.uses(p, "browser__browser_navigate", map[string]any{"url": site})
	w.model.Queue(use("mcp/browser__browser_snapshot", map[string]any{}), openaitest.Say("I see."))
	p.ask("What does it say?") // without a question: it only reads
	contains(t, "the page", w.lastResult(), "made by a script")
}

func TestRecipeOfACalendar(t *testing.T) {
	t.Parallel()
	downloads(t, "radicale")
	port, err := loopback.Take()
	if err != nil {
		t.Fatal(err)
	}
	port.Release()
	server := exec.CommandContext(t.Context(), "radicale", "--server-hosts", port.Addr, "--auth-type", "none",
		"--storage-filesystem-folder", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	base := "http://" + port.Addr
	w := newWorld(t, withModel)
	w.eventually("a calendar", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), "MKCALENDAR", base+"/anna/home/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("anna", "pw")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusCreated
	})
	w.write("CALDAV_PASSWORD=pw\n", 0o600, "secrets.env")
	w.config("extensions: {mcp: {allow: [calendar]}}")
	w.mcp(map[string]any{"calendar": recipe(t, "calendar", "https://caldav.example.org", base,
		`"caldav.example.org"`, strconv.Quote(port.Addr))})
	w.start()
	w.mcpReady("calendar")
	p := w.attach()
	w.model.Queue(use("mcp/calendar__list_calendars", map[string]any{}), openaitest.Say("One."))
	p.ask("Which calendars are there?")
	contains(t, "the calendars", w.lastResult(), "/anna/home/")
	w.uses(p, "calendar__create_event", map[string]any{"summary": "Dentist", "start": "2027-03-01T10:00:00Z",
		"end": "2027-03-01T11:00:00Z", "calendarUrl": base + "/anna/home/"})
	w.model.Queue(use("mcp/calendar__list_events", map[string]any{"start": "2027-03-01T00:00:00Z",
		"end": "2027-03-02T00:00:00Z", "calendarUrl": base + "/anna/home/"}), openaitest.Say("The dentist."))
	p.ask("What is on that day?")
	contains(t, "the events", w.lastResult(), "Dentist")
}

// GitHub's server is a program that is in PATH or not. It reaches a fake of the API as it
// would a GitHub Enterprise Server, whose port it takes for granted.
func TestRecipeOfGitHub(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("github-mcp-server")
	if err != nil {
		t.Skip(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:80")
	if err != nil {
		t.Skip("the fake of GitHub's API needs port 80: ", err)
	}
	api := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ghp_test" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch rw.Header().Set("Content-Type", "application/json"); r.URL.Path {
		case "/api/v3/repos/anna/quay/issues/7":
			_, _ = rw.Write([]byte(`{"number": 7, "title": "The crane squeaks", "state": "open", "user": {"login": "boris"}}`))
		case "/api/v3/search/issues":
			_, _ = rw.Write([]byte(`{"total_count": 1, "items": [{"number": 7, "title": "The crane squeaks"}]}`))
		default:
			rw.WriteHeader(http.StatusNotFound)
			_, _ = rw.Write([]byte(`{"message": "Not Found"}`))
		}
	}), ReadHeaderTimeout: patience}
	go func() { _ = api.Serve(listener) }()
	t.Cleanup(func() { _ = api.Close() })
	w := newWorld(t, withModel)
	w.env["PATH"] = filepath.Dir(program) + ":" + os.Getenv("PATH")
	w.write("GITHUB_TOKEN=ghp_test\n", 0o600, "secrets.env")
	w.config("extensions: {mcp: {allow: [github]}}")
	w.mcp(map[string]any{"github": recipe(t, "github", `"GITHUB_READ_ONLY":"1"`,
		`"GITHUB_READ_ONLY":"1","GITHUB_HOST":"http://127.0.0.1"`, `"api.github.com"`, `"127.0.0.1:80"`)})
	w.start()
	w.mcpReady("github")
	p := w.attach()
	issue := map[string]any{"method": "get", "owner": "anna", "repo": "quay", "issue_number": 7}
	w.model.Queue(use("mcp/github__issue_read", issue), openaitest.Say("It squeaks."))
	p.ask("What is issue 7?") // without a question: it only reads
	contains(t, "the issue", w.lastResult(), "The crane squeaks")
	w.uses(p, "github__search_issues", map[string]any{"query": "squeaks"})
	contains(t, "what was found", w.lastResult(), "The crane squeaks")
	if slices.ContainsFunc(w.toolsOf("orchestrator"), func(name string) bool { return strings.Contains(name, "write") }) {
		t.Error("a server that only reads gives tools that write")
	}
}
