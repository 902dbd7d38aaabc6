package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/kernel/control"
)

// heartbeatSkips says for people why the heartbeat asked no model.
var heartbeatSkips = map[string]string{
	"late":      "a beat came too late",
	"hours":     "outside of the active hours",
	"busy":      "somebody waited for an answer",
	"user":      "somebody had just written",
	"memory":    "memory did not answer",
	"nothing":   "nothing is open",
	"unchanged": "nothing new is open",
	"model":     "there was no model to ask",
}

// heartbeat shows what the heartbeat has done.
func (p *printer) heartbeat(h *control.Heartbeat) {
	if h == nil {
		return
	}
	if h.Runs == 0 {
		p.line("Heartbeat: has not looked yet.")
		return
	}
	delivered := fmt.Sprintf("%d delivered", h.Deliveries)
	if int64(h.Followed) < h.Escalations {
		delivered = fmt.Sprintf("of the last %d %s", h.Followed, delivered)
	}
	p.line("Heartbeat: %s, %s (%d tokens), %s, %s.", count(int(h.Runs), "run"), count(int(h.ModelCalls), "model call"),
		h.InputTokens+h.OutputTokens, count(int(h.Escalations), "escalation"), delivered)
	last := h.LastResult
	if reason, skipped := strings.CutPrefix(last, "skipped: "); skipped {
		last = cmp.Or(heartbeatSkips[reason], reason)
	}
	p.faint(fmt.Sprintf("  %s: %s", since(h.LastRun), last))
	if h.Problem != "" {
		p.line("  %s", p.paint(yellow, h.Problem))
	}
	if n := len(overdue(h, time.Now())); n > 0 {
		p.line("  %s reached nobody: `switchboard doctor`", p.paint(yellow, count(n, "escalation")))
	}
}

// deliveryPatience is how long an escalation may take to be delivered.
const deliveryPatience = time.Hour

// overdue are the escalations that should have been delivered by now.
func overdue(h *control.Heartbeat, now time.Time) (out []control.Escalation) {
	for _, e := range h.Undelivered {
		if now.Sub(e.At) > deliveryPatience {
			out = append(out, e)
		}
	}
	return out
}

// maxShown is how many escalations are listed.
const maxShown = 5

// looks is how many times it may fail to look before that is worth a word.
const looks = 3

func (d *diagnosis) heartbeat(h *control.Heartbeat, started, now time.Time) {
	if h == nil {
		return
	}
	last := started
	if h.LastRun != nil && h.LastRun.After(started) {
		last = *h.LastRun
	}
	if every := time.Duration(h.EverySeconds) * time.Second; every > 0 && now.Sub(last) > looks*every+time.Minute {
		d.add("Heartbeat", levelWarning, "`switchboard schedules list --all` shows whether heartbeat.beat is paused or missing, `switchboard logs scheduler` why",
			"it has not looked since %s, and should every %s", last.Local().Format("2006-01-02 15:04"), every)
	}
	late := overdue(h, now)
	for _, e := range late[max(0, len(late)-maxShown):] {
		d.add("Heartbeat", levelWarning, fmt.Sprintf("`switchboard trace %s` shows what became of it", e.Event),
			"the escalation %s of %s was never delivered: %s", e.Event, e.At.Local().Format("2006-01-02 15:04"), e.Reason)
	}
	if n := len(late) - maxShown; n > 0 {
		d.add("Heartbeat", levelWarning, "", "%s before were not delivered either", count(n, "escalation"))
	}
	if h.Problem != "" {
		d.add("Heartbeat", levelNote, "", "the last look: %s", h.Problem)
	}
	if len(late) == 0 {
		d.add("Heartbeat", levelOK, "", "%s, %s, %d of the last %d delivered", count(int(h.Runs), "run"), count(int(h.Escalations), "escalation"), h.Deliveries, h.Followed)
	}
}
