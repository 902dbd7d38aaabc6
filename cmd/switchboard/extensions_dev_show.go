package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/cmd/switchboard/dev"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// commits shows what the extension commits, and what is refused.
func (d *devLoop) commits(ctx context.Context, all <-chan dev.Commit) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-all:
			if c.Refused != nil {
				if slices.Contains(c.By, d.id) || len(c.By) == 0 {
					d.tell("refused", "%v", c.Refused)
				}
				continue
			}
			if !slices.Contains(c.By, d.id) {
				continue
			}
			var did []string
			for _, e := range c.Published {
				did = append(did, fmt.Sprintf("%s %s %s", e.GetId(), e.GetTopic(), preview(e.GetPayload())))
			}
			for _, key := range c.Put {
				did = append(did, "stored "+key)
			}
			for _, key := range c.Deleted {
				did = append(did, "deleted "+key)
			}
			d.tell("commit", "%s", strings.Join(did, "\n"))
		}
	}
}

// deliveries shows each event that the extension gets, and what became of it.
func (d *devLoop) deliveries(ctx context.Context) {
	last, err := admin.LastSeq(ctx, d.kernel)
	if err != nil {
		d.tell("error", "%v", err)
		return
	}
	err = followEvents(ctx, d.kernel, "", last, func(e admin.Event) error {
		if !slices.ContainsFunc(e.Deliveries, func(x *adminv1.Delivery) bool { return x.GetExtension() == d.id }) {
			return nil
		}
		d.tell("event", "%s %s from %s  %s", e.Id, e.Topic, e.Source, preview(e.Payload))
		go d.outcome(ctx, e.Id)
		return nil
	})
	if ctx.Err() == nil {
		d.tell("error", "%v", err)
	}
}

// outcome shows each change of the delivery of an event, until it is settled.
func (d *devLoop) outcome(ctx context.Context, event string) {
	said := ""
	for ctx.Err() == nil {
		all, err := admin.Deliveries(ctx, d.kernel, &adminv1.DeliveriesRequest{Events: []string{event}})
		if err != nil {
			return
		}
		settled := true
		for _, x := range all {
			if x.GetExtension() != d.id {
				continue
			}
			settled = x.GetState() == "done" || x.GetState() == "dead"
			if became := outcomeOf(x); became != said && (settled || x.GetReason() != "") {
				said = became
				kind := "outcome"
				if x.GetState() == "dead" {
					kind = "refused"
				}
				d.tell(kind, "%s %s", event, became)
			}
		}
		if settled {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(startPoll):
		}
	}
}

func outcomeOf(x *adminv1.Delivery) string {
	text := x.GetState()
	if x.GetAttempts() > 0 {
		text += fmt.Sprintf(" after %d failed attempts", x.GetAttempts())
	}
	if x.GetReason() != "" {
		text += ": " + x.GetReason()
	}
	if x.GetProviderId() != "" {
		text += ", sent as " + x.GetProviderId()
	}
	return text
}

// logs shows what the extension logs.
func (d *devLoop) logs(ctx context.Context) {
	l := &logReader{dir: logDir(d.home), only: d.id, print: func(line logLine, several bool) {
		d.printing.Lock()
		defer d.printing.Unlock()
		d.p.logLine(line, several)
	}}
	err := l.tail(0)
	if err == nil {
		err = l.follow(ctx)
	}
	if err != nil {
		d.tell("error", "read its log: %v", err)
	}
}
