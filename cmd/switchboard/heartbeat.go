package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	heartbeatID      = "heartbeat"
	heartbeatFigures = heartbeatID + "/figures"
	// heartbeatPatience is how long the heartbeat may take to tell its figures.
	heartbeatPatience = 3 * time.Second
	// mostFollowed is how many escalations, the newest, are followed to their end.
	mostFollowed = 100
)

// beats is what the heartbeat has done since the beginning, and what came of
// it.
type beats struct {
	EverySeconds int64            `json:"every_seconds"` // how often it should look
	Runs         int64            `json:"runs"`
	Skipped      map[string]int64 `json:"skipped"` // runs that asked no model, by reason
	ModelCalls   int64            `json:"model_calls"`
	ModelErrors  int64            `json:"model_errors"`
	Invalid      int64            `json:"invalid"` // answers that could not be read
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Noops        int64            `json:"noops"`
	Done         int64            `json:"done"`
	Escalations  int64            `json:"escalations"`
	Repeated     int64            `json:"repeated"` // escalations that were not made again

	LastRun        *time.Time `json:"last_run,omitempty"`
	LastResult     string     `json:"last_result,omitempty"`
	LastCall       *time.Time `json:"last_call,omitempty"`
	LastEscalation *time.Time `json:"last_escalation,omitempty"`
	Problem        string     `json:"problem,omitempty"` // of the last run

	// Followed is how many escalations were followed to their end: the newest, as
	// far as their events are kept. Deliveries is how many of them led to
	// something that a channel delivered, Undelivered are the others.
	Followed    int          `json:"followed"`
	Deliveries  int          `json:"deliveries"`
	Undelivered []escalation `json:"undelivered"`
}

// escalation is one time that the heartbeat has asked an agent to act.
type escalation struct {
	Event  string    `json:"event"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// askHeartbeat asks the heartbeat what it has done, and the kernel what came of
// it; nil without an error: there is none, or it is switched off. It answers
// within heartbeatPatience, whatever they do.
func askHeartbeat(ctx context.Context, k *admin.Client, extensions []*adminv1.Extension) (*beats, error) {
	i := slices.IndexFunc(extensions, func(x *adminv1.Extension) bool { return x.Id == heartbeatID })
	if i < 0 || extensions[i].State == stateDisabled {
		return nil, nil //nolint:nilnil // there is none
	}
	if state := extensions[i].State; state != "active" {
		return nil, fmt.Errorf("it is %s", strings.ReplaceAll(state, "_", " "))
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatPatience)
	defer cancel()
	h, err := readHeartbeat(ctx, k)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it has not answered within %s", heartbeatPatience)
	}
	return h, err
}

func readHeartbeat(ctx context.Context, k *admin.Client) (*beats, error) {
	said, err := callTool[struct {
		beats
		Every  string `json:"every"`
		Recent []struct {
			Key    string    `json:"key"`
			At     time.Time `json:"at"`
			Reason string    `json:"reason"`
		} `json:"recent"`
	}](ctx, k, heartbeatFigures, map[string]any{})
	if err != nil {
		return nil, err
	}
	h := said.beats
	if every, err := strictyaml.ParseDuration(said.Every); err == nil {
		h.EverySeconds = int64(every / time.Second)
	}
	h.Undelivered = []escalation{}
	for _, e := range said.Recent[max(0, len(said.Recent)-mostFollowed):] {
		r, err := admin.Reached(ctx, k, heartbeatID, e.Key)
		if err != nil {
			return nil, fmt.Errorf("ask what came of its escalations: %w", err)
		}
		if r.Event == "" {
			continue // retention has removed it
		}
		if h.Followed++; r.Delivered {
			h.Deliveries++
		} else {
			h.Undelivered = append(h.Undelivered, escalation{Event: r.Event, At: e.At, Reason: e.Reason})
		}
	}
	return &h, nil
}

// heartbeatSkips says for people why the heartbeat asked no model.
var heartbeatSkips = map[string]string{
	"late":      "a beat came too late",
	"hours":     "outside of the active hours",
	"busy":      "a conversation was waiting for an answer",
	"user":      "a message had just arrived",
	"memory":    "memory did not answer",
	"nothing":   "nothing is open",
	"unchanged": "nothing new is open",
	"model":     "there was no model to ask",
}

// heartbeat shows what the heartbeat has done, or why that is not known.
func (p *printer) heartbeat(h *beats, problem string) {
	switch {
	case problem != "":
		p.line("%s: no answer: %s", p.paint(yellow, "Heartbeat"), problem)
		return
	case h == nil:
		return
	case h.Runs == 0:
		p.line("Heartbeat: hasn't run yet.")
		if h.Problem != "" {
			p.line("  %s", p.paint(yellow, h.Problem))
		}
		return
	}
	delivered := fmt.Sprintf("%d delivered", h.Deliveries)
	if int64(h.Followed) < h.Escalations {
		delivered = fmt.Sprintf("of the last %d %s", h.Followed, delivered)
	}
	p.line("Heartbeat: %s, %s (%d tokens), %s, %s.", count(int(h.Runs), "check"), count(int(h.ModelCalls), "model call"),
		h.InputTokens+h.OutputTokens, count(int(h.Escalations), "escalation"), delivered)
	last := h.LastResult
	if reason, skipped := strings.CutPrefix(last, "skipped: "); skipped {
		last = cmp.Or(heartbeatSkips[reason], reason)
	}
	p.faint(fmt.Sprintf("  %s: %s", sinceTime(h.LastRun), last))
	if h.Problem != "" {
		p.line("  %s", p.paint(yellow, h.Problem))
	}
	if n := len(overdue(h, time.Now())); n > 0 {
		p.line("  %s weren't delivered: see `switchboard doctor`", p.paint(yellow, count(n, "escalation")))
	}
}

// deliveryPatience is how long an escalation may take to be delivered.
const deliveryPatience = time.Hour

// overdue are the escalations that should have been delivered by now.
func overdue(h *beats, now time.Time) (out []escalation) {
	for _, e := range h.Undelivered {
		if now.Sub(e.At) > deliveryPatience {
			out = append(out, e)
		}
	}
	return out
}

// maxShown is how many escalations are listed.
const maxShown = 5

// missed is how many runs it may miss before that is worth a warning.
const missed = 3

// askHeartbeat asks the heartbeat, and looks at its answer.
func (d *diagnosis) askHeartbeat(ctx context.Context, k *admin.Client, s admin.Status) {
	h, err := askHeartbeat(ctx, k, s.Extensions)
	if err != nil {
		level := levelWarning
		if slices.ContainsFunc(s.Extensions, func(x *adminv1.Extension) bool { return x.Id == heartbeatID && x.State != "active" }) {
			level = levelNote // that it does not run stands elsewhere
		}
		d.add("Heartbeat", level, "`switchboard extensions list` and `switchboard logs heartbeat` may say why", "it doesn't answer: %s", message(err))
		return
	}
	d.heartbeat(h, at(s.StartedAtUs), time.Now())
}

func (d *diagnosis) heartbeat(h *beats, started, now time.Time) {
	if h == nil {
		return
	}
	last := started
	if h.LastRun != nil && h.LastRun.After(started) {
		last = *h.LastRun
	}
	if every := time.Duration(h.EverySeconds) * time.Second; every > 0 && now.Sub(last) > missed*every+time.Minute {
		d.add("Heartbeat", levelWarning, "`switchboard schedules list --all` shows whether heartbeat.beat is paused or missing, `switchboard logs scheduler` why",
			"it has not run since %s; it should every %s", last.Local().Format("2006-01-02 15:04"), every)
	}
	late := overdue(h, now)
	for _, e := range late[max(0, len(late)-maxShown):] {
		d.add("Heartbeat", levelWarning, fmt.Sprintf("`switchboard trace %s` shows what happened to it", e.Event),
			"the escalation %s of %s was never delivered: %s", e.Event, e.At.Local().Format("2006-01-02 15:04"), e.Reason)
	}
	if n := len(late) - maxShown; n > 0 {
		d.add("Heartbeat", levelWarning, "", "%s before were not delivered either", count(n, "escalation"))
	}
	if h.Problem != "" {
		d.add("Heartbeat", levelNote, "", "the last check: %s", h.Problem)
	}
	switch {
	case len(late) > 0:
	case h.Runs == 0 && h.Followed == 0:
		d.add("Heartbeat", levelOK, "", "it hasn't run yet")
	case h.Escalations == 0 && h.Followed == 0:
		d.add("Heartbeat", levelOK, "", "%s, nothing was escalated", count(int(h.Runs), "check"))
	default:
		d.add("Heartbeat", levelOK, "", "%s, %s, %d of the last %d delivered", count(int(h.Runs), "check"), count(int(h.Escalations), "escalation"), h.Deliveries, h.Followed)
	}
}
