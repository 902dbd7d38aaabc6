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
		Short: "Show what one message led to, step by step, with times",
		Long: "Shows what one message led to as a tree: what each agent was told, each step of its model and each\n" +
			"call of a tool, the tasks that it gave and the messages to other agents with what came of them, and\n" +
			"every message sent, down to the id that its platform gave it. --all shows every event that was needed.\n\n" +
			"The message is named by an event (`switchboard events tail`) anywhere in the tree, or as its\nplatform calls it, such as a Telegram chat/message.",
		Example:           "  switchboard trace e42\n  switchboard trace 123456789/77",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: first(eventIDs),
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "every event and delivery, also those that nothing followed from")
	c.RunE = withKernel("tracing", func(c *cobra.Command, k *admin.Client, args []string) error {
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
		p.faint("What came of it behind " + t.Until + " was not looked for.")
	}
	if t.More {
		p.faint("There is more of it than is shown.")
	}
	if len(t.Also) > 0 {
		p.faint("Other messages have the same id: trace " + strings.Join(t.Also, ", "))
	}
}

// node prints a step and what follows from it; lead stands before it, below
// before what follows. A text that was told above is not told again.
func (p *printer) node(t *admin.Trace, n *admin.Node, lead, below string, told map[string]bool) {
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
	step := p.step(n, !told[n.Text], p.width-markdown.Width(before))
	p.line("%s%s", p.paint(gray, before), step)
	told[n.Text] = true
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.node(t, child, below+"└─ ", below+"   ", told)
		} else {
			p.node(t, child, below+"├─ ", below+"│  ", told)
		}
	}
}

// step is a step in words. On a terminal it is made to fit into the room that its
// line has: its text gives way first.
func (p *printer) step(n *admin.Node, tell bool, room int) string {
	text, result := "", ""
	if n.Text != "" && tell {
		text = " " + quote(n.Text)
		if n.Kind == admin.KindTool {
			text = " " + shorten(n.Text, 80)
		}
	}
	if n.Result != "" && n.Kind == admin.KindTool && n.State == "done" && together(n.Name) {
		result = ", " + quote(n.Result)
	}
	if p.width == 0 {
		return p.what(n) + text + p.ended(n) + result
	}
	bare := printer{}
	left := room - markdown.Width(bare.what(n)+bare.ended(n))
	if result != "" { // it shares with what was asked for
		result = cut(result, max(leastColumn, left-min(markdown.Width(text), left/2)))
		left -= markdown.Width(result)
	}
	if text != "" {
		text = cut(text, max(leastColumn, left))
	}
	if s := bare.what(n) + text + bare.ended(n) + result; markdown.Width(s) > room {
		return cut(s, max(room, leastColumn))
	}
	return p.what(n) + text + p.ended(n) + result
}

// what says what a step is.
func (p *printer) what(n *admin.Node) string {
	switch {
	case n.Kind == kindStory:
		return n.ID + " " + heard(p, n)
	case n.Kind == kindSent:
		return fmt.Sprintf("%s to %s %s", n.ID, p.paint(green, strings.TrimPrefix(n.Name, contract.TopicChannelSend)), n.Conversation)
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
	case n.Kind == admin.KindModel, n.Kind == admin.KindTool:
		return n.Kind + " " + n.Name
	}
	return n.Name
}

// ended says how a step ended.
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

// duration is a time in milliseconds, in a unit that fits.
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
