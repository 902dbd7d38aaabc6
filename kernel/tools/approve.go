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
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// approvalLife is how long a call waits for the user's approval.
const approvalLife = time.Hour

// Approval is a lasting one: the calls of the tool by the agent, or by the extension for
// itself, need no other, in one
// conversation, or everywhere except in groups that others read.
type Approval struct {
	Agent        string `json:"agent"`
	Tool         string `json:"tool"`
	Conversation string `json:"conversation,omitempty"` // its handle; empty: everywhere
	By           string `json:"by,omitempty"`           // as shown to people
	At           int64  `json:"at"`                     // Unix microseconds
}

// ApprovalPrefix is the prefix of the kernel's keys that hold an Approval.
const ApprovalPrefix = "approval/"

// Key is the kernel's key of a.
func (a Approval) Key() string { return ApprovalPrefix + a.Agent + "/" + a.Tool + "/" + a.Conversation }

// approval asks the user to approve a call, unless they have approved such calls for
// good. The answer is stored before the tool runs, so a repeated call does not ask
// again. A refusal is for the model.
func (r *running) approval(ctx context.Context) (refusal string, err error) {
	if given, err := r.approved(ctx); given || err != nil {
		return "", err
	}
	q, refusal, err := r.ask(ctx, ask.Question{Kind: contract.AskApprove, Text: r.approvalText(), Lasting: true},
		approvalLife, r.call.Name+" needs the approval of the user, and was not run: %s.")
	if err != nil || refusal != "" || q.Answer == words.Yes {
		return refusal, err
	}
	lasting := Approval{Agent: r.who(), Tool: r.call.Name, By: q.By, At: q.EndedAt}
	switch in := r.in.principal; {
	case q.Answer == words.AlwaysHere, q.Answer == words.Always && in.Confined:
		lasting.Conversation = in.Conversation
	case q.Answer != words.Always:
		return fmt.Sprintf("The user declined: %s was not run. Do not try it again unless they ask for it.", r.call.Name), nil
	}
	return "", r.commit(func(tx *bus.Tx) error {
		return journal.Save(tx, contract.KernelSource, lasting.Key(), lasting)
	})
}

// approved reports whether a lasting approval covers the call.
func (r *running) approved(ctx context.Context) (given bool, err error) {
	a, in := Approval{Agent: r.who(), Tool: r.call.Name}, r.in.principal
	err = r.Bus.View(ctx, func(j journal.Reader) error {
		for _, a.Conversation = range []string{in.Conversation, ""} {
			found, err := journal.Load[Approval](j, contract.KernelSource, a.Key())
			if given = found != nil && (a.Conversation != "" || !in.Confined); given || err != nil {
				return err
			}
		}
		return nil
	})
	return given, err
}

// RevokeApprovals ends the lasting approvals of an agent and a tool, each empty for all,
// and returns how many there were.
func RevokeApprovals(tx *bus.Tx, agent, tool string) (n int, err error) {
	all, err := journal.All[Approval](tx, contract.KernelSource, ApprovalPrefix)
	for _, a := range all {
		if cmp.Or(agent, a.Agent) == a.Agent && cmp.Or(tool, a.Tool) == a.Tool && err == nil {
			n++
			err = tx.KVDelete(contract.KernelSource, a.Key())
		}
	}
	return n, err
}

func (r *running) approvalText() string {
	dir, who, description := r.Directory.Current(), r.who(), ""
	if a := dir.Agent(who); a != nil {
		who = cmp.Or(a.Name, who)
	}
	if t := dir.Tool(r.call.Name); t != nil {
		description = t.Tool.GetDescription()
	}
	return command.DescribeCall(r.in.Language, who, r.call.Name, description, arguments(r.call.Arguments))
}
