// Package mcpserver makes a running kernel an MCP server: MCP clients list its channels,
// send, use its schedules and memory, and ask the owner. It needs the owner's side of the
// kernel (contract/adminv1) and the extension mcp_server, and is independent of the
// transport: the command `switchboard mcp` serves it over stdio, the web channel over HTTP.
//
// # Promises
//
// A client has the tools that mcp.clients of config.yaml grants its name, whatever it says
// about itself. Each call is recorded before it runs. The tools, with their schemas, are
// those of the kernel's directory; clients are told when they change.
//
// Without a kernel a call fails and says so; the server looks for one again and goes on. A
// call that was under way when the kernel stopped is repeated if it only reads, asks or
// sends; otherwise the answer says that its outcome is unknown. A question survives both
// processes, and a text is sent once, or with the mark of a possible repetition: asking or
// sending again with the same words joins it.
//
// A client that acts for a person may do nothing while that person is blocked.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

// Options configure a Server.
type Options struct {
	Client  string // its name in mcp.clients; empty: the only one
	Version string // of this program
	Dial    func(context.Context) (*admin.Client, error)
	Log     *slog.Logger // of what the client's user should know
	// Retry is the pause between attempts to reach a kernel; 0: a second.
	Retry time.Duration
	// Look is the pause between two looks at what the client may use; 0: five seconds.
	Look time.Duration
}

// Server serves one MCP client.
type Server struct {
	Options
	mcp     *mcp.Server
	closing context.Context //nolint:containedctx // of a Handler

	mu      sync.Mutex
	sending map[clients.Send]int // texts whose results are waited for, by their words
	kernel  *admin.Client
	client  *clients.Client // nil: the kernel has not been reached yet
	approve []string
	refusal error            // why the client may do nothing
	offered map[string]*tool // by the names that the client sees
}

// New returns a server that is not connected.
func New(o Options) *Server {
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.Look == 0 {
		o.Look = 5 * time.Second
	}
	s := &Server{Options: o, offered: map[string]*tool{}, sending: map[clients.Send]int{}}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "switchboard", Title: "Switchboard", Version: o.Version},
		&mcp.ServerOptions{
			Instructions: "Switchboard is the user's personal assistant: it reaches them on their channels, keeps their " +
				"reminders and remembers facts. What you send and ask is shown to people with your name.",
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		})
	s.mcp.AddReceivingMiddleware(s.admit)
	return s
}

// Serve serves the client on a transport until the client or ctx ends.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	if err := s.refresh(ctx); err != nil {
		s.Log.Warn(err.Error())
	}
	watching.Go(func() { s.watch(ctx) })
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kernel != nil {
			s.kernel.Close()
		}
	}()
	err := s.mcp.Run(ctx, t)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to end
	}
	return err
}

// admit refuses the requests of a client that the configuration does not name, and those
// that need a kernel while none was reached.
func (s *Server) admit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		if kind, _, _ := strings.Cut(method, "/"); slices.Contains([]string{"completion", "prompts", "resources"}, kind) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there are only tools here: " + method}
		}
		s.mu.Lock()
		known := s.client != nil
		s.mu.Unlock()
		var missing error
		if method == "tools/list" || !known && method == "tools/call" {
			missing = s.refresh(ctx)
		}
		s.mu.Lock()
		refusal := s.refusal
		if s.client == nil && refusal == nil { // no kernel was reached yet
			refusal = missing
		}
		s.mu.Unlock()
		if refusal != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text(refusal)}
		}
		return next(ctx, method, req)
	}
}

// connect returns a connection to the kernel.
func (s *Server) connect(ctx context.Context) (*admin.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kernel != nil {
		return s.kernel, nil
	}
	k, err := s.Dial(ctx)
	if err == nil {
		s.kernel = k
	}
	return k, err
}

// disconnect gives up a connection whose kernel has stopped.
func (s *Server) disconnect(k *admin.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kernel == k && k != nil {
		s.kernel = nil
		k.Close()
	}
}

// stopped reports whether an error means that the kernel has stopped.
func stopped(err error) bool {
	return errors.Is(err, contract.ErrGone) || errors.Is(err, admin.ErrNotRunning)
}

// sleep waits before the kernel is looked for again; false: ctx has ended.
func (s *Server) sleep(ctx context.Context) bool {
	select {
	case <-time.After(s.Retry):
		return true
	case <-ctx.Done():
		return false
	}
}

// watch looks again and again at what the client may use, and for a kernel while there is
// none.
func (s *Server) watch(ctx context.Context) {
	look := time.NewTicker(s.Look)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			_ = s.refresh(ctx) // calls say what is wrong
		case <-ctx.Done():
			return
		}
	}
}

// refresh reads what the client may use. The error is the refusal, if the client may use
// nothing.
func (s *Server) refresh(ctx context.Context) error {
	k, err := s.connect(ctx)
	if err != nil {
		return err
	}
	client, approve, err := s.grants(ctx, k)
	if err == nil {
		if _, err = personOf(ctx, k, *client); err != nil {
			client = nil
		}
	}
	if stopped(err) {
		s.disconnect(k)
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dir *adminv1.DirectoryResponse
	if err == nil {
		if dir, err = k.Directory(ctx, &adminv1.DirectoryRequest{Tools: true}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if err != nil && (s.refusal == nil || s.refusal.Error() != err.Error()) {
		s.Log.Error(text(err))
	}
	s.refusal, s.client, s.approve = err, client, approve
	s.mu.Unlock()
	s.offer(dir, client)
	return err
}

// grants returns what the configuration says about the client.
func (s *Server) grants(ctx context.Context, k *admin.Client) (*clients.Client, []string, error) {
	all, err := callTool[clients.List](ctx, k, &adminv1.CallToolRequest{Name: clients.ToolList}, struct{}{})
	if errors.Is(err, contract.ErrNotFound) {
		return nil, nil, fmt.Errorf("%w: config.yaml allows no MCP client; add `mcp: {clients: {%s: {}}}`",
			contract.ErrDenied, nameOr(s.Client, "NAME"))
	}
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, c := range all.Clients {
		if c.Name == s.Client || s.Client == "" && len(all.Clients) == 1 {
			return &c, all.Approve, nil
		}
		names = append(names, c.Name)
	}
	if s.Client == "" {
		return nil, nil, fmt.Errorf("%w: config.yaml allows several MCP clients: choose one with --client (%s)",
			contract.ErrInvalid, strings.Join(names, ", "))
	}
	return nil, nil, fmt.Errorf("%w: config.yaml does not allow the MCP client %q, only %s; add it to mcp.clients",
		contract.ErrDenied, s.Client, strings.Join(names, ", "))
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// text is an error for people: without the sentinels that it begins with.
func text(err error) string {
	message := err.Error()
	for _, sentinel := range []error{
		contract.ErrNotFound, contract.ErrInvalid, contract.ErrUnavailable, contract.ErrDenied, contract.ErrTooLarge,
		contract.ErrGone, contract.ErrStale, contract.ErrFull,
	} {
		message = strings.TrimPrefix(message, sentinel.Error()+": ")
	}
	return message
}
