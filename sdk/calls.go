package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// call runs one tool. An error of the tool is a failed result, which the model
// sees; the request itself fails only if the call was cancelled, has a conflict or
// is interrupted by a shutdown.
func (a *activation) call(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	tool := a.instance.tool(r.GetName())
	if tool == nil {
		return nil, fmt.Errorf("extension %s has no tool %q: %w", a.kernel.ID(), r.GetName(), contract.ErrNotFound)
	}
	arguments := json.RawMessage(r.GetArguments())
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if !json.Valid(arguments) {
		return failed("the arguments are not valid JSON"), nil
	}
	location := a.kernel.location
	if zone := r.GetTimezone(); zone != "" {
		if loaded, err := time.LoadLocation(zone); err == nil {
			location = loaded
		}
	}
	if tool.Interrupt || tool.Waits { // may wait for days
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(a.kernel.draining, func() { cancel(errShutdown) })()
	}
	result, err := a.run(WithLane(ctx, r.GetLane()), tool, ToolCall{
		ID: r.GetCallId(), Name: r.GetName(), Arguments: arguments,
		Session: r.GetSession(), Agent: r.GetAgent(), ReplyTo: r.GetReplyTo(), Channel: r.GetChannel(),
		Group: r.GetGroup(), Memory: r.GetMemory(), Sender: r.GetSender(), Language: r.GetLanguage(),
		Thread: r.GetThread(), Input: r.GetInput(),
		Principal: contract.PrincipalOf(r.GetPrincipal()), Location: location, Repeat: r.GetRepeat(), Command: r.GetCommand(),
	})
	if err != nil {
		switch {
		case errors.Is(interrupted(ctx, err), errShutdown): // no result: the kernel repeats the call if it may
			return nil, fmt.Errorf("%w: extension %s is shutting down", contract.ErrGone, a.kernel.ID())
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil, err
		case errors.Is(err, contract.ErrConflict): // the kernel calls again
			return nil, err
		}
		return failed(err.Error()), nil
	}
	effects, err := result.Effects.protos()
	if err != nil {
		return failed(fmt.Sprintf("effects of %s: %v", r.GetName(), err)), nil
	}
	out := &extensionv1.CallResult{
		Content: strings.ToValidUTF8(result.Content, "\uFFFD"), IsError: result.IsError,
		Nothing: result.Nothing, Effects: effects, Blobs: result.Blobs,
	}
	if r.GetCommand() != "" && tool.Say != nil && !result.IsError {
		out.Text = strings.ToValidUTF8(tool.Say(result.Content, r.GetLanguage()), "\uFFFD")
	}
	if size := proto.Size(out); size > maxCommit {
		return failed(fmt.Sprintf("result of %s has %d bytes (at most %d)", r.GetName(), size, maxCommit)), nil
	}
	return out, nil
}

func (a *activation) run(ctx context.Context, t *Tool, c ToolCall) (result ToolResult, err error) {
	defer guard(a.log, "tool "+t.Name, &err)
	return t.Call(ctx, c)
}

func failed(why string) *extensionv1.CallResult {
	return &extensionv1.CallResult{Content: strings.ToValidUTF8(why, "\uFFFD"), IsError: true}
}

// complete streams a completion. The first delta names the model.
func (a *activation) complete(ctx context.Context, r *CompleteRequest, send func(*Delta) error) (err error) {
	if a.instance.ext.Models == nil {
		return fmt.Errorf("extension %s has no models: %w", a.kernel.ID(), contract.ErrNotFound)
	}
	defer guard(a.log, "model "+r.GetModel(), &err)
	first := true
	return a.instance.ext.Models.Complete(ctx, r, func(d *Delta) error {
		if first && d.GetModel() == "" {
			d = proto.CloneOf(d)
			d.Model = a.kernel.ID() + "/" + r.GetModel()
		}
		first = false
		return send(d)
	})
}

// drafts shows the drafts of one stream, each in its own goroutine, which skips to
// the newest text when the channel is slower than the model.
type drafts struct {
	show func(ctx context.Context, d Draft)

	wg     sync.WaitGroup
	mu     sync.Mutex
	newest map[Draft]*Draft // by address and id; nil: already shown
}

type draftServer = grpc.ClientStreamingServer[extensionv1.DraftUpdate, extensionv1.DraftResponse]

func (a *activation) draft(ctx context.Context, stream draftServer) error {
	drafter, ok := a.instance.ext.Channel.(Drafter)
	if !ok {
		return fmt.Errorf("extension %s shows no drafts: %w", a.kernel.ID(), contract.ErrNotFound)
	}
	s := &drafts{newest: make(map[Draft]*Draft), show: func(ctx context.Context, d Draft) {
		var err error
		defer guard(a.log, "draft", &err)
		drafter.Draft(ctx, d)
	}}
	for {
		u, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			s.wg.Wait()
			return stream.SendAndClose(&extensionv1.DraftResponse{})
		}
		if err != nil {
			s.wg.Wait()
			return err
		}
		s.update(ctx, Draft{
			Conversation: u.GetConversation(), Thread: u.GetThread(), ID: u.GetDraftId(),
			ReplyTo: u.GetReplyTo(), Text: u.GetText(), Done: u.GetDone(),
		})
	}
}

func (s *drafts) update(ctx context.Context, d Draft) {
	key := Draft{Conversation: d.Conversation, Thread: d.Thread, ID: d.ID}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, running := s.newest[key]
	s.newest[key] = &d
	if running {
		return
	}
	s.wg.Go(func() {
		for {
			s.mu.Lock()
			next := s.newest[key]
			if next == nil {
				delete(s.newest, key)
				s.mu.Unlock()
				return
			}
			s.newest[key] = nil
			s.mu.Unlock()
			s.show(ctx, *next)
		}
	})
}
