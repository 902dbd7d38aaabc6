// Package mcp is the extension that connects MCP servers: those of mcp.json. Their tools
// become tools of agents, as mcp/<server>__<tool>.
//
// # Promises
//
//   - A server starts only after the owner allowed it, and a tool is offered only as the
//     owner allowed it: a new one, or one with another description or schema, is withheld
//     until then. Decisions are on disk before they take effect.
//   - A server that is not used costs no process: what its tools are is kept in a file. The
//     first call starts it, and it stops after an idle time.
//   - Each process of a server is in its own group and sandbox, with an environment and a
//     directory of its own. It ends with this process, and so does what it has started.
//   - A server that hangs, floods, dies or sends too much affects its own calls only. They
//     end with an error that names it.
//   - Each call is sent to a server once. If the server ends meanwhile, the result says that
//     the outcome is unknown. A cancelled call is cancelled at the server.
//
// # Not promised
//
// What a server does with its permissions. What it says of itself (descriptions and
// annotations of its tools) is data: models see descriptions in the results of a search,
// and only the owner can declare that a tool changes nothing.
package mcp

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the id of the extension.
const ID = "mcp"

// OfferedVariable names the environment variable with the file of the tools that were
// offered last, which is read before the extension is configured.
const OfferedVariable = "SWITCHBOARD_MCP_OFFERED"

// New returns the extension.
func New() sdk.Extension {
	e := &extension{connect: connect, servers: map[string]*server{}}
	return sdk.Extension{
		ID: ID, Start: e.start, Run: e.run, Stop: e.stop, Handle: e.handle,
		Tools: append(e.ownTools(), e.toolsOf(readOffered(os.Getenv(OfferedVariable)))...),
	}
}

// config is the configuration of the extension.
type config struct {
	Idle        string        `json:"idle"`
	CallTimeout string        `json:"call_timeout"`
	Setup       mcpfile.Setup `json:"setup"`
}

type extension struct {
	connect     connector
	k           *sdk.Kernel
	log         hclog.Logger
	idle        time.Duration
	callTimeout time.Duration
	setup       mcpfile.Setup
	background  context.Context //nolint:containedctx // of Start
	answers     answers
	changed     chan struct{} // the catalogue has changed, or something is to be asked

	mu      sync.Mutex
	servers map[string]*server // by id; fixed after start
	book    *catalogue
	offered string // what the kernel was told last
}

func (e *extension) start(ctx context.Context, k *sdk.Kernel) error {
	var c config
	if err := k.Config(&c); err != nil {
		return err
	}
	var err error
	if e.idle, err = time.ParseDuration(c.Idle); err != nil {
		return fmt.Errorf("read extensions.mcp.config.idle: %w", err)
	}
	if e.callTimeout, err = time.ParseDuration(c.CallTimeout); err != nil {
		return fmt.Errorf("read extensions.mcp.config.call_timeout: %w", err)
	}
	book, err := openCatalogue(k.DataDir())
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.k, e.log, e.setup, e.background, e.book = k, k.Log(), c.Setup, ctx, book
	e.changed = make(chan struct{}, 1)
	e.servers = map[string]*server{}
	for _, l := range c.Setup.Servers {
		e.servers[l.ID] = newServer(e, l)
	}
	return nil
}

// run keeps what the kernel knows and what the owner is asked up to date.
func (e *extension) run(ctx context.Context, _ *sdk.Kernel) error {
	for {
		if err := e.settle(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-e.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// wake makes run look again.
func (e *extension) wake() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// settle asks for what needs the owner's consent, starts servers whose tools are not known
// yet, and tells the kernel of the tools.
func (e *extension) settle(ctx context.Context) error {
	for _, s := range e.all() {
		if err := e.decide(ctx, s); err != nil {
			return err
		}
	}
	return e.offer()
}

// stop ends all servers.
func (e *extension) stop(ctx context.Context) error {
	var all sync.WaitGroup
	for _, s := range e.all() {
		all.Go(func() { s.close(ctx, "Switchboard is stopping") })
	}
	all.Wait()
	return nil
}

// all returns the servers in the order of mcp.json.
func (e *extension) all() (all []*server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.setup.Servers {
		all = append(all, e.servers[l.ID])
	}
	return all
}

// server returns the server with an id or a name; nil: there is none.
func (e *extension) server(name string) *server {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.servers[name]; s != nil {
		return s
	}
	return e.servers[mcpfile.ID(name)]
}
