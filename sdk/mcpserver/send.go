package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

// send sends a text, with the client's name, to the recipient of a channel or to a person, and
// waits for the result over restarts of the kernel.
func (s *Server) send(
	ctx context.Context, req *mcp.CallToolRequest, client acting, arguments json.RawMessage,
) (content string, isError bool, err error) {
	var args clients.Send
	if err := decode(arguments, &args); err != nil {
		return "", false, err
	}
	args = clients.Send{
		Client: client.Name, For: client.asked(), Channel: args.Channel, Person: args.Person, Text: args.Text,
	}
	said := args
	s.mu.Lock()
	args.Join = s.sending[said] == 0
	s.sending[said]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sending[said]--; s.sending[said] == 0 {
			delete(s.sending, said)
		}
	}()
	args.ID = rand.Text()
	ctx, cancel := s.waiting(ctx)
	defer cancel()
	notes := s.progress(ctx, req)
	defer notes.end()
	tried, accepted, interrupted := false, false, false
	for attempt := 1; ; attempt++ {
		k, err := s.connect(ctx)
		if err == nil {
			tried = true
			var result contract.ToolResult
			if result, err = sendOnce(ctx, k, &args, &accepted); err == nil {
				return result.Content, result.Error, nil
			}
		}
		if !stopped(err) {
			if !accepted && !interrupted {
				err = fmt.Errorf("%w; nothing was sent", err)
			}
			return "", false, err
		}
		s.disconnect(k)
		interrupted = tried
		if !tried {
			return "", false, fmt.Errorf("%w; nothing was sent", err)
		}
		notes.note("the kernel has stopped; the text is kept")
		if attempt == maxAttempts || !s.sleep(ctx) {
			if accepted {
				return "", false, fmt.Errorf("%w; the text is kept, and is sent when the kernel runs again: do not send "+
					"it again", err)
			}
			return "", false, fmt.Errorf("%w; it is unknown whether the text will be sent: send the same again within "+
				"ten minutes, and it is sent once", err)
		}
	}
}

// sendOnce has a text sent, or joins it, and waits for the result.
func sendOnce(
	ctx context.Context, k *admin.Client, args *clients.Send, accepted *bool,
) (result contract.ToolResult, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if args.After == 0 {
		newest, err := admin.Events(ctx, k, &adminv1.EventsRequest{Limit: 1})
		if err != nil {
			return result, err
		}
		for _, e := range newest {
			args.After = e.GetSeq()
		}
	}
	sent, err := callTool[clients.Sent](ctx, k, &adminv1.CallToolRequest{Name: clients.ToolSend}, args)
	if err != nil {
		return result, err
	}
	*accepted = true
	args.ID, args.After = sent.ID, sent.After
	result.ID, result.Content = sent.ID, sent.Done
	if sent.Done == "" {
		results, err := k.Events(ctx, &adminv1.EventsRequest{
			Topic: clients.TopicSent, Follow: true, Ascending: true, After: sent.After,
		})
		for result.ID = ""; result.ID != sent.ID; {
			if err != nil {
				return result, err
			}
			e, errOf := results.Recv()
			result = contract.ToolResult{}
			if err = errOf; err == nil {
				err = json.Unmarshal(e.GetPayload(), &result)
			}
		}
	}
	// Without it, the same text would join this one for some minutes.
	_, _ = callTool[struct{}](ctx, k, &adminv1.CallToolRequest{Name: clients.ToolSent}, args)
	return result, nil
}
