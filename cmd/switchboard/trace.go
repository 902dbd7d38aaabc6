package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newTraceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace <event id | platform message id>",
		Short: "Show the steps that followed from a message, with times",
		Long: "Shows the steps that followed from a message as a tree: the inputs of agents, each step of a model and\n" +
			"each tool call, tasks and messages to other agents with their results, and every sent message with the\n" +
			"id that its platform gave it. --all shows every event.\n\n" +
			"Give the id of any event in the tree (`switchboard events tail`), or the platform's id of the message,\n" +
			"such as a Telegram chat/message.",
		Example:           "  switchboard trace e42\n  switchboard trace 123456789/77",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: first(eventIDs),
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "show every event and delivery")
	c.RunE = withKernel("trace", func(c *cobra.Command, k *admin.Client, args []string) error {
		t, err := admin.ReadTrace(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard events tail")
		}
		if *asJSON {
			return printJSON(c, t)
		}
		p := printerOf(c)
		if !*all {
			t.Tree = story(t.Tree, t.Asked)
		}
		p.trace(t)
		return nil
	})
	return c
}

func (p *printer) trace(t *admin.Trace) {
	p.faint(fmt.Sprintf("%7s %7s", "after", "took"))
	p.node(t, t.Tree, "", "", map[string]bool{})
	p.line("")
	p.line("%s in all, from %s", duration(t.Millis), t.At.In(p.zone).Format("2006-01-02 15:04:05.000 MST"))
	if t.Until != "" {
		p.faint("Events after " + t.Until + " were not searched.")
	}
	if t.More {
		p.faint("Only the first 2,000 events are shown.")
	}
	if len(t.Also) > 0 {
		p.faint("Other messages have the same id: trace " + strings.Join(t.Also, ", "))
	}
}

// node prints a step and its children; lead is the prefix of its line, below that of its
// children. It does not repeat texts in shown.
func (p *printer) node(t *admin.Trace, n *admin.Node, lead, below string, shown map[string]bool) {
	took := ""
	if n.TookMillis != nil {
		took = duration(*n.TookMillis)
	}
	after := duration(float64(n.At.Sub(t.At)) / float64(time.Millisecond))
	mark := " "
	if n.ID == t.Asked && t.Asked != t.Root {
		mark = ">"
	}
	before := fmt.Sprintf("%7s %7s %s ", after, took, mark) + lead
	step := p.step(n, !shown[n.Text], p.width-markdown.Width(before))
	p.line("%s%s", p.paint(gray, before), step)
	shown[n.Text] = true
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.node(t, child, below+"└─ ", below+"   ", shown)
		} else {
			p.node(t, child, below+"├─ ", below+"│  ", shown)
		}
	}
}

// step describes a step. On a terminal it fits into room, by shortening the text first.
func (p *printer) step(n *admin.Node, withText bool, room int) string {
	text, result := "", ""
	if n.Text != "" && withText {
		text = " " + quote(n.Text)
		if n.Kind == admin.KindTool {
			text = " " + shorten(n.Text, 80)
		}
	}
	if n.Result != "" && n.Kind == admin.KindTool && n.State == "done" && together(n.Name) {
		result = ", " + quote(n.Result)
	}
	if p.width == 0 {
		return p.title(n) + text + p.ended(n) + result
	}
	bare := printer{}
	left := room - markdown.Width(bare.title(n)+bare.ended(n))
	if result != "" { // text and result share the room
		result = cut(result, max(leastColumn, left-min(markdown.Width(text), left/2)))
		left -= markdown.Width(result)
	}
	if text != "" {
		text = cut(text, max(leastColumn, left))
	}
	if s := bare.title(n) + text + bare.ended(n) + result; markdown.Width(s) > room {
		return cut(s, max(room, leastColumn))
	}
	return p.title(n) + text + p.ended(n) + result
}

// title returns the kind and name of a step.
func (p *printer) title(n *admin.Node) string {
	switch {
	case n.Kind == kindStory:
		return n.ID + " " + describeInput(p, n)
	case n.Kind == kindSent:
		return fmt.Sprintf("%s to %s %s", n.ID, p.paint(green, strings.TrimPrefix(n.Name, contract.TopicChannelSend)),
			n.Conversation)
	case n.Kind == admin.KindEvent:
		s := n.ID + " " + p.paint(green, n.Name)
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
	case n.Kind == admin.KindDelivery:
		return "handled by " + n.Name
	case n.Kind == admin.KindTurn:
		return fmt.Sprintf("turn %s of %s", n.ID, n.Name)
	case n.Kind == admin.KindModel && len(n.Calls) > 0:
		return fmt.Sprintf("model %s calls %s", n.Name, strings.Join(n.Calls, ", "))
	case n.Kind == admin.KindTool && n.Source != "":
		return fmt.Sprintf("%s %s calls %s", n.ID, p.paint(green, n.Source), n.Name)
	case n.Kind == admin.KindModel, n.Kind == admin.KindTool:
		return n.Kind + " " + n.Name
	}
	return n.Name
}

// ended describes the outcome of a step.
func (p *printer) ended(n *admin.Node) string {
	var b strings.Builder
	if n.State != "" && (n.Kind != admin.KindModel || n.State != "done") {
		fmt.Fprintf(&b, ": %s", p.paint(stateColor(n.State), n.State))
	}
	if n.ProviderID != "" {
		fmt.Fprintf(&b, ", message %s", n.ProviderID)
	}
	if n.WaitMillis != nil && *n.WaitMillis >= 100 {
		fmt.Fprintf(&b, ", waited %s", duration(*n.WaitMillis))
	}
	if n.Attempts > 0 {
		fmt.Fprintf(&b, ", failed %s", count(n.Attempts, "time"))
	}
	if n.Reason != "" {
		fmt.Fprintf(&b, " (%s)", n.Reason)
	}
	return b.String()
}

// duration formats milliseconds in a suitable unit.
func duration(ms float64) string {
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
