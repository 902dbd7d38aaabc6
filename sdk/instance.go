package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// instance is one extension of the process. It may be initialized again after a
// shutdown.
type instance struct {
	ext Extension
	log hclog.Logger

	initializing sync.Mutex // one Init or Shutdown at a time

	mu          sync.Mutex
	activation  *activation
	name        string // the manifest's id; empty until Init if ext has none
	tools       map[string]*Tool
	description *extensionv1.Description
}

func newInstance(log hclog.Logger, ext Extension) (*instance, error) {
	x := &instance{ext: ext, log: log, name: ext.ID}
	if ext.ID != "" {
		x.log = log.Named(ext.ID)
	}
	return x, x.describe(ext.Tools)
}

// describe replaces the description by one with these tools.
func (x *instance) describe(all []Tool) error {
	ext := x.ext
	tools := make(map[string]*Tool, len(all))
	d := &extensionv1.Description{
		Channel: ext.Channel != nil, Models: ext.Models != nil,
		Events: ext.Channel != nil || ext.Handle != nil || ext.Results != nil || ext.HandleAgent != nil,
		Sdk:    Version,
	}
	_, d.Drafts = ext.Channel.(Drafter)
	commands := map[string]*Tool{}
	for i := range all {
		t := &all[i]
		switch {
		case t.Name == "":
			return fmt.Errorf("extension %s: tool %d has no Name", ext.ID, i+1)
		case t.Call == nil:
			return fmt.Errorf("extension %s: tool %s has no Call", ext.ID, t.Name)
		case tools[t.Name] != nil:
			return fmt.Errorf("extension %s: two tools are named %s", ext.ID, t.Name)
		}
		if t.Command != "" {
			if first := commands[t.Command]; first != nil {
				return fmt.Errorf("extension %s: the tools %s and %s are both the command /%s",
					ext.ID, first.Name, t.Name, t.Command)
			}
			commands[t.Command] = t
		}
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","additionalProperties":false}`)
		}
		if !json.Valid(schema) {
			return fmt.Errorf("extension %s: the Schema of tool %s is not valid JSON", ext.ID, t.Name)
		}
		tools[t.Name] = t
		d.Tools = append(d.Tools, &extensionv1.Tool{
			Name: t.Name, Description: t.Description, Schema: schema, ReadOnly: t.ReadOnly,
			Idempotent: t.Idempotent, Interruptible: t.Interrupt, Waits: t.Waits, Private: t.Private,
			Approve: t.Approve, Final: t.Final, Command: t.Command,
		})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tools, x.description = tools, d
	return nil
}

// describeAgain is describe with the result.
func (x *instance) describeAgain(all []Tool) (*extensionv1.Description, error) {
	err := x.describe(all)
	return x.described(), err
}

// tool returns the tool with a name; nil: there is none.
func (x *instance) tool(name string) *Tool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tools[name]
}

func (x *instance) described() *extensionv1.Description {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.description
}

// id returns the extension's id, which may be empty before Init.
func (x *instance) id() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.name
}

// supersededGrace is the grace of an activation that a second Init replaces.
const supersededGrace = time.Second

// init activates the extension. It ends an earlier activation first, whose start
// the kernel did not learn of in time.
func (x *instance) init(
	ctx context.Context, r *extensionv1.InitRequest, lost func(),
) (*extensionv1.InitResponse, error) {
	x.initializing.Lock()
	defer x.initializing.Unlock()
	if x.ext.ID != "" && r.GetId() != x.ext.ID {
		return nil, fmt.Errorf("the manifest has the id %q, the program %q: %w", r.GetId(), x.ext.ID, contract.ErrInvalid)
	}
	x.end(supersededGrace)
	x.mu.Lock()
	x.name = r.GetId()
	x.mu.Unlock()
	a, err := x.activate(ctx, r, lost)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.activation = a
	x.mu.Unlock()
	readiness := a.kernel.readiness.announced()
	go a.keepRunning() //nolint:contextcheck // it runs until shutdown
	return &extensionv1.InitResponse{Readiness: readiness}, nil
}

// errNotInitialized refuses a request before Init or after Shutdown.
var errNotInitialized = errors.New("the extension is not initialized")

func (x *instance) current() (*activation, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.activation == nil {
		return nil, fmt.Errorf("%w: %w", errNotInitialized, contract.ErrUnavailable)
	}
	return x.activation, nil
}

func (x *instance) active() bool {
	_, err := x.current()
	return err == nil
}

// health never blocks.
func (x *instance) health() *extensionv1.Readiness {
	a, err := x.current()
	if err != nil {
		return &extensionv1.Readiness{State: Offline, Detail: errNotInitialized.Error()}
	}
	return a.kernel.readiness.now()
}

// shutdown ends the activation, if there is one.
func (x *instance) shutdown(grace time.Duration) {
	x.initializing.Lock()
	defer x.initializing.Unlock()
	x.end(grace)
}

func (x *instance) end(grace time.Duration) {
	a, err := x.current()
	if err != nil {
		return
	}
	a.shutdown(grace)
	x.mu.Lock()
	x.activation = nil
	x.mu.Unlock()
}

// interrupt ends the contexts of all handlers.
func (x *instance) interrupt() {
	if a, err := x.current(); err == nil {
		a.interrupt(errShutdown)
	}
}
