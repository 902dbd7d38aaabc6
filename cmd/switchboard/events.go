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
	return group("events", "Events and their deliveries", newEventsTail(), newEventsShow(), newEventsDead(),
		newEventsResubmit())
}

func newEventsTail() *cobra.Command {
	c := &cobra.Command{
		Use: "tail", Short: "Show the newest events, and with -f those to come", Args: cobra.NoArgs,
		Example: "  switchboard events tail -f\n  switchboard events tail -n 100 --topic 'channel.send.*'",
	}
	asJSON := c.Flags().Bool("json", false, "print one JSON object per line")
	topic := c.Flags().String("topic", "", "only events of a topic, or of a pattern such as channel.send.*")
	n := c.Flags().IntP("lines", "n", 20, "how many")
	follow := c.Flags().BoolP("follow", "f", false, "keep showing new ones until interrupted")
	c.RunE = withKernel("read the events", func(c *cobra.Command, k *admin.Client, _ []string) error {
		if *n < 0 {
			return fmt.Errorf("-n %d: give 0 or more", *n)
		}
		p := printerOf(c)
		lines := json.NewEncoder(safeJSON{c.OutOrStdout()})
		lines.SetEscapeHTML(false)
		show := func(e admin.Event) error {
			if *asJSON {
				return lines.Encode(e)
			}
			if *follow && summary(e.Deliveries) != "dead" {
				e.Deliveries = nil // too early for an event that just happened
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

// searched bounds the number of newest events searched for a topic: a store may have
// millions.
const searched = 200_000

// newestEvents returns the newest n of a topic, oldest first, and the seq of the newest of
// all.
func newestEvents(ctx context.Context, k *admin.Client, topic string, n int) ([]admin.Event, int64, error) {
	last, err := admin.LastSeq(ctx, k)
	if err != nil || n == 0 {
		return nil, last, err
	}
	limit := int32(min(n, math.MaxInt32)) //nolint:gosec // bounded
	q := &adminv1.EventsRequest{Topic: topic, Before: last + 1, Limit: limit}
	if topic != "" && topic != "*" {
		q.After = max(0, last-searched)
	}
	newest, err := admin.WithDeliveries(ctx, k, q)
	slices.Reverse(newest)
	return newest, last, err
}

// followEvents shows the events after a seq until the context ends.
func followEvents(ctx context.Context, k *admin.Client, topic string, after int64, show func(admin.Event) error) error {
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
		shown := admin.Event{Event: e}
		if shown.Deliveries, err = admin.Deliveries(ctx, k,
			&adminv1.DeliveriesRequest{Events: []string{e.GetId()}}); err != nil {
			return err
		}
		if err := show(shown); err != nil {
			return err
		}
	}
}

// event is one line.
func (p *printer) event(e admin.Event) {
	what := preview(e.Payload)
	if became := summary(e.Deliveries); became != "" {
		what = p.paint(stateColor(became), became) + "  " + what
	}
	p.line("%s  %-6s %s  %s  %s", p.paint(gray, p.clock(at(e.CreatedAtUs))), e.Id,
		p.paint(green, fmt.Sprintf("%-28s", e.Topic)), p.paint(gray, fmt.Sprintf("%-17s", e.Source)), what)
}

// summary returns the worst state of the deliveries.
func summary(ds []*adminv1.Delivery) string {
	for _, s := range []string{"dead", "pending", "in flight", "done"} {
		if slices.ContainsFunc(ds, func(d *adminv1.Delivery) bool { return d.State == s }) {
			return s
		}
	}
	return ""
}

// preview returns the text of a payload, shortened.
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
		Use: "show ID", Short: "Show an event with its payload and deliveries", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(eventIDs),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("show event", func(c *cobra.Command, k *admin.Client, args []string) error {
		e, err := admin.EventByID(c.Context(), k, args[0])
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

func (p *printer) wholeEvent(e admin.Event) {
	p.line("%s  %s", e.Id, p.paint(green, e.Topic))
	for _, field := range [][2]string{
		{"at", at(e.CreatedAtUs).In(p.zone).Format("2006-01-02 15:04:05.000 MST")}, {"source", e.Source}, {"key", e.Key},
		{"dedupe", e.DedupeKey},
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
		p.faint("It has no deliveries: the kernel handled it at once. `switchboard trace " + e.Id + "` shows what followed.")
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
			note = strings.TrimSpace(note + " (an attempt may have succeeded)")
		}
		took := "-"
		if d.StartedAtUs != 0 && d.SettledAtUs != 0 {
			took = admin.Duration("", float64(d.SettledAtUs-d.StartedAtUs)/1000)
		}
		rows = append(rows, []cell{text(d.Extension), state(became), text(fmt.Sprint(d.Attempts)), text(took), text(note)})
	}
	p.table("FOR STATE FAILED TOOK NOTE | TOOK FAILED", rows)
}

// deadLetter is a delivery that failed for good.
type deadLetter struct {
	Event     string    `json:"event"`
	Topic     string    `json:"topic"`
	Extension string    `json:"extension"` // the recipient; kernel: there was none
	At        time.Time `json:"at"`        // of the event
	DiedAt    time.Time `json:"died_at"`
	Attempts  int32     `json:"attempts"`
	Reason    string    `json:"reason"`
}

// readDeadLetters returns the newest dead letters, the newest first.
func readDeadLetters(ctx context.Context, k *admin.Client, n int) ([]deadLetter, error) {
	dead, err := admin.DeadLetters(ctx, k, int32(min(n, math.MaxInt32))) //nolint:gosec // it is bounded
	letters := []deadLetter{}
	for _, l := range dead {
		e, d := l.Event, l.Delivery
		letters = append(letters, deadLetter{
			e.GetId(), e.GetTopic(), d.GetExtension(), at(e.GetCreatedAtUs()), at(d.GetSettledAtUs()), d.GetAttempts(),
			d.GetReason(),
		})
	}
	return letters, err
}

func newEventsDead() *cobra.Command {
	c := &cobra.Command{
		Use: "dead", Short: "List the deliveries that failed for good", Args: cobra.NoArgs,
		Long: "Lists the deliveries that failed for good: there was no recipient, or it did not accept them in time.\n" +
			"They are kept for a while (retention.dead in config.yaml), and can be queued again.",
	}
	asJSON := jsonFlag(c)
	n := c.Flags().IntP("lines", "n", 50, "how many")
	c.RunE = withKernel("list the dead letters", func(c *cobra.Command, k *admin.Client, _ []string) error {
		if *n < 1 {
			return fmt.Errorf("-n %d: give 1 or more", *n)
		}
		all, err := readDeadLetters(c.Context(), k, *n)
		if err != nil {
			return err
		}
		err = list(c, *asJSON, all, "EVENT DIED TOPIC FOR FAILED REASON", "There are no dead letters.",
			func(p *printer, d deadLetter) []cell {
				return []cell{text(d.Event), text(p.clock(d.DiedAt)), text(d.Topic), text(d.Extension),
					text(fmt.Sprint(d.Attempts)),
					text(d.Reason)}
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
		Use: "resubmit ID", Short: "Queue the dead deliveries of an event again", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(deadIDs),
	}
	c.RunE = withKernel("resubmit event", func(c *cobra.Command, k *admin.Client, args []string) error {
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
