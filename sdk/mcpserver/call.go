package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

const (
	maxAttempts  = 30               // of a call that may be repeated
	progressTime = 15 * time.Second // between two notes on a wait

	recentAnswers = 100 // that may not have reached the extension
)

// call answers a call of the client. What goes wrong is a result, which its model reads.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	t := s.offered[req.Params.Name]
	s.mu.Unlock()
	if t == nil {
		return nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", req.Params.Name),
		}
	}
	arguments := req.Params.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	content, isError, err := s.run(ctx, req, t, arguments)
	if err != nil {
		content, isError = text(err), true
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: content}}, IsError: isError}, nil
}

// run records a call and makes it.
func (s *Server) run(
	ctx context.Context, req *mcp.CallToolRequest, t *tool, arguments json.RawMessage,
) (content string, isError bool, err error) {
	client, err := s.record(ctx, t, arguments)
	if err != nil {
		return "", false, err
	}
	s.mu.Lock()
	approve := t.about.GetApprove() || clients.Matches(s.approve, t.full, false)
	s.mu.Unlock()
	if approve {
		if refusal, err := s.approval(ctx, req, client, t, arguments); refusal != "" || err != nil {
			return refusal, true, err
		}
	}
	switch t.full {
	case askUser:
		content, err = s.askUser(ctx, req, client, arguments)
		return content, false, err
	case sendToChannel, sendToPerson:
		return s.send(ctx, req, client, arguments)
	}
	if t.full == createTask {
		arguments = named(arguments)
	}
	repeatable := t.about.GetReadOnly() || t.full == createTask
	for attempt := 1; ; attempt++ {
		k, err := s.connect(ctx)
		if err == nil {
			content, isError, err = s.once(ctx, k, client, t, arguments)
		}
		if !stopped(err) {
			return content, isError, err
		}
		what := "its extension"
		if k == nil || !alive(ctx, k) {
			what = "the kernel"
			s.disconnect(k)
		}
		switch {
		case !repeatable && k != nil:
			return "", false, fmt.Errorf("%s stopped while %s ran: it is unknown whether it had its effect; find out "+
				"before you call it again", what, req.Params.Name)
		case !repeatable:
			return "", false, fmt.Errorf("%w; nothing was done", err)
		case attempt == maxAttempts || !s.sleep(ctx):
			return "", false, err
		}
	}
}

// named gives a task that has no name one, so that it can be given again.
func named(arguments json.RawMessage) json.RawMessage {
	var args map[string]any
	if err := json.Unmarshal(arguments, &args); err != nil || args["name"] != nil && args["name"] != "" {
		return arguments
	}
	args["name"] = "task-" + strings.ToLower(rand.Text()[:10])
	encoded, err := json.Marshal(args)
	if err != nil {
		return arguments
	}
	return encoded
}

// alive reports whether a kernel answers.
func alive(ctx context.Context, k *admin.Client) bool {
	_, err := k.Extensions(ctx, &adminv1.ExtensionsRequest{})
	return err == nil
}

// record records a call, if the client may make it.
func (s *Server) record(ctx context.Context, t *tool, arguments json.RawMessage) (c acting, err error) {
	s.mu.Lock()
	name := s.client
	s.mu.Unlock()
	if name == nil {
		return c, fmt.Errorf("%w: the client is no longer allowed", contract.ErrDenied)
	}
	call := clients.Call{
		Client: name.Name, Tool: t.full, Private: t.about.GetPrivate(), Arguments: string(arguments),
	}
	for attempt := 1; ; attempt++ {
		k, err := s.connect(ctx)
		if err == nil {
			c.Client, err = callTool[clients.Client](ctx, k, &adminv1.CallToolRequest{Name: clients.ToolCall}, call)
		}
		if err == nil {
			c.person, err = personOf(ctx, k, c.Client)
		}
		if !stopped(err) {
			return c, err
		}
		s.disconnect(k)
		if k == nil || attempt == 2 { // the connection may have been to an earlier kernel
			return c, fmt.Errorf("%w; nothing was done", err)
		}
	}
}

// once makes a call once.
func (s *Server) once(
	ctx context.Context, k *admin.Client, client acting, t *tool, arguments json.RawMessage,
) (content string, isError bool, err error) {
	switch t.full {
	case listChannels, listAgents:
		content, err = s.directory(ctx, k, t.full)
		return content, false, err
	}
	q := &adminv1.CallToolRequest{
		Name: t.full, Arguments: arguments, Person: client.person, Household: client.Person == "",
	}
	result, err := invoke(ctx, k, q)
	return result.GetContent(), result.GetIsError(), err
}

// directory answers list_channels and list_agents.
func (s *Server) directory(ctx context.Context, k *admin.Client, full string) (string, error) {
	dir, err := k.Directory(ctx, &adminv1.DirectoryRequest{})
	if err != nil {
		return "", err
	}
	type row struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Readiness   string `json:"readiness,omitempty"`
		Detail      string `json:"detail,omitempty"`
		Default     bool   `json:"default,omitempty"`
	}
	rows := []row{}
	key := "channels"
	if full == listAgents {
		key = "agents"
		for _, a := range dir.GetAgents() {
			if a.GetEnabled() {
				rows = append(rows, row{ID: a.GetId(), Name: a.GetName(), Description: a.GetDescription()})
			}
		}
	} else {
		for _, c := range admin.Channels(dir) {
			rows = append(rows, row{ID: c.ID, Name: c.Name, Readiness: c.Status, Detail: c.Detail, Default: c.Default})
		}
	}
	encoded, err := json.Marshal(map[string]any{key: rows})
	return string(encoded), err
}

// decode decodes the arguments of one of the kernel's tools.
func decode(arguments json.RawMessage, into any) error {
	if err := json.Unmarshal(arguments, into); err != nil {
		return fmt.Errorf("%w: read the arguments: %w", contract.ErrInvalid, err)
	}
	return nil
}

// approval asks the person for whom the client acts before a call. The refusal is empty if
// they agree.
func (s *Server) approval(
	ctx context.Context, req *mcp.CallToolRequest, client acting, t *tool, arguments json.RawMessage,
) (refusal string, err error) {
	shortened := string(arguments)
	if len(shortened) > 1000 {
		shortened = strings.ToValidUTF8(shortened[:1000], "") + "..."
	}
	q, err := s.ask(ctx, req, clients.Ask{
		Client: client.Name, For: client.asked(), Approve: true,
		Question: "run " + t.full + "?\n\n```\n" + shortened + "\n```",
	})
	switch {
	case err != nil:
		return "", err
	case q.Outcome == contract.AskAnswered && q.Answer == "yes":
		return "", nil
	}
	return "The user did not allow it. Nothing was done.", nil
}

// askUser answers ask_user.
func (s *Server) askUser(
	ctx context.Context, req *mcp.CallToolRequest, client acting, arguments json.RawMessage,
) (string, error) {
	args := clients.Ask{}
	if err := decode(arguments, &args); err != nil {
		return "", err
	}
	args.Client, args.For, args.Approve = client.Name, client.asked(), false
	q, err := s.ask(ctx, req, args)
	switch {
	case err != nil:
		return "", err
	case q.Outcome == contract.AskExpired:
		return "", errors.New("there is no answer: no one answered in time")
	case q.Outcome != contract.AskAnswered:
		return "", errors.New("there is no answer: the user did not want to answer, or no one could be asked")
	}
	encoded, err := json.Marshal(map[string]string{"answer": q.Answer, "by": q.By})
	return string(encoded), err
}

// ask asks a person and waits for the answer, over restarts of the kernel. When ctx ends,
// or the client's connection does, the question stays open.
func (s *Server) ask(ctx context.Context, req *mcp.CallToolRequest, args clients.Ask) (clients.Question, error) {
	ctx, cancel := s.waiting(ctx)
	defer cancel()
	notes := s.progress(ctx, req)
	defer notes.end()
	for asked := false; ; {
		k, err := s.connect(ctx)
		if err == nil {
			var q clients.Question
			if q, err = askOnce(ctx, k, args, func() {
				asked = true
				notes.note("waiting for the user's answer")
			}); err == nil {
				return q, nil
			}
		}
		if !stopped(err) {
			return clients.Question{}, err
		}
		s.disconnect(k)
		if k == nil && !asked {
			return clients.Question{}, fmt.Errorf("%w; no one was asked", err)
		}
		notes.note("the kernel has stopped; the question is kept")
		if !s.sleep(ctx) {
			return clients.Question{}, ctx.Err()
		}
	}
}

// askOnce asks a question, or joins it, and waits for the answer.
func askOnce(ctx context.Context, k *admin.Client, args clients.Ask, asked func()) (q clients.Question, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	newest, err := admin.Events(ctx, k, &adminv1.EventsRequest{Limit: 1})
	if err != nil {
		return q, err
	}
	follow := &adminv1.EventsRequest{Topic: clients.TopicAnswered, Follow: true, Ascending: true}
	for _, e := range newest {
		follow.After = e.GetSeq()
	}
	answers, err := k.Events(ctx, follow)
	if err != nil {
		return q, err
	}
	if q, err = callTool[clients.Question](ctx, k, &adminv1.CallToolRequest{Name: clients.ToolAsk}, args); err != nil {
		return q, err
	}
	take := func(e *busv1.Event) {
		var answer contract.UserAnswer
		if err := json.Unmarshal(e.GetPayload(), &answer); err == nil && answer.Ref == q.ID {
			q.Outcome, q.Answer, q.By = answer.Outcome, answer.Answer, answer.By
		}
	}
	if q.Outcome == "" {
		asked()
		// The answer may have come before answers began, and not have reached the extension.
		before, err := admin.Events(ctx, k, &adminv1.EventsRequest{Topic: clients.TopicAnswered, Limit: recentAnswers})
		if err != nil {
			return q, err
		}
		for _, e := range before {
			take(e)
		}
	}
	for q.Outcome == "" {
		e, err := answers.Recv()
		if err != nil {
			return q, err
		}
		take(e)
	}
	// Without it, the client would get the same answer to the same question for a day.
	_, _ = callTool[clients.Question](ctx, k, &adminv1.CallToolRequest{Name: clients.ToolAnswered},
		map[string]string{"id": q.ID})
	return q, nil
}

// progress tells a client that asked for it that its call still waits.
func (s *Server) progress(ctx context.Context, req *mcp.CallToolRequest) *notes {
	n := &notes{ctx: ctx, req: req, done: make(chan struct{}), ended: make(chan struct{})}
	n.message.Store(new(string))
	go func() {
		defer close(n.ended)
		tick := time.NewTicker(progressTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				n.note(*n.message.Load())
			case <-n.done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return n
}

// notes are those on the progress of one call.
type notes struct {
	ctx         context.Context //nolint:containedctx // that of the call
	req         *mcp.CallToolRequest
	count       atomic.Int64
	message     atomic.Pointer[string]
	done, ended chan struct{}
}

func (n *notes) note(message string) {
	n.message.Store(&message)
	token := n.req.Params.GetProgressToken()
	if token == nil || n.req.Session == nil {
		return
	}
	_ = n.req.Session.NotifyProgress(n.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: float64(n.count.Add(1)), Message: message,
	})
}

func (n *notes) end() {
	close(n.done)
	<-n.ended
}
