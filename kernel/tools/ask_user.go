package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// answerLife is how long a question stays open if the model sets no timeout.
const answerLife = time.Hour

func askUser(ctx context.Context, r *running) (*extensionv1.CallResult, error) {
	var args struct {
		Question string
		Options  []string
		Timeout  int `json:"timeout_seconds"`
	}
	if err := json.Unmarshal(arguments(r.call.Arguments), &args); err != nil {
		return nil, err
	}
	empty := func(s string) bool { return strings.TrimSpace(s) == "" }
	if empty(args.Question) || slices.ContainsFunc(args.Options, empty) {
		return r.fail("The question or an option is empty. No one was asked.")
	}
	q, life := ask.Question{Kind: contract.AskAnswer, Text: args.Question}, answerLife
	if len(args.Options) > 0 {
		q.Kind, q.Options = contract.AskChoose, args.Options
	}
	if args.Timeout > 0 {
		life = time.Duration(args.Timeout) * time.Second
	}
	answered, refusal, err := r.ask(ctx, q, life, "There is no answer: %s.")
	switch {
	case err != nil:
		return nil, err
	case refusal != "":
		return r.fail(refusal)
	}
	result, err := json.Marshal(map[string]string{"answer": answered.Answer, "by": answered.By})
	if err != nil {
		return nil, err
	}
	return r.finish(string(result), false)
}
