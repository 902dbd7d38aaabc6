package admin

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
)

// Kinds of steps of a story.
const (
	KindStory = "story" // an input of an agent with its turn
	KindSent  = "sent"  // a message for a channel
)

// Story returns the tree of a trace for people: see story.
func (t *Trace) Story() *Node { return story(t.Tree, t.Asked) }

// story condenses a tree for people: an input and its turn become one step, outputs are
// replaced by the steps that followed, and deliveries and events without consequences are
// left out, except the asked one.
func story(n *Node, asked string) *Node {
	out := *n
	out.Children = nil
	for _, c := range n.Children {
		out.Children = append(out.Children, condense(c, asked)...)
	}
	switch {
	case n.Kind == KindEvent && n.Input != "":
		merge(&out)
	case n.Kind == KindEvent && strings.HasPrefix(n.Name, contract.TopicChannelSend):
		out.Kind = KindSent
	}
	return &out
}

// condense returns the story of a step: none, itself, or its children.
func condense(n *Node, asked string) []*Node {
	s := story(n, asked)
	quiet := n.Reason == "" && n.Attempts == 0 && n.ID != asked
	switch {
	case n.Kind == KindNote && n.Name == contract.EntryContext,
		n.Kind == KindEvent && n.Name == contract.TopicModelUsage && quiet,
		n.Kind == KindDelivery && quiet && n.State == "done" && len(s.Children) == 0,
		n.Kind == KindEvent && n.Source != "kernel" && quiet && n.Text == "" && n.State == "" && len(s.Children) == 0:
		return nil
	case n.Kind == KindEvent && quiet && (n.Name == contract.TopicAgentOutput && n.State == contract.OutcomeOK ||
		strings.HasPrefix(n.Name, contract.TopicSessionIdle) || strings.HasPrefix(n.Name, contract.TopicToolResult)):
		return s.Children
	}
	return []*Node{s}
}

// merge combines an input and its turn.
func merge(n *Node) {
	n.Kind = KindStory
	var rest []*Node
	var turn *Node
	for _, c := range n.Children {
		if c.Kind == KindTurn && turn == nil {
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
