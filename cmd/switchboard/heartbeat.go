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
	// heartbeatTimeout bounds the wait for the heartbeat's figures.
	heartbeatTimeout = 3 * time.Second
	// maxFollowed bounds the number of newest escalations whose delivery is checked.
	maxFollowed = 100
)

// beats has the figures of the heartbeat since its first run.
type beats struct {
	EverySeconds int64            `json:"every_seconds"` // configured interval
	Runs         int64            `json:"runs"`
	Skipped      map[string]int64 `json:"skipped"` // runs without a model call, by reason
	ModelCalls   int64            `json:"model_calls"`
	ModelErrors  int64            `json:"model_errors"`
	Invalid      int64            `json:"invalid"` // unreadable answers
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Noops        int64            `json:"noops"`
	Done         int64            `json:"done"`
	Escalations  int64            `json:"escalations"`
	Repeated     int64            `json:"repeated"` // suppressed repeated escalations

	LastRun        *time.Time `json:"last_run,omitempty"`
	LastResult     string     `json:"last_result,omitempty"`
	LastCall       *time.Time `json:"last_call,omitempty"`
	LastEscalation *time.Time `json:"last_escalation,omitempty"`
	Problem        string     `json:"problem,omitempty"` // of the last run

	// Followed is the number of checked escalations: the newest ones whose events are
	// kept. Deliveries counts those that led to a delivered message, Undelivered lists
	// the others.
	Followed    int          `json:"followed"`
	Deliveries  int          `json:"deliveries"`
	Undelivered []escalation `json:"undelivered"`
}

// escalation is one request of the heartbeat to an agent.
type escalation struct {
	Event  string    `json:"event"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// askHeartbeat reads the heartbeat's figures, and from the kernel the deliveries of its
// escalations. It returns nil without an error if there is no heartbeat, or it is disabled.
// It returns within heartbeatTimeout.
func askHeartbeat(ctx context.Context, k *admin.Client, extensions []*adminv1.Extension) (*beats, error) {
	i := slices.IndexFunc(extensions, func(x *adminv1.Extension) bool { return x.Id == heartbeatID })
	if i < 0 || extensions[i].State == stateDisabled {
		return nil, nil //nolint:nilnil // there is none
	}
	if state := extensions[i].State; state != "active" {
		return nil, fmt.Errorf("it is %s", strings.ReplaceAll(state, "_", " "))
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	h, err := readHeartbeat(ctx, k)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", heartbeatTimeout)
	}
	return h, err
}

func readHeartbeat(ctx context.Context, k *admin.Client) (*beats, error) {
	answer, err := callTool[struct {
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
	h := answer.beats
	if every, err := strictyaml.ParseDuration(answer.Every); err == nil {
		h.EverySeconds = int64(every / time.Second)
	}
	h.Undelivered = []escalation{}
	for _, e := range answer.Recent[max(0, len(answer.Recent)-maxFollowed):] {
		r, err := admin.Reached(ctx, k, heartbeatID, e.Key)
		if err != nil {
			return nil, fmt.Errorf("read the deliveries of its escalations: %w", err)
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

// heartbeatSkips has the reasons for a run without a model call, for people.
var heartbeatSkips = map[string]string{
	"late":      "a beat came too late",
	"hours":     "outside of the active hours",
	"busy":      "a conversation was waiting for an answer",
	"user":      "a message had just arrived",
	"memory":    "memory did not answer",
	"nothing":   "nothing is open",
	"unchanged": "nothing new is open",
	"model":     "no model was available",
	"off":       "the owner has turned it off",
}

// heartbeat shows the heartbeat's figures, or why they are unknown.
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

// deliveryLimit is the time in which an escalation should be delivered.
const deliveryLimit = time.Hour

// overdue returns the undelivered escalations past deliveryLimit.
func overdue(h *beats, now time.Time) (out []escalation) {
	for _, e := range h.Undelivered {
		if now.Sub(e.At) > deliveryLimit {
			out = append(out, e)
		}
	}
	return out
}

// maxShown bounds the listed escalations.
const maxShown = 5

// maxMissed is the number of missed runs without a warning.
const maxMissed = 3

// askHeartbeat checks the heartbeat.
func (d *diagnosis) askHeartbeat(ctx context.Context, k *admin.Client, s admin.Status) {
	h, err := askHeartbeat(ctx, k, s.Extensions)
	if err != nil {
		level := levelWarning
		if slices.ContainsFunc(s.Extensions, func(x *adminv1.Extension) bool {
			return x.Id == heartbeatID &&
				x.State != "active"
		}) {
			level = levelNote // the check of extensions reports that
		}
		d.add("Heartbeat", level, "`switchboard extensions list` and `switchboard logs heartbeat` may say why",
			"it doesn't answer: %s", message(err))
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
	if every := time.Duration(h.EverySeconds) * time.Second; every > 0 && now.Sub(last) > maxMissed*every+time.Minute {
		d.add("Heartbeat", levelWarning, "see whether `switchboard schedules list --all` has heartbeat.beat, and "+
			"`switchboard logs scheduler`",
			"it has not run since %s, but should every %s", last.Local().Format("2006-01-02 15:04"), every)
	}
	late := overdue(h, now)
	for _, e := range late[max(0, len(late)-maxShown):] {
		d.add("Heartbeat", levelWarning, fmt.Sprintf("`switchboard trace %s` shows what happened to it", e.Event),
			"the escalation %s of %s was not delivered: %s", e.Event, e.At.Local().Format("2006-01-02 15:04"), e.Reason)
	}
	if n := len(late) - maxShown; n > 0 {
		d.add("Heartbeat", levelWarning, "", "%s were not delivered", count(n, "earlier escalation"))
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
		d.add("Heartbeat", levelOK, "", "%s, %s, %d of the last %d delivered", count(int(h.Runs), "check"),
			count(int(h.Escalations), "escalation"), h.Deliveries, h.Followed)
	}
}
