package main

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Kinds of steps of a story.
const (
	kindStory = "story" // an input of an agent with its turn
	kindSent  = "sent"  // a message for a channel
)

// story condenses a tree for people: an input and its turn become one step, outputs are
// replaced by the steps that followed, and deliveries and events without consequences are
// left out, except the asked one.
func story(n *admin.Node, asked string) *admin.Node {
	out := *n
	out.Children = nil
	for _, c := range n.Children {
		out.Children = append(out.Children, condense(c, asked)...)
	}
	switch {
	case n.Kind == admin.KindEvent && n.Input != "":
		merge(&out)
	case n.Kind == admin.KindEvent && strings.HasPrefix(n.Name, contract.TopicChannelSend):
		out.Kind = kindSent
	}
	return &out
}

// condense returns the story of a step: none, itself, or its children.
func condense(n *admin.Node, asked string) []*admin.Node {
	s := story(n, asked)
	quiet := n.Reason == "" && n.Attempts == 0 && n.ID != asked
	switch {
	case n.Kind == admin.KindNote && n.Name == contract.EntryContext,
		n.Kind == admin.KindEvent && n.Name == contract.TopicModelUsage && quiet,
		n.Kind == admin.KindDelivery && quiet && n.State == "done" && len(s.Children) == 0,
		n.Kind == admin.KindEvent && n.Source != "kernel" && quiet && n.Text == "" && n.State == "" && len(s.Children) == 0:
		return nil
	case n.Kind == admin.KindEvent && quiet && (n.Name == contract.TopicAgentOutput && n.State == contract.OutcomeOK ||
		strings.HasPrefix(n.Name, contract.TopicSessionIdle) || strings.HasPrefix(n.Name, contract.TopicToolResult)):
		return s.Children
	}
	return []*admin.Node{s}
}

// merge combines an input and its turn.
func merge(n *admin.Node) {
	n.Kind = kindStory
	var rest []*admin.Node
	var turn *admin.Node
	for _, c := range n.Children {
		if c.Kind == admin.KindTurn && turn == nil {
			turn = c
			rest = append(rest, c.Children...)
			continue
		}
		rest = append(rest, c)
	}
	switch n.Children = rest; {
	case turn != nil:
		n.State, n.TookMillis = turn.State, turn.TookMillis
	case n.Input == contract.InputRecord && n.State == "done":
		n.State = ""
	}
}

// describeInput names the agent, the kind of the input and its sender.
func describeInput(p *printer, n *admin.Node) string {
	agent := p.paint(green, strings.TrimPrefix(n.Name, contract.TopicAgentInput))
	on := ""
	if n.Thread != "" {
		on = " on " + n.Thread
	}
	switch n.Input {
	case contract.InputUser:
		return fmt.Sprintf("%s in %s", agent, n.Place)
	case contract.InputTask:
		what, _, _ := strings.Cut(n.Place, " of ")
		if !strings.HasPrefix(what, "task") && !strings.HasPrefix(what, "job") {
			what = "task of " + n.Sender
		}
		return fmt.Sprintf("%s, done by %s", what, agent)
	case contract.InputMessage:
		return fmt.Sprintf("%s gets a message from %s%s", agent, n.Sender, on)
	case contract.InputResult:
		return fmt.Sprintf("%s gets the result of %s%s", agent, n.Sender, on)
	case contract.InputRecord:
		return fmt.Sprintf("%s gets a record%s in %s", agent, on, n.Place)
	case contract.InputNotice:
		return fmt.Sprintf("%s gets a notice from %s", agent, n.Sender)
	}
	return fmt.Sprintf("%s, %s of %s", agent, n.Input, n.Sender)
}
