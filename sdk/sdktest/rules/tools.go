package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

var toolRules = []rule{
	{
		name: "tool-unknown", check: (*run).toolUnknown,
		expected: "a call of a tool that it does not have is an error",
		hint:     "answer NOT_FOUND, or a result with is_error",
	},
	{
		name: "tool-garbage", check: (*run).toolGarbage,
		expected: "arguments that are no JSON, or do not fit, are an error, and the process lives on",
		hint:     "decode the arguments before anything else, and answer with is_error if they are wrong",
	},
	{
		name: "tool-call", check: (*run).toolCall,
		expected: "a call with fitting arguments has a result",
		hint: "return what went wrong as content with is_error: the model reads it; an error of the request " +
			"means that there is no result",
	},
	{
		name: "tool-repeat", check: (*run).toolRepeat,
		expected: "a call with the call_id of an earlier one repeats it",
		hint:     "use call_id as the id of what the tool does elsewhere, and answer as the first time",
	},
	{
		name: "tool-cancel", check: (*run).toolCancel,
		expected: "the end of a cancelled call leaves the extension usable",
		hint:     "watch the cancellation of the request while you wait for something",
	},
	{
		name: "command", check: (*run).command,
		expected: "each command of the manifest answers a person who uses it",
		hint:     "set command of the tool, and return a text or a content",
	},
}

func (r *run) tools(ctx context.Context) (*session, []*extensionv1.Tool, error) {
	if r.described != nil && len(r.described.GetTools()) == 0 {
		return nil, nil, skipped("it has no tools")
	}
	s, err := r.active(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, r.described.GetTools(), nil
}

// callTime is how long a tool that waits is left waiting.
const callTime = 300 * time.Millisecond

// call calls a tool within the patience. The lane of the call ends with it.
func (s *session) call(ctx context.Context, request *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	ctx, cancel := s.run.within(ctx)
	defer cancel()
	if request.CallId == "" {
		s.run.tokens++
		request.CallId = fmt.Sprintf("c%d", s.run.tokens)
	}
	s.run.tokens++
	request.Lane = fmt.Sprintf("call%d", s.run.tokens)
	request.Session, request.Agent, request.Timezone = sampleSession, "verify", "UTC"
	s.run.kernel.lend(request.GetLane())
	result, err := extensionv1.NewToolsClient(s.conn).Call(ctx, request)
	if ctx.Err() == nil { // what was cancelled may still commit something
		s.run.kernel.takeBack(request.GetLane())
	}
	if err != nil {
		return nil, err
	}
	if err := s.run.kernel.take(result.GetEffects(), "the result of "+request.GetName()); err != nil {
		return result, nil // noted
	}
	t := s.run.tool(request.GetName())
	if effects := len(result.GetEffects()) + s.run.kernel.effectsUnder(request.GetLane()); t.GetReadOnly() && effects > 0 {
		s.run.kernel.note("read-only", fmt.Sprintf("%s is described as read_only, and had %s", t.GetName(),
			count(effects, "effect")))
	}
	return result, nil
}

func (r *run) tool(name string) *extensionv1.Tool {
	for _, t := range r.described.GetTools() {
		if t.GetName() == name {
			return t
		}
	}
	return nil
}

func (r *run) toolUnknown(ctx context.Context) (string, error) {
	s, _, err := r.tools(ctx)
	if err != nil {
		return "", err
	}
	result, err := s.call(ctx, &extensionv1.CallRequest{Name: "no_such_tool", Arguments: []byte("{}")})
	if err == nil && !result.GetIsError() {
		return "", fmt.Errorf("a result: %s", contract.Truncate(result.GetContent(), 80, "…"))
	}
	if _, healthErr := s.health(ctx); healthErr != nil {
		return "", healthErr
	}
	return said(result, err), nil
}

// said is an answer to a call in short.
func said(result *extensionv1.CallResult, err error) string {
	text := result.GetContent()
	if err != nil {
		text = contract.FromStatus(err).Error()
	}
	return contract.Truncate(text, 80, "…")
}

// garbageArguments fit no schema that asks for anything; the first ones are no JSON.
var garbageArguments = []string{
	"{", "\xff\xfe", "{} {}", "null", "[]", `"text"`, "0", `{"\u0000":[{}]}`,
	`{"id":{},"name":[],"text":{},"message":17,"channel_id":[],"cron":{},"at":[],"delay_seconds":"x"}`,
}

func (r *run) toolGarbage(ctx context.Context) (string, error) {
	s, tools, err := r.tools(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range tools {
		for _, arguments := range garbageArguments {
			bounded, cancel := r.patient(ctx, t)
			result, err := s.call(bounded, &extensionv1.CallRequest{Name: t.GetName(), Arguments: []byte(arguments)})
			waited := bounded.Err() != nil || status.Code(err) == codes.DeadlineExceeded
			cancel()
			if err := panicked(result.GetContent(), err); err != nil {
				return "", fmt.Errorf("%s with %q: %w", t.GetName(), arguments, err)
			}
			switch {
			case s.ended():
				return "", fmt.Errorf("%s with %q: %w", t.GetName(), arguments, s.why(contract.ErrGone))
			case err == nil && !result.GetIsError() && !json.Valid([]byte(arguments)):
				return "", fmt.Errorf("%s succeeds with %q", t.GetName(), arguments)
			case waited && !waits(t):
				return "", fmt.Errorf("%s with %q: no answer within %s", t.GetName(), arguments, r.patience)
			}
		}
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d calls, all answered", len(tools)*len(garbageArguments)), nil
}

func waits(t *extensionv1.Tool) bool { return t.GetInterruptible() || t.GetWaits() || t.GetApprove() }

// patient bounds a call: one of a tool that waits ends soon.
func (r *run) patient(ctx context.Context, t *extensionv1.Tool) (context.Context, context.CancelFunc) {
	if waits(t) {
		return context.WithTimeout(ctx, callTime)
	}
	return r.within(ctx)
}

// callable are the tools that the rules call with fitting arguments: none for which a
// person has to be asked.
func callable(tools []*extensionv1.Tool) []*extensionv1.Tool {
	return slices.DeleteFunc(slices.Clone(tools), (*extensionv1.Tool).GetApprove)
}

func (r *run) toolCall(ctx context.Context) (string, error) {
	s, tools, err := r.tools(ctx)
	if err != nil {
		return "", err
	}
	succeeded, failed := 0, 0
	for _, t := range callable(tools) {
		bounded, cancel := r.patient(ctx, t)
		result, err := s.call(bounded, &extensionv1.CallRequest{Name: t.GetName(), Arguments: Arguments(t.GetSchema())})
		ended := bounded.Err() != nil || status.Code(err) == codes.DeadlineExceeded // its clock may be ahead
		cancel()
		switch {
		case waits(t) && ended && !s.ended():
			continue
		case err != nil:
			return "", fmt.Errorf("%s: %w", t.GetName(), s.why(err))
		case panicked(result.GetContent(), nil) != nil:
			return "", fmt.Errorf("%s: %w", t.GetName(), panicked(result.GetContent(), nil))
		case result.GetIsError() && result.GetContent() == "":
			return "", fmt.Errorf("%s: is_error without a content", t.GetName())
		case result.GetIsError():
			failed++
		default:
			succeeded++
		}
	}
	return fmt.Sprintf("%d succeeded, %d failed and said why", succeeded, failed), nil
}

func (r *run) toolRepeat(ctx context.Context) (string, error) {
	s, tools, err := r.tools(ctx)
	if err != nil {
		return "", err
	}
	n := 0
	for _, t := range callable(tools) {
		if waits(t) || !t.GetReadOnly() && !t.GetIdempotent() {
			continue // the kernel does not repeat it
		}
		r.tokens++
		id := fmt.Sprintf("again%d", r.tokens)
		var results []*extensionv1.CallResult
		for _, repeat := range []bool{false, true} {
			result, err := s.call(ctx, &extensionv1.CallRequest{
				CallId: id, Name: t.GetName(), Arguments: Arguments(t.GetSchema()), Repeat: repeat,
			})
			if err != nil {
				return "", fmt.Errorf("%s: %w", t.GetName(), s.why(err))
			}
			results = append(results, result)
		}
		if results[0].GetIsError() != results[1].GetIsError() {
			return "", fmt.Errorf("%s says %q, and repeated %q", t.GetName(), said(results[0], nil), said(results[1], nil))
		}
		n++
	}
	if n == 0 {
		return "", skipped("no tool is described as read_only or idempotent: the kernel repeats none")
	}
	return count(n, "tool") + " repeated", nil
}

func (r *run) toolCancel(ctx context.Context) (string, error) {
	s, tools, err := r.tools(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range callable(tools) {
		bounded, cancel := context.WithCancel(ctx)
		go cancel()
		_, _ = s.call(bounded, &extensionv1.CallRequest{Name: t.GetName(), Arguments: Arguments(t.GetSchema())})
		cancel()
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	_, err = s.call(ctx, &extensionv1.CallRequest{Name: "no_such_tool", Arguments: []byte("{}")})
	if err != nil && s.ended() {
		return "", s.why(err)
	}
	return "it answers afterwards", nil
}

func (r *run) command(ctx context.Context) (string, error) {
	if len(r.Spec.Provides.Commands) == 0 {
		return "", skipped("it has no commands")
	}
	s, tools, err := r.tools(ctx)
	if err != nil {
		return "", err
	}
	n := 0
	for _, c := range r.Spec.Provides.Commands {
		i := slices.IndexFunc(tools, func(t *extensionv1.Tool) bool { return t.GetCommand() == c.Name })
		if i < 0 {
			return "", fmt.Errorf("no tool is the command /%s", c.Name)
		}
		t := tools[i]
		if waits(t) {
			continue
		}
		result, err := s.call(ctx, &extensionv1.CallRequest{
			Name: t.GetName(), Command: c.Name, Arguments: Arguments(t.GetSchema()), Language: "ru", Sender: "Anna",
		})
		if err != nil {
			return "", fmt.Errorf("/%s: %w", c.Name, s.why(err))
		}
		if err := panicked(result.GetContent(), nil); err != nil {
			return "", fmt.Errorf("/%s: %w", c.Name, err)
		}
		if result.GetContent() == "" && result.GetText() == "" {
			return "", errors.New("/" + c.Name + " answers nothing")
		}
		n++
	}
	return count(n, "command") + " answered", nil
}
