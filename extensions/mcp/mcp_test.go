package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, New, sdktest.Options{Manifest: filepath.Join("..", "..", "manifests", "mcp.yaml")})
}

// memory is a server in this process.
type memory struct {
	mcp.Transport
	done chan struct{}
	once sync.Once
}

func (m *memory) Done() <-chan struct{}     { return m.done }
func (m *memory) Reason() string            { return "it was stopped" }
func (m *memory) End(time.Duration, string) { m.once.Do(func() { close(m.done) }) }

// inMemory is an extension whose servers are in this process. It counts their starts.
func inMemory(t *testing.T, serve func() *mcp.Server) (e *extension, starts *int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	book, err := openCatalogue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	starts = new(int)
	e = &extension{
		log: hclog.NewNullLogger(), idle: 10 * time.Minute, callTimeout: 5 * time.Minute, background: ctx, book: book,
		changed: make(chan struct{}, 1), servers: map[string]*server{}, setup: mcpfile.Setup{Allow: []string{"a"}},
	}
	e.connect = func(ctx context.Context, _ *server) (link, error) {
		*starts++
		here, there := mcp.NewInMemoryTransports()
		session, err := serve().Connect(ctx, there, nil)
		m := &memory{Transport: here, done: make(chan struct{})}
		go func() {
			<-m.done
			_ = session.Close()
		}()
		return m, err
	}
	l := mcpfile.Launch{Server: mcpfile.Server{ID: "a", Name: "a", Transport: mcpfile.Stdio}}
	e.setup.Servers = []mcpfile.Launch{l}
	e.servers["a"] = newServer(e, l)
	t.Cleanup(func() {
		e.servers["a"].close(ctx, "the test ended")
		cancel()
	})
	return e, starts
}

func echoServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Says it.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	s.AddTool(&mcp.Tool{Name: "hang", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	return s
}

// An unused server is stopped after the idle time, and the next call starts it again.
func TestAnUnusedServerIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, starts := inMemory(t, echoServer)
		echo := func() {
			t.Helper()
			o := offered{Name: "a__echo", Server: "a", Tool: "echo"}
			if _, release, err := e.servers["a"].use(t.Context()); err != nil {
				t.Fatal(err)
			} else {
				release()
			}
			r, err := e.call(t.Context(), o, sdk.ToolCall{Arguments: json.RawMessage(`{"x":1}`)})
			if err != nil || r.Content != `{"x":1}` {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		echo()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		echo()
		if *starts != 1 {
			t.Errorf("it was started %d times within the idle time", *starts)
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if state, _, _ := e.servers["a"].status(); state != mcpfile.StateIdle {
			t.Errorf("after the idle time it is %s", state)
		}
		echo()
		if *starts != 2 {
			t.Errorf("it was started %d times", *starts)
		}
	})
}

// A call that is not answered ends with the name of the server.
func TestACallThatHangsIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := inMemory(t, echoServer)
		if _, release, err := e.servers["a"].use(t.Context()); err != nil {
			t.Fatal(err)
		} else {
			release()
		}
		_, err := e.call(t.Context(), offered{Name: "a__hang", Server: "a", Tool: "hang"}, sdk.ToolCall{})
		if err == nil || !strings.Contains(err.Error(), "the MCP server a did not answer within 5m0s") {
			t.Errorf("%v", err)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"getTinyImage": "get_tiny_image", "get-sum": "get_sum", "read_file": "read_file", "a.b/c d": "a_b_c_d",
		"__": "", "HTTPGet": "httpget", "x2Y": "x2_y", "é": "",
	} {
		if got := toolName(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("a", 65)
	if got := fullName("server", long); len(got)+len("mcp__") != 64 || got == fullName("server", long+"b") {
		t.Errorf("a long name is %q", got)
	}
}

// Decisions are on disk, and nobody else can read them.
func TestDecisionsSurvive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := openCatalogue(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.change("a", func(r *record) { r.Hash, r.Decision = "h", mcpfile.Refused }); err != nil {
		t.Fatal(err)
	}
	again, err := openCatalogue(dir)
	if err != nil || again.get("a").Decision != mcpfile.Refused {
		t.Errorf("%+v, %v", again, err)
	}
	info, err := os.Stat(filepath.Join(dir, catalogueFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, catalogueFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openCatalogue(dir); err == nil || !strings.Contains(err.Error(), "to be asked again") {
		t.Errorf("a damaged file: %v", err)
	}
}
