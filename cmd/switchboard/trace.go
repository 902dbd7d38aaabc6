package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newTraceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace <event id | platform message id>",
		Short: "Show the steps that followed from a message, with times",
		Long: "Shows the steps that followed from a message as a tree: the inputs of agents, each step of a model and\n" +
			"each tool call, tasks and messages to other agents with their results, and every sent message with the\n" +
			"id that its platform gave it. --all shows every event, --request the whole request that a model was sent\n" +
			"in one step.\n\n" +
			"Give the id of any event in the tree (`switchboard events tail`), or the platform's id of the message,\n" +
			"such as a Telegram chat/message.",
		Example: "  switchboard trace e42\n  switchboard trace 123456789/77\n" +
			"  switchboard trace e42 --request 1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: first(eventIDs),
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "show every event and delivery")
	request := c.Flags().String("request", "", "show the request of a step of a model: 1 is the first")
	c.RunE = withKernel("trace", func(c *cobra.Command, k *admin.Client, args []string) error {
		t, err := admin.ReadTrace(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard events tail")
		}
		if *request != "" {
			return showRequest(c, k, t, *request, *asJSON)
		}
		if *asJSON {
			return printJSON(c, t)
		}
		p := printerOf(c)
		if !*all {
			t.Tree = t.Story()
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
	p.line("%s in all, from %s", admin.Duration("", t.Millis), t.At.In(p.zone).Format("2006-01-02 15:04:05.000 MST"))
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
		took = admin.Duration("", *n.TookMillis)
	}
	after := admin.Duration("", t.After(n))
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
	title := n.Title("", func(s string) string { return p.paint(green, s) })
	ended := n.Ended("", func(state, _ string) string { return p.paint(stateColor(state), state) })
	if p.width == 0 {
		return title + text + ended + result
	}
	unpainted := func(s string) string { return s }
	bare := [2]string{n.Title("", unpainted), n.Ended("", func(state, _ string) string { return state })}
	left := room - markdown.Width(bare[0]+bare[1])
	if result != "" { // text and result share the room
		result = cut(result, max(leastColumn, left-min(markdown.Width(text), left/2)))
		left -= markdown.Width(result)
	}
	if text != "" {
		text = cut(text, max(leastColumn, left))
	}
	if s := bare[0] + text + bare[1] + result; markdown.Width(s) > room {
		return cut(s, max(room, leastColumn))
	}
	return title + text + ended + result
}
