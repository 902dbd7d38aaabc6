package admin

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// Title returns the kind and name of a step, on one line. It calls mark for the parts that
// matter most.
func (n *Node) Title(mark func(string) string) string {
	switch {
	case n.Kind == KindStory:
		return n.ID + " " + n.input(mark)
	case n.Kind == KindSent:
		return fmt.Sprintf("%s to %s %s", n.ID, mark(strings.TrimPrefix(n.Name, contract.TopicChannelSend)), n.Conversation)
	case n.Kind == KindEvent:
		s := n.ID + " " + mark(n.Name)
		if n.Source != "" && n.Source != "kernel" {
			s += " from " + n.Source
		}
		if n.Session != "" {
			s += " (" + n.Session + ")"
		}
		if n.Conversation != "" {
			s += " to " + n.Conversation
		}
		return s
	case n.Kind == KindDelivery:
		return "handled by " + n.Name
	case n.Kind == KindTurn:
		return fmt.Sprintf("turn %s of %s", n.ID, n.Name)
	case n.Kind == KindModel && len(n.Calls) > 0:
		return fmt.Sprintf("model %s calls %s", n.Name, strings.Join(n.Calls, ", "))
	case n.Kind == KindTool && n.Source != "":
		return fmt.Sprintf("%s %s calls %s", n.ID, mark(n.Source), n.Name)
	case n.Kind == KindModel, n.Kind == KindTool:
		return n.Kind + " " + n.Name
	}
	return n.Name
}

// input names the agent, the kind of the input and its sender.
func (n *Node) input(mark func(string) string) string {
	agent := mark(strings.TrimPrefix(n.Name, contract.TopicAgentInput))
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

// Ended describes the outcome of a step; mark is for its state.
func (n *Node) Ended(mark func(state string) string) string {
	var b strings.Builder
	if n.State != "" && (n.Kind != KindModel || n.State != "done") {
		fmt.Fprintf(&b, ": %s", mark(n.State))
	}
	if n.ProviderID != "" {
		fmt.Fprintf(&b, ", message %s", n.ProviderID)
	}
	if n.WaitMillis != nil && *n.WaitMillis >= 100 {
		fmt.Fprintf(&b, ", waited %s", Duration(*n.WaitMillis))
	}
	switch {
	case n.Attempts == 1:
		b.WriteString(", failed 1 time")
	case n.Attempts > 1:
		fmt.Fprintf(&b, ", failed %d times", n.Attempts)
	}
	if n.Reason != "" {
		fmt.Fprintf(&b, " (%s)", n.Reason)
	}
	return b.String()
}

// Duration formats milliseconds in a suitable unit.
func Duration(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

// After returns when a step began, in milliseconds after the first one of its trace.
func (t *Trace) After(n *Node) float64 { return float64(n.At.Sub(t.At)) / float64(time.Millisecond) }

// Models returns the steps of models below a step, in the order in which they are shown.
func (n *Node) Models() (all []*Node) {
	if n.Kind == KindModel {
		all = append(all, n)
	}
	for _, c := range n.Children {
		all = append(all, c.Models()...)
	}
	return all
}
