package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newApprovalsCommand() *cobra.Command {
	return group("approvals", "Tools that agents may call without asking", newApprovalsList(), newApprovalsRevoke())
}

// lastingApproval is one row of the list, also in JSON.
type lastingApproval struct {
	Agent        string `json:"agent"`
	Tool         string `json:"tool"`
	Channel      string `json:"channel,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	By           string `json:"by,omitempty"`
	AtUs         int64  `json:"at_us"`
}

func newApprovalsList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List lasting approvals", Args: cobra.NoArgs,
		Long: "Lists the tools that need approval, and that you have allowed for good with \"always\" or\n\"always here\".",
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the approvals", func(c *cobra.Command, k *admin.Client, _ []string) error {
		all, err := k.Approvals(c.Context(), &adminv1.ApprovalsRequest{})
		if err != nil {
			return err
		}
		rows := make([]lastingApproval, len(all.GetApprovals()))
		for i, a := range all.GetApprovals() {
			rows[i] = lastingApproval{a.GetAgent(), a.GetTool(), a.GetChannel(), a.GetConversation(), a.GetBy(), a.GetAtUs()}
		}
		return list(c, *asJSON, rows, "AGENT TOOL WHERE BY SINCE | BY SINCE",
			"Nothing is approved for good: agents ask before each call of a tool that needs approval.",
			func(_ *printer, x lastingApproval) []cell {
				where := strings.TrimSpace(x.Channel + " " + x.Conversation)
				if where == "" {
					where = "everywhere"
				}
				return []cell{text(x.Agent), text(x.Tool), text(where), text(dash(x.By)), text(ago(at(x.AtUs)))}
			})
	})
	return c
}

func newApprovalsRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke TOOL", Short: "Ask again before calls of a tool", Args: cobra.ExactArgs(1),
		Long:              "Ends the lasting approvals of a tool, in all conversations: its next call is asked about\nagain.",
		ValidArgsFunction: first(approvedTools),
	}
	agent := c.Flags().String("agent", "", "only those of this agent")
	asJSON := jsonFlag(c)
	c.RunE = withKernel("revoke approvals", func(c *cobra.Command, k *admin.Client, args []string) error {
		out, err := k.RevokeApprovals(c.Context(), &adminv1.RevokeApprovalsRequest{Agent: *agent, Tool: args[0]})
		if err != nil {
			return err
		}
		if out.GetRevoked() == 0 {
			return hinted(fmt.Errorf("%w: there is no lasting approval of %s", contract.ErrNotFound, args[0]),
				"switchboard approvals list")
		}
		if *asJSON {
			return printJSON(c, map[string]int32{"revoked": out.GetRevoked()})
		}
		ended := count(int(out.GetRevoked()), "approval")
		printerOf(c).line("Agents ask again before they call %s (%s ended).", args[0], ended)
		return nil
	})
	return c
}
