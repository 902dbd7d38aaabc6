package heartbeat

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// Why a beat asks no model.
const (
	skipLate      = "late"      // it waited too long: the next one looks
	skipHours     = "hours"     // it is not one of the active hours
	skipBusy      = "busy"      // a person waits for an answer
	skipUser      = "user"      // a person wrote a short time ago
	skipMemory    = "memory"    // there is no memory to look at
	skipNothing   = "nothing"   // nothing is open
	skipUnchanged = "unchanged" // the scout has been asked about all of it
	skipModel     = "model"     // no model can be asked now
)

// lateAfter is how old a beat may be: what collected while the extension was
// down is one look, not many.
const lateAfter = 5 * time.Minute

// maxFailures is how often in a row an answer may break off before what it was
// about counts as asked.
const maxFailures = 3

// handle handles one beat.
func (h *heartbeat) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	if e.Topic != TopicBeat {
		return nil, sdk.Drop("the heartbeat does not handle " + e.Topic)
	}
	s, err := h.load(ctx)
	if err != nil {
		return nil, err
	}
	now := h.now()
	s.Figures.Runs++
	s.Figures.LastRun, s.Figures.Problem = &now, ""
	open, skip, err := h.check(ctx, e, s, now)
	if err != nil {
		return nil, err
	}
	if skip != "" {
		s.Figures.Skipped[skip]++
		s.Figures.LastResult = "skipped: " + skip
		return sdk.Effects{s.effect()}, nil
	}
	return h.triage(ctx, e, s, open, now)
}

// check looks at everything that costs nothing. It returns why no model is to be
// asked, or what to ask it about.
func (h *heartbeat) check(ctx context.Context, e sdk.Event, s *state, now time.Time) (open []item, skip string, err error) {
	switch {
	case now.Sub(e.CreatedAt) > lateAfter:
		return nil, skipLate, nil
	case !h.hours.contain(now.In(h.zone)):
		return nil, skipHours, nil
	}
	p, err := h.k.Presence(ctx)
	switch age := now.Sub(p.UserAt); {
	case err != nil:
		return nil, "", fmt.Errorf("ask when a person was there last: %w", err)
	case p.Busy:
		return nil, skipBusy, nil
	case !p.UserAt.IsZero() && age > -h.quiet && age < h.quiet:
		return nil, skipUser, nil
	}
	items, err := h.read(ctx, now)
	if err != nil {
		if ctx.Err() != nil {
			return nil, "", fmt.Errorf("read the open items: %w", err)
		}
		s.Figures.Problem = err.Error()
		h.log.Debug("there is no memory to look at", "error", err)
		return nil, skipMemory, nil
	}
	s.forget(now, h.cooldown, items)
	open, news := s.open(items)
	switch {
	case len(items) == 0:
		return nil, skipNothing, nil
	case !news:
		return nil, skipUnchanged, nil
	}
	return open, "", nil
}

// triage asks the scout, and does what it says.
func (h *heartbeat) triage(ctx context.Context, e sdk.Event, s *state, open []item, now time.Time) (sdk.Effects, error) {
	home, err := h.defaultChannel(ctx)
	if err != nil {
		return nil, err
	}
	prefer, err := h.preferences(ctx)
	if err != nil {
		h.log.Warn("no preferences: memory does not tell them", "error", err)
	}
	f := &s.Figures
	said, err := h.ask(ctx, h.question(open, prefer, home, now))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil && said == (answer{}): // it is asked again at the next beat, not at once
		f.Skipped[skipModel]++
		f.LastResult, f.Problem = "skipped: "+skipModel, err.Error()
		h.log.Warn("the scout cannot be asked", "error", err)
		return sdk.Effects{s.effect()}, nil
	}
	f.ModelCalls++
	f.LastCall = &now
	f.InputTokens += said.input
	f.OutputTokens += said.output
	if s.Failures++; err == nil {
		s.Failures = 0
	}
	if err == nil || s.Failures >= maxFailures { // each attempt costs something
		for _, i := range open {
			s.Asked[i.mark] = now.Unix()
		}
	}
	if err != nil {
		f.ModelErrors++
		f.LastResult, f.Problem = "the scout's answer broke off", err.Error()
		h.log.Warn("the scout's answer broke off", "error", err)
		return sdk.Effects{s.effect()}, nil
	}
	d, err := parseDecision(said.text)
	if err != nil {
		f.Invalid++
		f.LastResult, f.Problem = "the scout's answer could not be read", err.Error()
		h.log.Warn("the scout's answer could not be read: nothing is done", "error", err)
		return sdk.Effects{s.effect()}, nil
	}
	concerned, named := d.concerns(open)
	switch d.Action {
	case actionDone:
		f.Done++
		if named {
			for _, i := range concerned {
				s.Settled[i.mark] = now.Unix()
			}
		}
	case actionEscalate:
		if s.Reasons[normalized(d.Reason)] != 0 && !named {
			f.Repeated++
			f.LastResult = "not escalated again"
			return sdk.Effects{s.effect()}, nil
		}
		for _, i := range concerned {
			s.Escalated[i.mark] = now.Unix()
		}
		s.Reasons[normalized(d.Reason)] = now.Unix()
		f.Escalations++
		f.LastEscalation, f.LastResult = &now, actionEscalate
		h.log.Info("escalated", "reason", d.Reason)
		key := "beat:" + e.ID
		s.note(recent{Key: key, At: now, Reason: d.Reason})
		task := contract.AgentTask{Prompt: escalation(d.Reason, concerned, home), Name: ID, Quiet: true}
		return sdk.Effects{s.effect(), sdk.Publish(contract.TopicAgentTask, task, sdk.Dedupe(key))}, nil
	default:
		f.Noops++
	}
	f.LastResult = d.Action
	return sdk.Effects{s.effect()}, nil
}
