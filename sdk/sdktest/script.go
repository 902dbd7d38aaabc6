package sdktest

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// script is what the kernel's tools and models answer to the extension.
type script struct {
	mu    sync.Mutex
	tools []*extensionv1.Tool
	call  map[string]func(arguments []byte) *extensionv1.CallResult
	model func(*kernelv1.CompleteRequest) ([]*extensionv1.Delta, error)
}

// ScriptTool lets the extension use a tool (with its full name); run answers.
func (k *Kernel) ScriptTool(tool *extensionv1.Tool, run func(arguments []byte) *extensionv1.CallResult) {
	k.script.mu.Lock()
	defer k.script.mu.Unlock()
	if k.script.call == nil {
		k.script.call = map[string]func([]byte) *extensionv1.CallResult{}
	}
	k.script.tools = append(k.script.tools, tool)
	k.script.call[tool.GetName()] = run
}

// ScriptModel answers the extension's completions: with the deltas, then with
// the error if there is one.
func (k *Kernel) ScriptModel(complete func(*kernelv1.CompleteRequest) ([]*extensionv1.Delta, error)) {
	k.script.mu.Lock()
	defer k.script.mu.Unlock()
	k.script.model = complete
}

// callScripted runs a scripted tool. A call with a row is made once: its result
// becomes a row of the history, and a repeat returns that.
func (k *Kernel) callScripted(ctx context.Context, r *kernelv1.CallToolRequest) (*extensionv1.CallResult, error) {
	name, arguments := r.GetName(), r.GetArguments()
	s := k.state
	var owner *session
	var row *busv1.Call
	if r.GetCallId() != "" {
		s.mu.Lock()
		owner, row = s.openCall(r.GetCallId())
		stored := owner.result(r.GetCallId())
		s.mu.Unlock()
		switch {
		case stored != nil:
			return stored, nil
		case row == nil:
			return nil, fmt.Errorf("call %q: %w", r.GetCallId(), contract.ErrNotFound)
		}
		name, arguments = row.GetName(), row.GetArguments()
	}
	k.script.mu.Lock()
	run := k.script.call[name]
	k.script.mu.Unlock()
	result := &extensionv1.CallResult{IsError: true, Content: fmt.Sprintf("there is no tool %s", name)}
	if run != nil {
		result = run(arguments)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if row == nil {
		return result, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored := owner.result(row.GetCallId()); stored != nil {
		return stored, nil
	}
	row.State = "done"
	owner.entries = append(owner.entries, &busv1.Entry{
		Kind: contract.EntryResult, CallId: row.GetCallId(), Text: result.GetContent(), IsError: result.GetIsError(),
		Seq: int64(len(owner.entries)) + 1,
	})
	s.notify()
	return proto.CloneOf(result), nil
}

// openCall finds a call row; s.mu is held.
func (s *state) openCall(id string) (*session, *busv1.Call) {
	for _, owner := range s.sessions {
		for _, e := range owner.entries {
			for _, c := range e.GetCalls() {
				if c.GetCallId() == id {
					return owner, c
				}
			}
		}
	}
	return nil, nil
}

// result is the stored result of a call; nil if it has none.
func (s *session) result(callID string) *extensionv1.CallResult {
	if s == nil {
		return nil
	}
	for _, e := range s.entries {
		if e.GetKind() == contract.EntryResult && e.GetCallId() == callID {
			return &extensionv1.CallResult{Content: e.GetText(), IsError: e.GetIsError()}
		}
	}
	return nil
}
