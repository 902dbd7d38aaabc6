package heartbeat

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/quiet"
	"github.com/switchboard-run/switchboard/sdk"
)

// The reasons to skip a beat without calling a model.
const (
	skipLate      = "late"      // the beat is too old
	skipHours     = "hours"     // outside the active hours
	skipBusy      = "busy"      // a person waits for an answer
	skipUser      = "user"      // a person wrote recently
	skipMemory    = "memory"    // memory is unavailable
	skipNothing   = "nothing"   // there are no open items
	skipUnchanged = "unchanged" // the scout has seen all of them
	skipModel     = "model"     // no model is available
	skipOff       = "off"       // the person has turned it off
)

// lateAfter is the maximum age of a beat, so that beats that queued up while the
// extension was down are skipped.
const lateAfter = 5 * time.Minute

// maxFailures is the number of consecutive failed answers after which their items
// count as seen.
const maxFailures = 3

// handle handles one beat: the owner's check, and an event for each other person's.
func (h *heartbeat) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	switch e.Topic {
	case TopicBeat:
		others, err := h.others(ctx, e)
		if err != nil {
			return nil, err
		}
		checked, err := h.checkFor(ctx, e, contract.Owner)
		return append(checked, others...), err
	case topicCheck:
		var c check
		if err := e.Decode(&c); err != nil {
			return nil, err
		}
		return h.checkFor(ctx, e, c.Account)
	case contract.TopicPersonRevoked:
		return h.revoked(ctx, e)
	case contract.TopicPersonChanged:
		return h.changed(ctx, e)
	}
	return nil, sdk.Drop("the heartbeat does not handle " + e.Topic)
}

// checkFor checks whether the assistant should bring up something for a person.
func (h *heartbeat) checkFor(ctx context.Context, e sdk.Event, account string) (sdk.Effects, error) {
	p, on, err := h.person(ctx, account)
	if err != nil || !on && account != contract.Owner {
		return nil, err
	}
	s, err := h.load(ctx, p.stateKey())
	if err != nil {
		return nil, err
	}
	now := h.now()
	s.Figures.Runs++
	s.Figures.LastRun, s.Figures.Problem = &now, ""
	open, skip := []item(nil), skipOff
	if on {
		if open, skip, err = h.check(ctx, e, p, s, now); err != nil {
			return nil, err
		}
	}
	if skip != "" {
		s.Figures.Skipped[skip]++
		s.Figures.LastResult = "skipped: " + skip
		return sdk.Effects{s.effect()}, nil
	}
	return h.triage(ctx, e, p, s, open, now)
}

// check makes the checks that need no model. It returns the items to ask about,
// or the reason to skip the beat.
func (h *heartbeat) check(
	ctx context.Context, e sdk.Event, of person, s *state, now time.Time,
) (open []item, skip string, err error) {
	switch {
	case now.Sub(e.CreatedAt) > lateAfter:
		return nil, skipLate, nil
	case !h.hours.contain(now.In(of.zone)), !quiet.Until(of.quiet, now, of.zone).IsZero():
		return nil, skipHours, nil
	}
	p, err := h.k.Presence(ctx)
	switch age := now.Sub(p.UserAt); {
	case err != nil:
		return nil, "", fmt.Errorf("read presence: %w", err)
	case p.Busy:
		return nil, skipBusy, nil
	case !p.UserAt.IsZero() && age > -h.quiet && age < h.quiet:
		return nil, skipUser, nil
	}
	items, err := h.read(ctx, of, now)
	if err != nil {
		if ctx.Err() != nil {
			return nil, "", fmt.Errorf("read open items: %w", err)
		}
		s.Figures.Problem = err.Error()
		h.log.Debug("memory is unavailable", "error", err)
		return nil, skipMemory, nil
	}
	s.prune(now, h.cooldown, items)
	open, isNew := s.open(items)
	switch {
	case len(items) == 0:
		return nil, skipNothing, nil
	case !isNew:
		return nil, skipUnchanged, nil
	}
	return open, "", nil
}

// triage asks the scout and carries out its decision.
func (h *heartbeat) triage(
	ctx context.Context, e sdk.Event, of person, s *state, open []item, now time.Time,
) (sdk.Effects, error) {
	channel, err := of.channel, error(nil)
	if channel == "" {
		channel, err = h.defaultChannel(ctx)
	}
	if err != nil {
		return nil, err
	}
	prefer, err := h.preferences(ctx, of)
	if err != nil {
		h.log.Warn("cannot read preferences, continuing without", "error", err)
	}
	f := &s.Figures
	a, err := h.ask(ctx, h.question(open, prefer, channel, now.In(of.zone)))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil && a == (answer{}): // try again at the next beat
		f.Skipped[skipModel]++
		f.LastResult, f.Problem = "skipped: "+skipModel, err.Error()
		h.log.Warn("cannot call the scout", "error", err)
		return sdk.Effects{s.effect()}, nil
	}
	f.ModelCalls++
	f.LastCall = &now
	f.InputTokens += a.input
	f.OutputTokens += a.output
	if s.Failures++; err == nil {
		s.Failures = 0
	}
	if err == nil || s.Failures >= maxFailures { // each attempt costs tokens
		for _, i := range open {
			s.Asked[i.mark] = now.Unix()
		}
	}
	if err != nil {
		f.ModelErrors++
		f.LastResult, f.Problem = "the scout's answer was incomplete", err.Error()
		h.log.Warn("the scout's answer was incomplete", "error", err)
		return sdk.Effects{s.effect()}, nil
	}
	d, err := parseDecision(a.text)
	if err != nil {
		f.Invalid++
		f.LastResult, f.Problem = "the scout's answer was invalid", err.Error()
		h.log.Warn("the scout's answer was invalid", "error", err)
		return sdk.Effects{s.effect()}, nil
	}
	items, named := d.itemsOf(open)
	switch d.Action {
	case actionDone:
		f.Done++
		if named {
			for _, i := range items {
				s.Settled[i.mark] = now.Unix()
			}
		}
	case actionEscalate:
		if s.Reasons[normalized(d.Reason)] != 0 && !named {
			f.Repeated++
			f.LastResult = "not escalated again"
			return sdk.Effects{s.effect()}, nil
		}
		for _, i := range items {
			s.Escalated[i.mark] = now.Unix()
		}
		s.Reasons[normalized(d.Reason)] = now.Unix()
		f.Escalations++
		f.LastEscalation, f.LastResult = &now, actionEscalate
		h.log.Info("escalated", "reason", d.Reason)
		key := "beat:" + e.ID
		s.addRecent(recent{Key: key, At: now, Reason: d.Reason})
		task := contract.AgentTask{
			Prompt: escalation(d.Reason, items, channel), Name: ID, Quiet: true, Principal: of.principal(),
		}
		return sdk.Effects{s.effect(), sdk.Publish(contract.TopicAgentTask, task, sdk.Dedupe(key))}, nil
	default:
		f.Noops++
	}
	f.LastResult = d.Action
	return sdk.Effects{s.effect()}, nil
}
