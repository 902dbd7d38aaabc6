package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// suiteDir is the directory where npm installed testdata/conformance/package.json.
func suiteDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SWITCHBOARD_MCP_CONFORMANCE")
	if dir == "" {
		t.Skip("SWITCHBOARD_MCP_CONFORMANCE names no directory with the npm packages of testdata/conformance/package.json")
	}
	return dir
}

// The extension passes the client scenarios that two revisions of the protocol require. The
// suite starts this test binary as the client of each scenario.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	dir := suiteDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(dir, "node_modules", ".bin")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for _, scenario := range required(t, dir, revision) {
			t.Run(revision+"/"+scenario, func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "conformance"), "client",
					"--scenario", scenario, "--spec-version", revision, "--timeout", "120000", "-o", t.TempDir(),
					"--command", self+" -test.run=^TestConformanceScenario$ -test.count=1 -test.v")
				cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
				if said, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, said)
				}
			})
		}
	}
}

// required lists the client scenarios that a revision requires.
func required(t *testing.T, dir, revision string) []string {
	t.Helper()
	file := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "requirements", revision+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Client []string }
	if err := yaml.Unmarshal(text, &all); err != nil || len(all.Client) == 0 {
		t.Fatalf("%s: %v", file, err)
	}
	return all.Client
}

// TestConformanceScenario is the client of one scenario.
func TestConformanceScenario(t *testing.T) { //nolint:paralleltest // of a process of its own
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if scenario == "" {
		t.Skip("MCP_CONFORMANCE_SCENARIO names no scenario")
	}
	var given struct {
		Client    string `json:"client_id"`
		Secret    string `json:"client_secret"`
		ToolCalls []struct {
			Name      string
			Arguments map[string]any
		}
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
	}
	s := mcpfile.Server{ID: "suite", Name: "suite", Transport: mcpfile.HTTP, URL: os.Args[len(os.Args)-1]}
	s.OAuth.ClientID, s.OAuth.Secret = given.Client, given.Secret
	if given.Client == "" {
		s.OAuth.MetadataURL = "https://conformance-test.local/client-metadata.json"
	}
	c := &candidate{startCandidate(t, s), t}
	c.connect()
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c.answer(ctx)
	}()
	defer func() {
		cancel()
		<-answered
	}()
	for _, call := range given.ToolCalls {
		c.call(fullName(s.ID, call.Name), call.Arguments)
	}
	if given.ToolCalls != nil {
		return
	}
	status := c.status()
	t.Logf("the server: %+v", status)
	for _, tool := range status.Tools {
		name := strings.TrimPrefix(tool, ID+"/")
		switch name {
		case "suite__read_resource":
			uri, _, _ := strings.Cut(c.call(name, map[string]any{}), ": ")
			c.call(name, map[string]any{"uri": uri})
		case "suite__json_schema_echo":
			i := slices.IndexFunc(c.Describe().GetTools(), func(t *extensionv1.Tool) bool {
				return t.GetName() == "suite__json_schema_2020_12_tool"
			})
			c.call(name, map[string]any{"schema": json.RawMessage(c.Describe().GetTools()[i].GetSchema())})
		default:
			c.call(name, map[string]any{"a": 5, "b": 3, "region": "us-west1"})
		}
	}
	for _, prompt := range status.Prompts {
		c.Call("servers", map[string]any{"words": []string{"prompt", prompt}})
	}
}

// candidate is the extension in a scenario.
type candidate struct {
	*sdktest.Kernel
	t *testing.T
}

// startCandidate starts the extension with one server, which is allowed.
func startCandidate(t *testing.T, s mcpfile.Server) *sdktest.Kernel {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join("..", "..", "manifests", "mcp.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The installation adds the servers to a configuration that was checked.
	manifest = bytes.Replace(manifest, []byte("  properties:\n"), []byte("  properties:\n    setup: {type: object}\n"), 1)
	file := filepath.Join(t.TempDir(), "mcp.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	return sdktest.Start(t, New(), sdktest.Options{Manifest: file, DataDir: t.TempDir(), Config: map[string]any{
		"setup": mcpfile.Setup{Servers: []mcpfile.Launch{{Server: s}}, Allow: []string{s.ID}},
	}, Channels: []*kernelv1.Channel{{Id: "desk", Name: "Desk", Default: true}}})
}

func (c *candidate) status() (s mcpfile.Status) {
	var all []mcpfile.Status
	if err := json.Unmarshal([]byte(c.MustCall("status", map[string]any{})), &all); err == nil && len(all) == 1 {
		s = all[0]
	}
	return s
}

// connect waits until the server was connected, after a login if it wants one.
func (c *candidate) connect() {
	notices := 0
	for range 4 {
		c.WaitFor("the server's tools, its failure or a login", func() bool {
			s := c.status()
			return s.State == mcpfile.StateRunning || s.Broken && !wantsLogin(s.Error) ||
				len(c.Published(contract.TopicUserNotify)) > notices
		})
		if len(c.Published(contract.TopicUserNotify)) == notices {
			return
		}
		notices++
		if err := c.login(); err != nil {
			return
		}
	}
}

func wantsLogin(text string) bool { return strings.Contains(text, "switchboard mcp login") }

// byOwner makes a call one of the command line.
func byOwner(q *extensionv1.CallRequest) { q.Agent, q.Session = "", "" }

// login agrees to the login that the server wants, as a browser does that is sent back at
// once.
func (c *candidate) login() error {
	var begun struct{ URL string }
	r := c.Call("login", map[string]any{"server": "suite", "address": "http://127.0.0.1:8976/callback"}, byOwner)
	if r.GetIsError() || json.Unmarshal([]byte(r.GetContent()), &begun) != nil {
		return errors.New("the login does not begin")
	}
	browser := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := browser.Get(begun.URL) //nolint:noctx // of a test
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.Call("login_finish", map[string]any{"server": "suite", "address": resp.Header.Get("Location")}, byOwner)
	return nil
}

// call calls a tool as the kernel does after an approval, with the login that it may want, and
// returns what it says.
func (c *candidate) call(name string, arguments any) string {
	text, err := json.Marshal(arguments)
	if err != nil {
		c.t.Fatal(err)
	}
	said := ""
	for range 4 {
		notices := len(c.Published(contract.TopicUserNotify))
		r, err := extensionv1.NewToolsClient(c.Conn()).Call(c.t.Context(), &extensionv1.CallRequest{
			CallId: rand.Text(), Name: name, Arguments: text,
		})
		if err != nil {
			c.t.Logf("%s: %v", name, err)
			return ""
		}
		said = r.GetContent()
		c.t.Logf("%s: %s", name, said)
		if !r.GetIsError() || !wantsLogin(said) {
			break
		}
		c.WaitFor("the notice", func() bool { return len(c.Published(contract.TopicUserNotify)) > notices })
		if c.login() != nil {
			break
		}
	}
	return said
}

// answer answers the questions of the server: yes, and nothing beyond what has a default.
func (c *candidate) answer(ctx context.Context) {
	for seen := 0; ctx.Err() == nil; {
		all := c.Published(contract.TopicUserAsk)
		for _, e := range all[seen:] {
			var q contract.UserAsk
			if err := json.Unmarshal(e.GetPayload(), &q); err != nil {
				continue
			}
			answer := wordSkip
			if slices.Contains(q.Options, wordYes) && !slices.Contains(q.Options, wordSkip) {
				answer = wordYes
			}
			c.Deliver(topicAnswered, contract.UserAnswer{Ref: q.Ref, Outcome: contract.AskAnswered, Answer: answer})
		}
		seen = len(all)
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
