package main

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Kinds of steps as they are told.
const (
	kindStory = "story" // an input of an agent, together with the turn that it began
	kindSent  = "sent"  // what a channel is to send
)

// story is a tree as a person wants it told: an input and its turn are one step,
// what a turn has said is told by what followed from it, and deliveries and
// events that nothing came of are left out, except the one that was asked for.
func story(n *admin.Node, asked string) *admin.Node {
	told := *n
	told.Children = nil
	for _, c := range n.Children {
		told.Children = append(told.Children, chapters(c, asked)...)
	}
	switch {
	case n.Kind == admin.KindEvent && n.Input != "":
		merge(&told)
	case n.Kind == admin.KindEvent && strings.HasPrefix(n.Name, contract.TopicChannelSend):
		told.Kind = kindSent
	}
	return &told
}

// chapters is what is told of a step and of what followed from it.
func chapters(n *admin.Node, asked string) []*admin.Node {
	s := story(n, asked)
	quiet := n.Reason == "" && n.Attempts == 0 && n.ID != asked
	switch {
	case n.Kind == admin.KindNote && n.Name == contract.EntryContext,
		n.Kind == admin.KindEvent && n.Name == contract.TopicModelUsage && quiet,
		n.Kind == admin.KindDelivery && quiet && n.State == "done" && len(s.Children) == 0,
		n.Kind == admin.KindEvent && n.Source != "kernel" && quiet && n.Text == "" && n.State == "" && len(s.Children) == 0:
		return nil
	case n.Kind == admin.KindEvent && quiet && (n.Name == contract.TopicAgentOutput && n.State == contract.OutcomeOK || strings.HasPrefix(n.Name, contract.TopicSessionIdle)):
		return s.Children
	}
	return []*admin.Node{s}
}

// merge makes an input and the turn that it began one step.
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

// heard says who is told what by whom.
func heard(p *printer, n *admin.Node) string {
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
		return fmt.Sprintf("%s hears %s%s", agent, n.Sender, on)
	case contract.InputResult:
		return fmt.Sprintf("%s gets the result of %s%s", agent, n.Sender, on)
	case contract.InputRecord:
		return fmt.Sprintf("%s takes note%s in %s", agent, on, n.Place)
	case contract.InputNotice:
		return fmt.Sprintf("%s is reminded by %s", agent, n.Sender)
	}
	return fmt.Sprintf("%s, %s of %s", agent, n.Input, n.Sender)
}
