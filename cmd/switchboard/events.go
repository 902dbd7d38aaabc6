package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func newEventsCommand() *cobra.Command {
	return group("events", "What has happened", newEventsTail(), newEventsShow(), newEventsDead(), newEventsResubmit())
}

func newEventsTail() *cobra.Command {
	c := &cobra.Command{
		Use: "tail", Short: "Show the newest events, and with -f those to come", Args: cobra.NoArgs,
		Example: "  switchboard events tail -f\n  switchboard events tail -n 100 --topic 'channel.send.*'",
	}
	asJSON := c.Flags().Bool("json", false, "print one JSON object per line")
	topic := c.Flags().String("topic", "", "only those of a topic, or of a pattern such as channel.send.*")
	n := c.Flags().IntP("lines", "n", 20, "how many")
	follow := c.Flags().BoolP("follow", "f", false, "go on until interrupted")
	c.RunE = withKernel("reading the events", func(c *cobra.Command, k control.Kernel, _ []string) error {
		if *n < 0 {
			return fmt.Errorf("-n %d: give 0 or more", *n)
		}
		p := printerOf(c)
		lines := json.NewEncoder(c.OutOrStdout())
		lines.SetEscapeHTML(false)
		show := func(e control.Event) error {
			if *asJSON {
				return lines.Encode(e)
			}
			if *follow && summary(e.Deliveries) != "dead" {
				e.Deliveries = nil // of what has just happened, nothing is known yet
			}
			p.event(e)
			return nil
		}
		q := control.EventQuery{Topic: *topic, Limit: *n}
		if *n == 0 {
			q.Limit = -1
		}
		if *follow {
			return k.Follow(c.Context(), q, show)
		}
		if *n == 0 {
			return nil
		}
		events, err := k.Events(c.Context(), q)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := show(e); err != nil {
				return err
			}
		}
		if *asJSON {
			return nil
		}
		if len(events) == 0 {
			p.faint("No events.")
		}
		if len(events) < *n && *topic != "" {
			s, err := k.Status(c.Context())
			if err == nil && journal.ParseEventID(s.LastEvent) > control.Searched {
				p.faint(fmt.Sprintf("Among the newest %d events; there are older ones.", control.Searched))
			}
			return err
		}
		return nil
	})
	return c
}

// event is one line.
func (p *printer) event(e control.Event) {
	what := preview(e.Payload)
	if became := summary(e.Deliveries); became != "" {
		what = p.paint(stateColor(became), became) + "  " + what
	}
	p.line("%s  %-6s %s  %s  %s", p.paint(gray, p.clock(e.At)), e.ID, p.paint(green, fmt.Sprintf("%-28s", e.Topic)), p.paint(gray, fmt.Sprintf("%-17s", e.Source)), what)
}

// summary is the worst that became of the deliveries.
func summary(ds []control.Delivery) string {
	for _, s := range []string{"dead", "pending", "in flight", "done"} {
		if slices.ContainsFunc(ds, func(d control.Delivery) bool { return d.State == s }) {
			return s
		}
	}
	return ""
}

// preview is what a payload says, in a few words.
func preview(payload json.RawMessage) string {
	var p map[string]any
	if json.Unmarshal(payload, &p) != nil {
		return shorten(string(payload), 70)
	}
	for _, field := range []string{"text", "prompt", "message", "reason", "detail"} {
		if s, ok := p[field].(string); ok && s != "" {
			return quote(s)
		}
	}
	return shorten(string(payload), 70)
}

func newEventsShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show an event with its payload and what became of it", Args: cobra.ExactArgs(1), ValidArgsFunction: first(eventIDs),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("showing event", func(c *cobra.Command, k control.Kernel, args []string) error {
		e, err := k.Event(c.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, e)
		}
		printerOf(c).wholeEvent(e)
		return nil
	})
	return c
}

func (p *printer) wholeEvent(e control.Event) {
	p.line("%s  %s", e.ID, p.paint(green, e.Topic))
	for _, field := range [][2]string{
		{"at", e.At.In(p.zone).Format("2006-01-02 15:04:05.000 MST")}, {"source", e.Source}, {"key", e.Key}, {"dedupe", e.DedupeKey},
		{"follows from", e.Causation}, {"began with", e.Correlation},
	} {
		if field[1] != "" && field[1] != e.ID {
			p.line("  %-13s %s", field[0], field[1])
		}
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, e.Payload, "  ", "  ") == nil {
		p.line("  %s", strings.TrimSpace(pretty.String()))
	}
	if len(e.Deliveries) == 0 {
		p.faint("It has no deliveries. What the kernel does with an event happens as it is accepted: `switchboard trace " + e.ID + "` shows what followed.")
		return
	}
	p.line("")
	var rows [][]cell
	for _, d := range e.Deliveries {
		became := d.State
		if d.ProviderID != "" && d.State == "done" {
			became = "delivered"
		}
		note := d.Reason
		if d.ProviderID != "" {
			note = strings.TrimSpace("message " + d.ProviderID + " " + note)
		}
		if d.Uncertain {
			note = strings.TrimSpace(note + " (an attempt may have had its effect)")
		}
		took := "-"
		if d.StartedAt != nil && d.SettledAt != nil {
			took = duration(d.SettledAt.Sub(*d.StartedAt).Seconds() * 1000)
		}
		rows = append(rows, []cell{text(d.Extension), state(became), text(fmt.Sprint(d.Attempts)), text(took), text(note)})
	}
	p.table("FOR STATE FAILED TOOK NOTE", rows)
}

func newEventsDead() *cobra.Command {
	c := &cobra.Command{
		Use: "dead", Short: "List the deliveries that were given up", Args: cobra.NoArgs,
		Long: "Lists the deliveries that were given up: nobody could be found, or nobody took them in time.\n" +
			"They are kept (retention.dead in config.yaml), and can be queued again.",
	}
	asJSON := jsonFlag(c)
	n := c.Flags().IntP("lines", "n", 50, "how many")
	c.RunE = withKernel("listing the dead letters", func(c *cobra.Command, k control.Kernel, _ []string) error {
		if *n < 1 {
			return fmt.Errorf("-n %d: give 1 or more", *n)
		}
		all, err := k.DeadLetters(c.Context(), *n)
		if err != nil {
			return err
		}
		err = list(c, *asJSON, all, "EVENT DIED TOPIC FOR FAILED REASON", "There are no dead letters.", func(p *printer, d control.DeadLetter) []cell {
			return []cell{text(d.Event), text(p.clock(d.DiedAt)), text(d.Topic), text(d.Extension), text(fmt.Sprint(d.Attempts)), text(d.Reason)}
		})
		if err == nil && len(all) > 0 && !*asJSON {
			printerOf(c).faint("`switchboard events show EVENT` shows one, `switchboard events resubmit EVENT` queues it again.")
		}
		return err
	})
	return c
}

func newEventsResubmit() *cobra.Command {
	c := &cobra.Command{
		Use: "resubmit ID", Short: "Queue the dead deliveries of an event again", Args: cobra.ExactArgs(1), ValidArgsFunction: first(deadIDs),
	}
	c.RunE = withKernel("resubmitting event", func(c *cobra.Command, k control.Kernel, args []string) error {
		n, err := k.Resubmit(c.Context(), args[0])
		if err != nil {
			return err
		}
		what := "is"
		if n > 1 {
			what = "are"
		}
		printerOf(c).line("%s of %s %s queued again.", strings.ReplaceAll(count(n, "delivery"), "deliverys", "deliveries"), args[0], what)
		return nil
	})
	return c
}
