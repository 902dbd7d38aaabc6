package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// maxAnswer bounds the text of one answer, in bytes. It leaves room for cutOff.
	maxAnswer = maxOutput - 1<<10
	// maxCalls is the number of calls of one answer that may run.
	maxCalls = 32
	// maxArguments bounds the arguments of one call, in bytes.
	maxArguments = 256 << 10
	// maxDetail bounds the part of a provider's error shown to people, in characters.
	maxDetail = 500
)

// Hints reach the model in one request and are not recorded.
const (
	hintLast  = "This is the last step of this turn. Answer now, without calling tools; say what is not done yet."
	hintEmpty = "Your last answer was empty. Answer now; if there is nothing left to say, confirm what was done."
)

// cutOff follows an answer that reached a length limit.
const cutOff = "\n\n[The answer was cut off here: the model reached its length limit.]"

// reconnectDelays are the delays between attempts when a model's process has died.
var reconnectDelays = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second}

// answer is a model's answer in one step.
type answer struct {
	text   string
	calls  []*busv1.Call
	finish string
	model  string
}

func (a answer) empty() bool { return len(a.calls) == 0 && contract.Blank(a.text) }

// ask asks the model. It records an answer with calls; any other answer ends the
// turn.
func (t *turn) ask(s step) (sdk.Effects, error) {
	if s.asked == 0 && t.onlyMissed() {
		return t.output(contract.OutcomeError, ""), nil
	}
	t.refreshPreamble()
	last := s.asked+1 >= t.a.limits.steps
	hint := ""
	if last && s.asked > 0 {
		hint = hintLast
	}
	said, err := t.complete(hint)
	if err == nil && said.empty() && t.fromUser {
		said, err = t.complete(hintEmpty)
	}
	switch {
	case err != nil:
		return t.failed(err)
	case len(said.calls) > 0 && last:
		t.partial = strings.TrimSpace(said.text)
		return t.end(contract.OutcomeCapped, Ending{Why: WhyCapped, Steps: t.a.limits.steps}), nil
	case len(said.calls) > 0:
		return nil, t.record(said)
	case said.empty() && t.fromUser:
		return t.end(contract.OutcomeError, Ending{Why: WhyEmpty}), nil
	}
	text := strings.TrimSpace(said.text)
	if said.finish == "length" && text != "" {
		text += words.Say(t.language, cutOff)
	}
	if said.finish == contract.FinishAside && len(t.own()) == 0 {
		t.fresh = slices.DeleteFunc(t.fresh, isAside)
		return t.output(contract.OutcomeOK, text), nil
	}
	t.fresh = append(t.fresh, &busv1.Entry{Kind: contract.EntryAnswer, Text: text, Model: said.model})
	return t.output(contract.OutcomeOK, text), nil
}

// isAside reports whether a row of a turn stays out of the history if its answer is an
// aside: what the user said, and what is only meant for its answer.
func isAside(e *busv1.Entry) bool {
	return e.GetKind() == contract.EntryContext || e.GetKind() == contract.EntryNote ||
		e.GetKind() == contract.EntryInput && e.GetInputKind() == contract.InputUser
}

// failed ends the turn if the error is the model's.
func (t *turn) failed(err error) (sdk.Effects, error) {
	if t.ctx.Err() != nil || errors.Is(err, contract.ErrStale) || errors.Is(err, errDraining) {
		return nil, err
	}
	t.a.log.Warn("the model did not answer", "session", t.context.GetSession(), "model", t.a.model, "error", err)
	detail := strings.Join(strings.Fields(err.Error()), " ")
	detail = cutRunes(strings.TrimPrefix(detail, contract.ErrUnavailable.Error()+": "), maxDetail)
	return t.end(contract.OutcomeError, Ending{Why: WhyError, Detail: detail}), nil
}

// complete asks the model, and retries while the model's process restarts, and with less
// if the request was too long for the model.
func (t *turn) complete(hint string) (answer, error) {
	refusals := 0
	for attempt := 0; ; attempt++ {
		room := t.room()
		said, err := t.completeOnce(hint)
		for ; err != nil && t.room() < room && t.ctx.Err() == nil && refusals < maxRefusals; refusals++ {
			if err := t.shorten(); err != nil {
				return answer{}, err
			}
			room = t.room()
			said, err = t.completeOnce(hint)
		}
		if err == nil || !errors.Is(err, contract.ErrGone) || attempt == len(reconnectDelays) {
			return said, err
		}
		select {
		case <-time.After(reconnectDelays[attempt]):
		case <-t.a.kernel.Draining().Done(): // the model is shutting down, too
			return answer{}, sdk.Retry(0, errDraining)
		case <-t.ctx.Done():
			return answer{}, context.Cause(t.ctx)
		}
	}
}

// errTooLong ends a completion whose answer exceeds a limit.
var errTooLong = errors.New("the answer is too long")

// completeOnce makes one request and shows the answer as a draft as it arrives.
func (t *turn) completeOnce(hint string) (answer, error) {
	release, err := t.a.slots.acquire(t.ctx)
	if err != nil {
		return answer{}, err
	}
	defer release()
	if t.a.kernel.Draining().Err() != nil { // it may have waited for its slot
		return answer{}, sdk.Retry(0, errDraining)
	}
	request, err := t.request(hint)
	if err != nil {
		return answer{}, err
	}
	var said answer
	var text strings.Builder
	t.partial = ""
	told := false // the first model to try tells its window first
	err = t.a.kernel.Complete(t.ctx, request, func(d *sdk.Delta) error {
		said.model = cmp.Or(d.GetModel(), said.model)
		if n := d.GetContext(); n > 0 && !told {
			told = true
			t.a.windows.set(request.GetModel(), n)
		}
		said.finish = cmp.Or(d.GetFinish(), said.finish)
		if c := d.GetCall(); c != nil {
			said.calls = append(said.calls, t.resolve(c))
		}
		if piece := d.GetText(); piece != "" {
			text.WriteString(piece)
			t.partial = strings.TrimSpace(text.String())
			t.draft.show(text.String())
		}
		if text.Len() > maxAnswer || len(said.calls) > 4*maxCalls {
			return errTooLong
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooLong):
		said.finish = "length"
	case err != nil && t.ctx.Err() != nil:
		return answer{}, context.Cause(t.ctx)
	case err != nil:
		return answer{}, err
	}
	t.partial = ""
	said.text = cutBytes(text.String(), maxAnswer)
	return said, nil
}

// resolve returns a call as it is recorded. The kernel reports a mistake in it to
// the model.
func (t *turn) resolve(c *busv1.Call) *busv1.Call {
	arguments := c.GetArguments()
	if len(arguments) > maxArguments {
		arguments = arguments[:maxArguments]
	}
	name, arguments := t.tools.resolve(c.GetName(), arguments)
	return &busv1.Call{ProviderId: cutRunes(c.GetProviderId(), 128), Name: name, Arguments: arguments}
}

// record commits an answer with calls, before any of them runs.
func (t *turn) record(said answer) error {
	dropped := 0
	if len(said.calls) > maxCalls {
		dropped = len(said.calls) - maxCalls
		said.calls = said.calls[:maxCalls]
	}
	row := &busv1.Entry{Kind: contract.EntryAnswer, Text: said.text, Model: said.model, Calls: said.calls}
	rows := append(slices.Clone(t.fresh), row)
	if dropped > 0 {
		rows = append(rows, &busv1.Entry{Kind: contract.EntryNote, Text: fmt.Sprintf(
			"%d more calls of the last answer were not run: at most %d at once.", dropped, maxCalls)})
	}
	result, err := t.append(rows)
	if err != nil {
		return fmt.Errorf("record the answer of the model: %w", err)
	}
	t.fresh = nil
	if result.GetWaiting() > 0 {
		t.waiting.Store(true)
	}
	if calls := result.GetCalls(); result.GetSeq() == t.history.seq+int64(len(rows)) && allOpen(calls, len(row.Calls)) {
		for i, c := range calls {
			row.Calls[i].CallId, row.Calls[i].State = c.GetCallId(), c.GetState()
		}
		t.history.predict(rows, t.id)
		return nil
	}
	return t.sync(t.ctx) // the kernel has already answered some of the calls
}

func allOpen(calls []*busv1.Call, n int) bool {
	if len(calls) != n {
		return false
	}
	for _, c := range calls {
		if c.GetCallId() == "" || !open(c) {
			return false
		}
	}
	return true
}

// append commits rows. On a conflict it reads the newer rows, which can only be
// results of this turn's calls, and repeats the commit.
func (t *turn) append(rows []*busv1.Entry) (*busv1.EffectResult, error) {
	for attempt := 0; ; attempt++ {
		results, err := t.a.kernel.Commit(t.ctx, appendRows(t.context.GetSession(), t.history.seq, rows))
		switch {
		case err == nil && len(results) != 1:
			return nil, fmt.Errorf("the kernel returned %d results for one effect", len(results))
		case err == nil:
			return results[0], nil
		case !errors.Is(err, contract.ErrConflict) || attempt > 0:
			return nil, err
		}
		if err := t.sync(t.ctx); err != nil {
			return nil, err
		}
	}
}
