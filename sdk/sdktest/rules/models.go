package rules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

var modelRules = []rule{
	{
		name: "model", check: (*run).completes,
		expected: "Complete streams deltas of which the last one has a finish reason, or ends with an error",
		hint:     "set finish (stop, length, tool_calls, refusal) on the last delta: without it the answer was cut off",
	},
	{
		name: "model-cancel", check: (*run).completionCancelled,
		expected: "a cancelled completion leaves the extension usable",
		hint:     "pass the cancellation of the request on to the provider",
	},
}

func (r *run) models(ctx context.Context) (s *session, model string, err error) {
	if len(r.Spec.Provides.Models) == 0 {
		return nil, "", skipped("it provides no models")
	}
	_, model, _ = strings.Cut(r.Spec.Provides.Models[0], "/")
	s, err = r.active(ctx)
	return s, strings.ReplaceAll(model, "*", "verify"), err
}

func request(model string) *extensionv1.CompleteRequest {
	return &extensionv1.CompleteRequest{
		Model: model, MaxTokens: 64, Messages: []*extensionv1.Message{
			{Role: "system", Content: "You are a test."}, {Role: "user", Content: "Hello"},
		},
	}
}

func (r *run) completes(ctx context.Context) (string, error) {
	s, model, err := r.models(ctx)
	if err != nil {
		return "", err
	}
	bounded, cancel := r.within(ctx)
	defer cancel()
	stream, err := extensionv1.NewModelsClient(s.conn).Complete(bounded, request(model))
	if err != nil {
		return "", s.why(err)
	}
	n, finish := 0, ""
	for {
		d, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && finish == "":
			return "", fmt.Errorf("the stream ended after %s, none with a finish reason", count(n, "delta"))
		case errors.Is(err, io.EOF):
			return fmt.Sprintf("%s, finish %s", count(n, "delta"), finish), nil
		case err != nil && s.ended(), status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Unimplemented:
			return "", s.why(err)
		case err != nil:
			if err := panicked("", err); err != nil {
				return "", err
			}
			return "an error: " + explained(err).Error(), nil
		case finish != "" && (d.GetText() != "" || d.GetCall() != nil):
			return "", fmt.Errorf("a delta with text or a call after the one with finish %s", finish)
		}
		n++
		if d.GetFinish() != "" {
			finish = d.GetFinish()
		}
	}
}

func (r *run) completionCancelled(ctx context.Context) (string, error) {
	s, model, err := r.models(ctx)
	if err != nil {
		return "", err
	}
	bounded, cancel := r.within(ctx)
	stream, err := extensionv1.NewModelsClient(s.conn).Complete(bounded, request(model))
	if err == nil {
		go cancel()
		_, _ = stream.Recv()
	}
	cancel()
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	return "it answers afterwards", nil
}
