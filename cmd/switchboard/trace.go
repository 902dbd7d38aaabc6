package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

func newTraceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace <event id | platform message id>",
		Short: "Show what one message led to, step by step, with times",
		Long: "Shows what one message led to as a tree: the agent's input, its turn with each step of the model\n" +
			"and each call of a tool, the answer, and every message sent, down to the id that its platform gave it.\n\n" +
			"The message is named by an event (`switchboard events tail`) anywhere in the tree, or as its\nplatform calls it, such as a Telegram chat/message.",
		Example:           "  switchboard trace e42\n  switchboard trace 123456789/77",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: first(eventIDs),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("tracing", func(c *cobra.Command, k control.Kernel, args []string) error {
		t, err := k.Trace(c.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, t)
		}
		printerOf(c).trace(t)
		return nil
	})
	return c
}

func (p *printer) trace(t *trace.Trace) {
	p.faint(fmt.Sprintf("%10s %9s", "after", "took"))
	p.node(t, t.Tree, "", "", map[string]bool{})
	p.line("")
	p.line("%s in all, from %s", duration(t.Millis), t.At.In(p.zone).Format("2006-01-02 15:04:05.000 MST"))
	if t.More {
		p.faint("There is more of it than is shown.")
	}
	if len(t.Also) > 0 {
		p.faint("Other messages have the same id: trace " + strings.Join(t.Also, ", "))
	}
}

// node prints a step and what follows from it; lead stands before it, below
// before what follows. A text that was told above is not told again.
func (p *printer) node(t *trace.Trace, n *trace.Node, lead, below string, told map[string]bool) {
	took := ""
	if n.TookMillis != nil {
		took = duration(*n.TookMillis)
	}
	after := duration(float64(n.At.Sub(t.At)) / float64(time.Millisecond))
	mark := " "
	if n.ID == t.Asked && t.Asked != t.Root {
		mark = ">"
	}
	p.line("%s%s%s", p.paint(gray, fmt.Sprintf("%10s %9s %s ", after, took, mark)), p.paint(gray, lead), p.step(n, !told[n.Text]))
	told[n.Text] = true
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.node(t, child, below+"└─ ", below+"   ", told)
		} else {
			p.node(t, child, below+"├─ ", below+"│  ", told)
		}
	}
}

// step is a step in words.
func (p *printer) step(n *trace.Node, tell bool) string {
	var b strings.Builder
	switch n.Kind {
	case trace.KindEvent:
		fmt.Fprintf(&b, "%s %s", n.ID, p.paint(green, n.Name))
		if n.Source != "" && n.Source != "kernel" {
			fmt.Fprintf(&b, " from %s", n.Source)
		}
		if n.Session != "" {
			fmt.Fprintf(&b, " (%s)", n.Session)
		}
		if n.Conversation != "" {
			fmt.Fprintf(&b, " to %s", n.Conversation)
		}
	case trace.KindDelivery:
		fmt.Fprintf(&b, "handled by %s", n.Name)
	case trace.KindTurn:
		fmt.Fprintf(&b, "turn %s of %s", n.ID, n.Name)
	case trace.KindModel:
		fmt.Fprintf(&b, "model %s", n.Name)
		if len(n.Calls) > 0 {
			fmt.Fprintf(&b, " calls %s", strings.Join(n.Calls, ", "))
		}
	case trace.KindTool:
		fmt.Fprintf(&b, "tool %s", n.Name)
	default:
		b.WriteString(n.Name)
	}
	if n.Text != "" && tell {
		if n.Kind == trace.KindTool {
			fmt.Fprintf(&b, " %s", shorten(n.Text, 80))
		} else {
			fmt.Fprintf(&b, " %s", quote(n.Text))
		}
	}
	if n.State != "" && (n.Kind != trace.KindModel || n.State != "done") {
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
