// Package mcpserver is the extension behind `switchboard mcp`: it knows which MCP clients
// may call which tools, records each call, and asks the owner for them.
//
// Promises:
//   - A call of a client is recorded as the event mcp_server.called before it runs. A tool
//     that the configuration does not grant the client is refused.
//   - A question of a client is asked once. The same question of the same client joins the
//     open one, also after a crash of any process, and gets an answer that no one has
//     fetched yet, for a day.
//   - A text of a client is sent once, by the kernel's effect call, or with the mark of a
//     possible repetition. The same text of the same client, in another process, joins one
//     whose result no one has fetched, for ten minutes.
//   - What a client that acts for another person asks reaches that person, in private.
//
// The server itself (package sdk/mcpserver) runs in the client's process. All tools are
// private: only the owner's side calls them.
package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

const (
	keepAnswer   = 24 * time.Hour // for a client that asks again
	maxArguments = 2000           // bytes of a call's arguments that are recorded
	maxOpen      = 40             // questions, of all clients; the kernel allows 50 of one extension
)

// readers are the tools of a client whose configuration lists none: they only read.
var readers = []string{
	"core/list_channels", "core/list_agents", "memory/recall", "memory/list_memories", "scheduler/list_schedules",
	"tasks/list", "tasks/show",
}

// New returns the extension.
func New() sdk.Extension { return build(time.Now) }

func build(now func() time.Time) sdk.Extension {
	s := &server{now: now}
	const object = `{"type":"object","additionalProperties":false,`
	return sdk.Extension{
		ID:     clients.ID,
		Start:  s.start,
		Handle: s.handle,
		// The clients read the results.
		Results: func(context.Context, sdk.CallResult) (sdk.Effects, error) { return nil, nil },
		Tools: []sdk.Tool{
			{
				Name: "clients", Description: "List the MCP clients that the configuration allows.", ReadOnly: true,
				Private: true, Schema: json.RawMessage(object + `"properties":{}}`), Call: s.list,
			},
			{
				Name: "call", Description: "Record a call of an MCP client, if the client may make it.",
				Private: true, Idempotent: true, Call: s.call,
				Schema: json.RawMessage(object + `"required":["client","tool"],"properties":{"client":{"type":"string"},` +
					`"tool":{"type":"string"},"private":{"type":"boolean"},"arguments":{"type":"string"}}}`),
			},
			{
				Name: "ask", Description: "Ask the owner for an MCP client, or join the same open question.",
				Private: true, Idempotent: true, Call: s.ask,
				Schema: json.RawMessage(object + `"required":["client","question"],"properties":{"client":{"type":"string"},` +
					`"for":{"type":"string"},"approve":{"type":"boolean"},` +
					`"question":{"type":"string","minLength":1,"maxLength":4000},` +
					`"options":{"type":"array","items":{"type":"string","minLength":1,"maxLength":200},"minItems":2,` +
					`"maxItems":20},"timeout_seconds":{"type":"integer","minimum":10,"maximum":86400}}}`),
			},
			{
				Name: "send", Description: "Send a text for an MCP client, or join the same one that is under way.",
				Private: true, Idempotent: true, Call: s.send, Schema: json.RawMessage(object + sendSchema),
			},
			{
				Name: "sent", Description: "Forget a text of an MCP client, which has the result.",
				Private: true, Idempotent: true, Call: s.sent, Schema: json.RawMessage(object + sendSchema),
			},
			{
				Name: "answered", Description: "Forget a question of an MCP client, which has the answer.",
				Private: true, Idempotent: true, Call: s.fetch,
				Schema: json.RawMessage(object + `"required":["id"],"properties":{"id":{"type":"string"}}}`),
			},
		},
	}
}

// kernel is the part of sdk.Kernel that the extension uses.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Ask(ctx context.Context, tool string, arguments any) (sdk.ToolResult, error)
}

type server struct {
	k       kernel
	log     hclog.Logger
	now     func() time.Time
	allowed map[string]clients.Client
	approve []string // patterns of tools that need approval
}

func (s *server) start(_ context.Context, k *sdk.Kernel) error {
	var c struct {
		Clients map[string]clients.Client
		Approve []string
	}
	if err := k.Config(&c); err != nil {
		return err
	}
	s.k, s.log, s.allowed, s.approve = k, k.Log(), map[string]clients.Client{}, c.Approve
	for name, client := range c.Clients {
		if client.Name = name; client.Tools == nil {
			client.Tools = readers
		}
		s.allowed[name] = client
	}
	return nil
}

// names are the names of the clients, sorted.
func (s *server) names() []string {
	names := make([]string, 0, len(s.allowed))
	for name := range s.allowed {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *server) list(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
	all := []clients.Client{}
	for _, name := range s.names() {
		all = append(all, s.allowed[name])
	}
	return sdk.JSON(clients.List{Clients: all, Approve: s.approve})
}

// client returns a client of the configuration.
func (s *server) client(name string) (clients.Client, error) {
	c, ok := s.allowed[name]
	if !ok {
		return c, fmt.Errorf("%w: config.yaml allows no MCP client %q; it allows: %s", contract.ErrDenied, name,
			strings.Join(s.names(), ", "))
	}
	return c, nil
}

func (s *server) call(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args clients.Call
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	client, err := s.client(args.Client)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if !clients.Matches(client.Tools, args.Tool, args.Private) {
		return sdk.ToolResult{}, fmt.Errorf("%w: config.yaml does not grant the MCP client %s the tool %s; add it to "+
			"mcp.clients.%[2]s.tools", contract.ErrDenied, args.Client, args.Tool)
	}
	if len(args.Arguments) > maxArguments {
		args.Arguments = strings.ToValidUTF8(args.Arguments[:maxArguments], "") + "..."
	}
	s.log.Info("an MCP client calls a tool", "client", args.Client, "tool", args.Tool)
	return sdk.JSON(client, sdk.Publish(clients.TopicCalled, args))
}

const (
	questionPrefix = "question/" // + hash of what is asked
	idPrefix       = "id/"       // + id: the key of the question
)

func (s *server) ask(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args clients.Ask
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	if contract.Blank(args.Question) || slices.ContainsFunc(args.Options, contract.Blank) {
		return sdk.ToolResult{}, fmt.Errorf("%w: the question or an option is empty", contract.ErrInvalid)
	}
	if _, err := s.client(args.Client); err != nil {
		return sdk.ToolResult{}, err
	}
	words := []any{args.Client, args.Question, args.Approve, args.Options}
	if args.For != "" {
		words = append(words, args.For)
	}
	asked, err := json.Marshal(words)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	sum := sha256.Sum256(asked)
	key := questionPrefix + hex.EncodeToString(sum[:16])
	stored, err := s.k.Get(ctx, key)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	var q clients.Question
	if stored.Version != 0 {
		if err := stored.Decode(&q); err != nil {
			return sdk.ToolResult{}, err
		}
		if q.Outcome == "" || q.Outcome == contract.AskAnswered && s.now().Sub(q.Ended) < keepAnswer {
			return sdk.JSON(q)
		}
	}
	effects, err := s.prune(ctx, key)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if q.ID != "" {
		effects = append(effects, sdk.Delete(idPrefix+q.ID))
	}
	to, err := s.recipient(ctx, args.For, "")
	if err != nil {
		return sdk.ToolResult{}, fmt.Errorf("%w; no one was asked", err)
	}
	q = clients.Question{ID: strings.ToLower(rand.Text()), Client: args.Client, Created: s.now().UTC()}
	kind := contract.AskAnswer
	switch {
	case args.Approve:
		kind = contract.AskApprove
	case len(args.Options) > 0:
		kind = contract.AskChoose
	}
	if args.Timeout == 0 {
		args.Timeout = int64(time.Hour / time.Second)
	}
	return sdk.JSON(q, append(effects,
		sdk.PutAt(key, q, stored.Version), sdk.Put(idPrefix+q.ID, key),
		sdk.Publish(contract.TopicUserAsk, contract.UserAsk{
			Text: clients.Signed(args.Client, args.Question), Kind: kind, Options: args.Options, ExpiresSeconds: args.Timeout,
			ReplyTo: to.ReplyTo, Topic: clients.TopicAnswered, Ref: q.ID,
		}, sdk.Dedupe("ask/"+q.ID)))...)
}

// prune deletes questions whose time is over, except one. An error says that too many are
// open.
func (s *server) prune(ctx context.Context, except string) (effects sdk.Effects, err error) {
	open := 0
	err = s.k.Scan(ctx, questionPrefix, func(v sdk.Value) error {
		var q clients.Question
		switch err := v.Decode(&q); {
		case v.Key == except:
		case err != nil, s.now().Sub(q.Created) > 3*keepAnswer:
			effects = append(effects, sdk.DeleteAt(v.Key, v.Version), sdk.Delete(idPrefix+q.ID))
		case q.Outcome == "":
			open++
		}
		return nil
	})
	if err == nil && open >= maxOpen {
		err = fmt.Errorf("%w: %d questions of MCP clients are open; answer some first", contract.ErrFull, open)
	}
	return effects, err
}

// handle stores the answer to a question.
func (s *server) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	if e.Topic != clients.TopicAnswered {
		return nil, sdk.Drop("the topic " + e.Topic + " is unknown")
	}
	var answer contract.UserAnswer
	if err := e.Decode(&answer); err != nil {
		return nil, err
	}
	key, stored, q, err := s.question(ctx, answer.Ref)
	if err != nil || key == "" || q.Outcome != "" {
		return nil, err
	}
	q.Outcome, q.Answer, q.By, q.Ended = answer.Outcome, answer.Answer, answer.By, s.now().UTC()
	return sdk.Effects{sdk.PutAt(key, q, stored.Version)}, nil
}

// question returns the question of an id; the key is empty if there is none.
func (s *server) question(
	ctx context.Context, id string,
) (key string, stored sdk.Value, q clients.Question, err error) {
	at, err := s.k.Get(ctx, idPrefix+id)
	if err != nil || at.Version == 0 {
		return "", stored, q, err
	}
	if err := at.Decode(&key); err != nil {
		return "", stored, q, err
	}
	if stored, err = s.k.Get(ctx, key); err != nil || stored.Version == 0 {
		return "", stored, q, err
	}
	if err := stored.Decode(&q); err != nil || q.ID != id {
		return "", stored, q, err
	}
	return key, stored, q, nil
}

// fetch forgets a question. Its client saw the event with the answer, which may come here
// later.
func (s *server) fetch(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ ID string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	key, stored, q, err := s.question(ctx, args.ID)
	if err != nil || key == "" {
		return sdk.ToolResult{Content: "{}"}, err
	}
	return sdk.JSON(q, sdk.DeleteAt(key, stored.Version), sdk.Delete(idPrefix+q.ID))
}
