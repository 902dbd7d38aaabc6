package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

// The kernel's own tools, which the owner's side has under other names.
const (
	listChannels  = "core/list_channels"
	listAgents    = "core/list_agents"
	sendToChannel = "core/send_to_channel"
	sendToPerson  = "core/send_to_person"
	askUser       = "core/ask_user"
	createTask    = "tasks/create" // the same under the same name is the same task
)

// tool is a tool that the client may call.
type tool struct {
	full    string // <extension>/<tool>
	about   *extensionv1.Tool
	encoded string // as the client sees it
}

// inTurns are extensions whose public tools work for a conversation, which a client has not.
var inTurns = []string{"documents", "links", "tasks"}

// usable reports whether a tool can be called outside of conversations.
func usable(t *extensionv1.Tool) bool {
	extension, _, _ := strings.Cut(t.GetName(), "/")
	switch extension {
	case "core":
		return slices.Contains([]string{listChannels, listAgents, sendToChannel, sendToPerson, askUser}, t.GetName())
	case clients.ID:
		return false
	}
	return t.GetPrivate() || !slices.Contains(inTurns, extension)
}

// maxName is the longest name that all clients accept.
const maxName = 64

// shown is the name of a tool as clients accept it: list_channels, memory__recall.
func shown(full string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(full, "core/"), "/", "__")
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(full))
		name = name[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// describe is a tool as clients see it.
func describe(t *extensionv1.Tool) *mcp.Tool {
	destructive := !t.GetReadOnly()
	return &mcp.Tool{
		Name: shown(t.GetName()), Description: t.GetDescription(), InputSchema: schemaOf(t),
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.GetReadOnly(), IdempotentHint: t.GetReadOnly(), DestructiveHint: &destructive,
		},
	}
}

// schemaOf is the schema of a tool's arguments. Files are in conversations, which a client
// has not.
func schemaOf(t *extensionv1.Tool) json.RawMessage {
	var schema map[string]any
	if err := json.Unmarshal(t.GetSchema(), &schema); err != nil || schema["type"] != "object" {
		return json.RawMessage(`{"type":"object"}`)
	}
	properties, _ := schema["properties"].(map[string]any)
	if _, has := properties["attachments"]; !has {
		return t.GetSchema()
	}
	delete(properties, "attachments")
	encoded, err := json.Marshal(schema)
	if err != nil {
		return t.GetSchema()
	}
	return encoded
}

// offer offers the client the tools that it may call.
func (s *Server) offer(dir *adminv1.DirectoryResponse, client *clients.Client) {
	wanted := map[string]*tool{}
	for _, t := range dir.GetTools() {
		if client != nil && usable(t) && clients.Matches(client.Tools, t.GetName(), t.GetPrivate()) {
			wanted[shown(t.GetName())] = &tool{full: t.GetName(), about: t}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.offered {
		if wanted[name] == nil {
			s.mcp.RemoveTools(name)
		}
	}
	for name, t := range wanted {
		described := describe(t.about)
		encoded, _ := json.Marshal(described) //nolint:errchkjson // texts and a schema that was decoded
		t.encoded = string(encoded)
		if old := s.offered[name]; old == nil || old.encoded != t.encoded {
			if err := s.add(described); err != nil {
				s.Log.Warn("leave out the tool " + t.full + ": " + err.Error())
				delete(wanted, name)
			}
		}
	}
	s.offered = wanted
}

// add adds a tool. The SDK panics about schemas that it does not take.
func (s *Server) add(t *mcp.Tool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	s.mcp.AddTool(t, s.call)
	return nil
}

// callTool calls a tool of an extension and decodes its answer.
func callTool[T any](
	ctx context.Context, k *admin.Client, q *adminv1.CallToolRequest, arguments any,
) (answer T, err error) {
	if q.Arguments, err = json.Marshal(arguments); err != nil {
		return answer, err
	}
	result, err := invoke(ctx, k, q)
	if err == nil && result.GetIsError() {
		err = errors.New(result.GetContent())
	}
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal([]byte(result.GetContent()), &answer); err != nil {
		return answer, fmt.Errorf("read the answer of %s: %w", q.GetName(), err)
	}
	return answer, nil
}

const (
	startTimeout = 10 * time.Second // the wait for an extension that is starting
	startPoll    = 100 * time.Millisecond
)

// invoke calls a tool. It waits for an extension that is starting.
func invoke(ctx context.Context, k *admin.Client, q *adminv1.CallToolRequest) (*adminv1.ToolResult, error) {
	end, active := time.Now().Add(startTimeout), false
	for {
		result, err := k.CallTool(ctx, q)
		missing := errors.Is(err, contract.ErrNotFound) || errors.Is(err, contract.ErrUnavailable)
		if !missing || active || !time.Now().Before(end) {
			return result, err
		}
		state, errState := stateOf(ctx, k, q.GetName())
		switch {
		case errState != nil:
			return nil, errState
		case state == contract.StateActive: // since the call
			active = true
			continue
		case !slices.Contains(
			[]string{contract.StateStarting, contract.StateInactive, contract.StateBackingOff}, state):
			return result, err
		}
		select {
		case <-time.After(startPoll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stateOf returns the state of the extension of a tool; empty: there is none.
func stateOf(ctx context.Context, k *admin.Client, name string) (string, error) {
	extension, _, _ := strings.Cut(name, "/")
	all, err := admin.Extensions(ctx, k)
	for _, x := range all {
		if x.GetId() == extension {
			return x.GetState(), err
		}
	}
	return "", err
}
