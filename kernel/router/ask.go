package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/questions"
)

// askLife is the life of an extension's question that says nothing about it.
const askLife = 24 * time.Hour

// Questions are those that people are asked.
func (r *MessageRouter) Questions() *questions.Store { return r.questions }

// ask asks a person on behalf of an extension.
func (r *MessageRouter) ask(tx *bus.Tx, e *busv1.Event, a contract.UserAsk) error {
	if topic.Owner(a.Topic) != e.GetSource() || !topic.ValidTopic(a.Topic) {
		return tx.Dead(e, fmt.Sprintf("the topic %q of the answer is not a topic of %s: they begin with \"%s.\"",
			a.Topic, e.GetSource(), e.GetSource()))
	}
	refuse := func(reason string) error {
		_, err := tx.Emit(a.Topic, "", contract.UserAnswer{Ref: a.Ref, Outcome: contract.AskWithdrawn})
		return errors.Join(err, tx.Dead(e, reason))
	}
	if wrong := ask.Check(a); wrong != "" {
		return refuse(wrong)
	}
	open, _, err := r.questions.Open(tx, tx.Now)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(o questions.Question) bool { return o.Asker != e.GetSource() })
	if n := len(open); n >= questions.MaxOpen {
		return refuse(fmt.Sprintf("%s already has %d open questions, which is the limit", e.GetSource(), n))
	}
	to, err := r.destination(tx, a.ChannelID, a.ReplyTo)
	if err != nil {
		return err
	}
	if to == nil {
		return refuse("no channel to ask on")
	}
	if home, err := r.recipient(tx, to.channel); err == nil && cmp.Or(home.address, to.address) == to.address {
		to.language = home.language // unknown of a reply target
	}
	a = ask.TranslatedQuestion(to.language, a)
	text, err := to.note(tx, e, a.ChannelID, a.Text)
	if err != nil {
		return err
	}
	life := cmp.Or(time.Duration(a.ExpiresSeconds)*time.Second, askLife)
	q := &questions.Question{
		Question: ask.Question{Kind: a.Kind, Text: text, Options: a.Options, Deadline: tx.Now + life.Microseconds()},
		Asker:    e.GetSource(), Event: e.GetSeq(), Topic: a.Topic, Ref: a.Ref,
	}
	return r.put(tx, q, to, contract.ChannelSend{Kind: contract.SendNotice})
}

// ErrNobody means that there is no channel to ask on.
var ErrNobody = errors.New("no channel to ask a person on")

// AskFor asks a person for a call of a turn: in the conversation that the turn
// answers, otherwise where a notice would go.
func (r *MessageRouter) AskFor(tx *bus.Tx, q *questions.Question, replyTo string, turn *journal.Turn) error {
	to, err := r.destination(tx, "", replyTo)
	if err != nil {
		return err
	}
	if to == nil {
		return ErrNobody
	}
	send := contract.ChannelSend{Kind: contract.SendNotice}
	if turn != nil {
		send.Session = journal.SessionID(turn.Session)
	}
	if turn != nil && !strings.HasPrefix(to.target, defaultPlace) {
		send.Kind = contract.SendReply
		s, errOf := tx.Session(turn.Session)
		send.ReplyTo, q.Language, err = NewestMessage(tx, turn.Inputs)
		if err = errors.Join(err, errOf); err != nil {
			return err
		}
		to.unasked = s != nil && isJob(s)
	}
	return r.put(tx, q, to, send)
}

// put stores a question and sends it to a place.
func (r *MessageRouter) put(tx *bus.Tx, q *questions.Question, to *place, send contract.ChannelSend) error {
	if err := r.questions.Ask(tx, q); err != nil {
		return err
	}
	q.Language = cmp.Or(q.Language, to.language)
	send.Text, send.Question = q.Message(), q.ID
	return r.show(tx, q, to, send)
}

// show sends a question to a place and stores the place.
func (r *MessageRouter) show(tx *bus.Tx, q *questions.Question, to *place, send contract.ChannelSend) (err error) {
	if send.Actions = nil; to.channel.Actions { // in others the text says how to answer
		send.Actions = q.Actions()
	}
	if q.Sends, err = r.parts(tx, to, send); err != nil {
		return err
	}
	q.Channel, q.Handle = to.channel.ID, ""
	if to.address != "" {
		c, err := r.conversation(tx, to.channel.ID, to.address, to.thread, false)
		if err != nil {
			return err
		}
		q.Handle = c.Handle
	}
	return r.questions.Move(tx, q)
}

// showElsewhere sends a text to another place; a question in it is asked there from
// now on.
func (r *MessageRouter) showElsewhere(tx *bus.Tx, to *place, m contract.ChannelSend) error {
	if m.Question == "" {
		return r.send(tx, to, m)
	}
	q, err := r.questions.Get(tx, m.Question)
	if err != nil || q == nil || q.Outcome != "" {
		return err
	}
	return r.show(tx, q, to, m)
}

// unask withdraws the question of an event of system.user.ask. It is too late if
// the question has ended.
func (r *MessageRouter) unask(tx *bus.Tx, e *busv1.Event) (bus.Withdrawal, error) {
	open, _, err := r.questions.Open(tx, tx.Now)
	i := slices.IndexFunc(open, func(o questions.Question) bool { return o.Event == e.GetSeq() })
	if i < 0 || err != nil {
		return bus.WithdrawTooLate, err
	}
	q, unseen, err := r.questions.End(tx, open[i].ID, contract.AskWithdrawn, "", "")
	if unseen || err != nil || len(q.Sends) == 0 { // in quiet hours it is held
		return bus.WithdrawDone, err
	}
	text := words.Say(q.Language, "Question %s no longer needs an answer: %s", q.ID, q.Brief())
	return bus.WithdrawDone, r.tellWhereAsked(tx, q, text)
}

// EndQuestions ends the questions that have expired or whose answer is no longer
// needed.
func (r *MessageRouter) EndQuestions(ctx context.Context, b *bus.Bus, now time.Time) error {
	var over []questions.Question
	err := b.View(ctx, func(j journal.Reader) (err error) {
		_, over, err = r.questions.Open(j, now.UnixMicro())
		return err
	})
	for _, o := range over {
		if err == nil {
			err = b.Do(func(tx *bus.Tx) error { return r.end(tx, o.ID, o.Outcome) })
		}
	}
	return err
}

// end ends a question without an answer.
func (r *MessageRouter) end(tx *bus.Tx, id, outcome string) error {
	q, unseen, err := r.questions.End(tx, id, outcome, "", "")
	if err != nil || q == nil || unseen || outcome == contract.AskWithdrawn {
		return err
	}
	return r.tellWhereAsked(tx, q, q.Expired())
}

// tellWhereAsked sends a text to where a question was asked.
func (r *MessageRouter) tellWhereAsked(tx *bus.Tx, q *questions.Question, text string) error {
	target, kind := q.Handle, contract.SendReply
	if target == "" {
		target, kind = defaultPlace+q.Channel, contract.SendNotice
	}
	to, err := r.resolve(tx, target)
	if err != nil || to == nil {
		return err
	}
	to.unasked = len(q.Sends) == 0 // the question is held
	return r.send(tx, to, contract.ChannelSend{Text: text, Kind: kind})
}
