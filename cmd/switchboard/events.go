package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
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
	c.RunE = withKernel("reading the events", func(c *cobra.Command, k *admin.Client, _ []string) error {
		if *n < 0 {
			return fmt.Errorf("-n %d: give 0 or more", *n)
		}
		p := printerOf(c)
		lines := json.NewEncoder(c.OutOrStdout())
		lines.SetEscapeHTML(false)
		show := func(e *adminv1.Event) error {
			if *asJSON {
				return lines.Encode(admin.JSON(e))
			}
			if *follow && summary(e.Deliveries) != "dead" {
				e.Deliveries = nil // nothing is known yet of an event that just happened
			}
			p.event(e)
			return nil
		}
		newest, last, err := newestEvents(c.Context(), k, *topic, *n)
		if err != nil {
			return err
		}
		for _, e := range newest {
			if err := show(e); err != nil {
				return err
			}
		}
		if *follow {
			return followEvents(c.Context(), k, *topic, last, show)
		}
		switch {
		case *asJSON || *n == 0:
		case len(newest) == 0:
			p.faint("No events.")
			fallthrough
		case len(newest) < *n && *topic != "" && last > searched:
			if last > searched {
				p.faint(fmt.Sprintf("Only the newest %d events were searched.", searched))
			}
		}
		return nil
	})
	return c
}

// searched is how many events, the newest, are searched for those of a topic: a
// store may have millions.
const searched = 200_000

// newestEvents are the newest n of a topic, the oldest of them first, and the seq
// of the newest of all.
func newestEvents(ctx context.Context, k *admin.Client, topic string, n int) ([]*adminv1.Event, int64, error) {
	last, err := admin.LastSeq(ctx, k)
	if err != nil || n == 0 {
		return nil, last, err
	}
	q := &adminv1.EventsRequest{Topic: topic, Before: last + 1, Limit: int32(min(n, math.MaxInt32))} //nolint:gosec // it is bounded
	if topic != "" && topic != "*" {
		q.After = max(0, last-searched)
	}
	newest, err := admin.Events(ctx, k, q)
	slices.Reverse(newest)
	return newest, last, err
}

// followEvents shows the events after a seq until the context ends.
func followEvents(ctx context.Context, k *admin.Client, topic string, after int64, show func(*adminv1.Event) error) error {
	events, err := k.Events(ctx, &adminv1.EventsRequest{Topic: topic, After: after, Follow: true})
	if err != nil {
		return err
	}
	for {
		e, err := events.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: the kernel has stopped", contract.ErrGone)
		case err != nil:
			return err
		}
		if err := show(e); err != nil {
			return err
		}
	}
}

// event is one line.
func (p *printer) event(e *adminv1.Event) {
	what := preview(e.Payload)
	if became := summary(e.Deliveries); became != "" {
		what = p.paint(stateColor(became), became) + "  " + what
	}
	p.line("%s  %-6s %s  %s  %s", p.paint(gray, p.clock(at(e.AtUs))), e.Id, p.paint(green, fmt.Sprintf("%-28s", e.Topic)), p.paint(gray, fmt.Sprintf("%-17s", e.Source)), what)
}

// summary is the worst that became of the deliveries.
func summary(ds []*adminv1.Delivery) string {
	for _, s := range []string{"dead", "pending", "in flight", "done"} {
		if slices.ContainsFunc(ds, func(d *adminv1.Delivery) bool { return d.State == s }) {
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
	c.RunE = withKernel("showing event", func(c *cobra.Command, k *admin.Client, args []string) error {
		e, err := admin.Event(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard events tail")
		}
		if *asJSON {
			return printJSON(c, e)
		}
		printerOf(c).wholeEvent(e)
		return nil
	})
	return c
}

func (p *printer) wholeEvent(e *adminv1.Event) {
	p.line("%s  %s", e.Id, p.paint(green, e.Topic))
	for _, field := range [][2]string{
		{"at", at(e.AtUs).In(p.zone).Format("2006-01-02 15:04:05.000 MST")}, {"source", e.Source}, {"key", e.Key}, {"dedupe", e.DedupeKey},
		{"follows from", e.CausationId}, {"began with", e.CorrelationId},
	} {
		if field[1] != "" && field[1] != e.Id {
			p.line("  %-13s %s", field[0], field[1])
		}
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, e.Payload, "  ", "  ") == nil {
		p.line("  %s", strings.TrimSpace(pretty.String()))
	}
	if len(e.Deliveries) == 0 {
		p.faint("It has no deliveries. What the kernel does with an event happens as it is accepted: `switchboard trace " + e.Id + "` shows what followed.")
		return
	}
	p.line("")
	var rows [][]cell
	for _, d := range e.Deliveries {
		became := d.State
		if d.ProviderId != "" && d.State == "done" {
			became = "delivered"
		}
		note := d.Reason
		if d.ProviderId != "" {
			note = strings.TrimSpace("message " + d.ProviderId + " " + note)
		}
		if d.Uncertain {
			note = strings.TrimSpace(note + " (an attempt may have had its effect)")
		}
		took := "-"
		if d.StartedAtUs != 0 && d.SettledAtUs != 0 {
			took = duration(float64(d.SettledAtUs-d.StartedAtUs) / 1000)
		}
		rows = append(rows, []cell{text(d.Extension), state(became), text(fmt.Sprint(d.Attempts)), text(took), text(note)})
	}
	p.table("FOR STATE FAILED TOOK NOTE", rows)
}

// deadLetter is a delivery that was given up.
type deadLetter struct {
	Event     string    `json:"event"`
	Topic     string    `json:"topic"`
	Extension string    `json:"extension"` // that did not take it; kernel: no recipient was found
	At        time.Time `json:"at"`        // of the event
	DiedAt    time.Time `json:"died_at"`
	Attempts  int32     `json:"attempts"`
	Reason    string    `json:"reason"`
}

// readDeadLetters returns the newest dead letters, the newest first.
func readDeadLetters(ctx context.Context, k *admin.Client, n int) ([]deadLetter, error) {
	events, err := admin.Events(ctx, k, &adminv1.EventsRequest{Dead: true, Limit: int32(min(n, math.MaxInt32))}) //nolint:gosec // it is bounded
	letters := []deadLetter{}
	for _, e := range events {
		for _, d := range e.Deliveries {
			if d.State == "dead" {
				letters = append(letters, deadLetter{e.Id, e.Topic, d.Extension, at(e.AtUs), at(d.SettledAtUs), d.Attempts, d.Reason})
			}
		}
	}
	return letters[:min(n, len(letters))], err
}

func newEventsDead() *cobra.Command {
	c := &cobra.Command{
		Use: "dead", Short: "List the deliveries that were given up", Args: cobra.NoArgs,
		Long: "Lists the deliveries that were given up: nobody could be found, or nobody took them in time.\n" +
			"They are kept (retention.dead in config.yaml), and can be queued again.",
	}
	asJSON := jsonFlag(c)
	n := c.Flags().IntP("lines", "n", 50, "how many")
	c.RunE = withKernel("listing the dead letters", func(c *cobra.Command, k *admin.Client, _ []string) error {
		if *n < 1 {
			return fmt.Errorf("-n %d: give 1 or more", *n)
		}
		all, err := readDeadLetters(c.Context(), k, *n)
		if err != nil {
			return err
		}
		err = list(c, *asJSON, all, "EVENT DIED TOPIC FOR FAILED REASON", "There are no dead letters.", func(p *printer, d deadLetter) []cell {
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
	c.RunE = withKernel("resubmitting event", func(c *cobra.Command, k *admin.Client, args []string) error {
		again, err := k.Resubmit(c.Context(), &adminv1.ResubmitRequest{Event: args[0]})
		if err != nil {
			return hinted(err, "switchboard events dead")
		}
		what := "1 delivery of %s is queued again."
		if n := again.GetDeliveries(); n != 1 {
			what = fmt.Sprint(n) + " deliveries of %s are queued again."
		}
		printerOf(c).line(what, args[0])
		return nil
	})
	return c
}
