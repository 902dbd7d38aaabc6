package tools

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/words"
)

// approvalLife is how long a call waits for the user's approval.
const approvalLife = time.Hour

// approval asks the user to approve a call. The answer is stored before the tool
// runs, so a repeated call does not ask again. A refusal is for the model.
func (r *running) approval(ctx context.Context) (refusal string, err error) {
	q, refusal, err := r.ask(ctx, ask.Question{Kind: contract.AskApprove, Text: r.approvalText()}, approvalLife,
		r.call.Name+" needs the approval of the user, and was not run: %s.")
	if err == nil && refusal == "" && q.Answer != words.Yes {
		refusal = fmt.Sprintf("The user declined: %s was not run. Do not try it again unless they ask for it.", r.call.Name)
	}
	return refusal, err
}

func (r *running) approvalText() string {
	dir, who, description := r.Directory.Current(), r.lease.Agent, ""
	if a := dir.Agent(who); a != nil {
		who = cmp.Or(a.Name, who)
	}
	if t := dir.Tool(r.call.Name); t != nil {
		description = t.Tool.GetDescription()
	}
	return command.DescribeCall(r.in.Language, who, r.call.Name, description, arguments(r.call.Arguments))
}
