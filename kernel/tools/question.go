package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/questions"
	"github.com/switchboard-run/switchboard/kernel/router"
)

// ask asks the user for the call, and waits until the question ends. A call asks
// once: after a crash, the repeated call waits for the same question, or finds its
// answer. A new message of the user withdraws the question. Without an answer,
// refusal is the result for the model: the format unanswered with the reason.
func (r *running) ask(
	ctx context.Context, q ask.Question, life time.Duration, unanswered string,
) (asked *questions.Question, refusal string, err error) {
	asked, err = r.question(ctx)
	if asked == nil && err == nil {
		err = r.put(q, life)
	}
	switch {
	case errors.Is(err, router.ErrNobody):
		return nil, fmt.Sprintf(unanswered, "no one could be asked: "+err.Error()), nil
	case err != nil:
		return nil, "", fmt.Errorf("ask for %s: %w", r.call.Name, err)
	}
	waiting, done := r.wait(ctx)
	defer done()
	if asked, err = r.ended(waiting); err != nil {
		return nil, "", err
	}
	if asked == nil || ctx.Err() != nil {
		return nil, "", fmt.Errorf("%w: the turn of call %s has ended", contract.ErrStale, journal.CallID(r.call.ID))
	}
	switch {
	case asked.Outcome == contract.AskExpired:
		refusal = fmt.Sprintf(unanswered, "no one answered within "+life.String())
	case asked.Outcome == contract.AskWithdrawn && asked.By != "":
		refusal = fmt.Sprintf(unanswered, "the user did not want to answer")
	case asked.Outcome == contract.AskWithdrawn:
		refusal = contract.InterruptedCall
	}
	return asked, refusal, nil
}

// ended waits until the question of the call has ended, and withdraws it when waiting
// ends.
func (r *running) ended(waiting context.Context) (*questions.Question, error) {
	for {
		ended := r.Router.Questions().Ended()
		q, err := r.question(context.WithoutCancel(waiting))
		if err != nil || q == nil || q.Outcome != "" {
			return q, err
		}
		select {
		case <-ended:
		case <-waiting.Done():
			if err := r.Bus.Do(func(tx *bus.Tx) error {
				_, _, err := r.Router.Questions().End(tx, q.ID, contract.AskWithdrawn, "", "")
				return err
			}); err != nil {
				return nil, err
			}
		}
	}
}

// question returns the question of the call; nil: none yet.
func (r *running) question(ctx context.Context) (q *questions.Question, err error) {
	err = r.Bus.View(ctx, func(j journal.Reader) (err error) {
		q, err = r.Router.Questions().OfCall(j, journal.CallID(r.call.ID))
		return err
	})
	return q, err
}

// put asks a new question for the call.
func (r *running) put(q ask.Question, life time.Duration) error {
	where := r.in.ReplyTo
	if r.byExtension() { // which could name a conversation of another person
		where = ""
	}
	return r.commit(func(tx *bus.Tx) error {
		q.Deadline = tx.Now + life.Microseconds()
		asked := &questions.Question{Question: q, Asker: r.who(), Call: journal.CallID(r.call.ID)}
		return r.Router.AskFor(tx, asked, where, r.turn)
	})
}
