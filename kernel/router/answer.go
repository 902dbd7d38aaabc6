package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/questions"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Everyone who is admitted where a question was asked can answer it there. The owner
// can also answer it in any private conversation of theirs, unless it was asked of
// another person in private.

// replied settles the question that a message answers where it was asked; false: it
// answers none and is an ordinary message.
func (r *MessageRouter) replied(tx *bus.Tx, q request, text string) (bool, error) {
	open, err := r.questions.Open(tx, tx.Now)
	if err != nil || len(open) == 0 {
		return false, err
	}
	isOwner, err := r.isOwner(tx, q)
	if err != nil {
		return false, err
	}
	var fitting []questions.Question
	var first *questions.Question // that has to end before the message is read
	for _, o := range open {
		if !askedHere(&o, q, isOwner) {
			continue
		}
		shown, err := shown(tx, &o)
		if err != nil {
			return false, err
		}
		if _, fits := o.ParseAnswer(text); fits && shown {
			fitting = append(fitting, o)
		} else if holds, err := holds(tx, &o); err != nil {
			return false, err
		} else if holds && shown {
			first = &o
		}
	}
	switch len(fitting) {
	case 0:
		if first == nil {
			return false, nil
		}
		return false, r.reply(tx, q, fmt.Sprintf("I'll get to that after question %s is answered: %s\n\n%s", first.ID, first.Brief(), first.Instructions()))
	case 1:
		answer, _ := fitting[0].ParseAnswer(text)
		said, err := r.settle(tx, q, &fitting[0], answer)
		if err != nil || fitting[0].Call != "" {
			return true, err // its turn goes on and answers
		}
		return true, r.reply(tx, q, said)
	}
	return true, r.reply(tx, q, ambiguous(fitting))
}

// holds says whether a question still waits when a new message comes where it was
// asked: its turn was interrupted too often, or works for another agent.
func holds(tx journal.Reader, o *questions.Question) (bool, error) {
	if o.Call == "" {
		return false, nil
	}
	c, err := tx.Call(journal.ParseCallID(o.Call))
	if err != nil || c == nil {
		return false, err
	}
	turn, err := tx.Turn(c.Turn)
	if err != nil || turn == nil || turn.Interrupted >= contract.MaxInterruptions {
		return turn != nil, err
	}
	s, err := tx.Session(c.Session)
	return s != nil && session.WorksFor(s) != 0, err
}

// shown says whether a person may have read a question. What they write before that
// doesn't answer it.
func shown(tx journal.Reader, o *questions.Question) (bool, error) {
	for _, seq := range o.Sends {
		ds, err := tx.Deliveries(journal.DeliveryFilter{Seq: seq})
		if err != nil || slices.ContainsFunc(ds, func(d journal.Delivery) bool { return d.State == journal.Pending }) {
			return false, err
		}
	}
	return true, nil
}

// reply answers the message of a request where it was written.
func (r *MessageRouter) reply(tx *bus.Tx, q request, text string) error {
	return r.send(tx, q.here, contract.ChannelSend{Text: text, Kind: contract.SendReply, ReplyTo: q.message})
}

func ambiguous(open []questions.Question) string {
	return fmt.Sprintf("Which question do you mean? For example: /answer %s TEXT, or /deny %s to drop it.\n\n%s",
		open[0].ID, open[0].ID, listed(open))
}

func listed(open []questions.Question) string {
	lines := make([]string, len(open))
	for i, o := range open {
		lines[i] = "- " + o.ID + ": " + o.Brief()
		for n, option := range o.Options {
			lines[i] += fmt.Sprintf("\n  %d. %s", n+1, option)
		}
	}
	return strings.Join(lines, "\n")
}

// aboutQuestions answers the commands by which questions are listed and settled.
func (r *MessageRouter) aboutQuestions(tx *bus.Tx, q request, command, rest string) (string, error) {
	here, elsewhere, err := r.answerable(tx, q)
	if err != nil {
		return "", err
	}
	if command == "questions" {
		if all := slices.Concat(here, elsewhere); len(all) > 0 {
			return "Open questions:\n\n" + listed(all) + "\n\n/answer ID TEXT answers one; /approve ID and /deny ID say yes and no.", nil
		}
		return "No questions are open.", nil
	}
	first, text, _ := strings.Cut(rest, " ")
	id, named := questions.ParseID(first)
	if !named {
		text = rest
	}
	o, problem, err := r.meant(tx, q, command, id, here, elsewhere)
	if problem != "" || err != nil {
		return problem, err
	}
	switch {
	case command == "deny" && o.Kind != contract.AskApprove:
		if _, _, err := r.questions.End(tx, o, contract.AskWithdrawn, "", q.who()); err != nil {
			return "", err
		}
		return fmt.Sprintf("Question %s is dropped.", o.ID), nil
	case command == "approve" && o.Kind != contract.AskApprove:
		return fmt.Sprintf("Question %s isn't a yes-or-no question. Use /answer %s TEXT:\n\n%s", o.ID, o.ID, o.Text), nil
	case command == "approve":
		text = questions.Yes
	case command == "deny":
		text = questions.No
	}
	answer, fits := o.ParseAnswer(text)
	if !fits {
		return fmt.Sprintf("That doesn't answer question %s.\n\n%s", o.ID, o.Message()), nil
	}
	return r.settle(tx, q, o, answer)
}

// meant is the question that a command is about, or why there is none.
func (r *MessageRouter) meant(tx *bus.Tx, q request, command, id string, here, elsewhere []questions.Question) (o *questions.Question, problem string, err error) {
	if id == "" {
		for _, open := range [][]questions.Question{here, elsewhere} {
			if command != "answer" {
				open = slices.DeleteFunc(slices.Clone(open), func(o questions.Question) bool { return o.Kind != contract.AskApprove })
			}
			switch len(open) {
			case 0:
			case 1:
				return &open[0], "", nil
			default:
				return nil, ambiguous(open), nil
			}
		}
		return nil, "There is no open question to answer.", nil
	}
	if o, err = r.questions.Get(tx, id); err != nil {
		return nil, "", err
	}
	mine := false
	if o != nil {
		isOwner, err := r.isOwner(tx, q)
		if err != nil {
			return nil, "", err
		}
		if mine, err = r.mayAnswer(tx, o, q, isOwner); err != nil {
			return nil, "", err
		}
	}
	if !mine {
		return nil, fmt.Sprintf("There is no question %s for you here. /questions lists the open ones.", id), nil
	}
	if open, err := r.questions.Answerable(tx, o, tx.Now); open || err != nil {
		return o, "", err
	}
	return nil, tooLate(o, tx.Now), nil
}

// tooLate says what became of a question before the answer came.
func tooLate(o *questions.Question, now int64) string {
	what := "is closed: the answer is no longer needed"
	switch {
	case o.Outcome == contract.AskAnswered:
		what = "was already answered: " + o.Answer
		if o.By != "" {
			what += " (" + o.By + ")"
		}
	case o.Outcome == contract.AskExpired, o.Outcome == "" && o.Deadline <= now:
		what = "has expired"
	}
	return fmt.Sprintf("Question %s %s.", o.ID, what)
}

// settle ends a question with an answer, and returns what to tell the sender.
func (r *MessageRouter) settle(tx *bus.Tx, q request, o *questions.Question, answer string) (string, error) {
	ended, unseen, err := r.questions.End(tx, o, contract.AskAnswered, answer, q.who())
	if err != nil {
		return "", err
	}
	if !ended {
		return tooLate(o, tx.Now), nil
	}
	if o.Handle != q.conversation.Handle && !unseen {
		text := fmt.Sprintf("Question %s was answered by %s on %s: %s", o.ID, q.who(), q.here.channel.Name, answer)
		if o.Handle != "" || o.Channel != q.here.channel.ID {
			if err := r.tellWhereAsked(tx, o, text); err != nil {
				return "", err
			}
		}
	}
	switch {
	case o.Kind == contract.AskApprove && answer == questions.Yes:
		return fmt.Sprintf("Question %s: approved.", o.ID), nil
	case o.Kind == contract.AskApprove:
		return fmt.Sprintf("Question %s: declined.", o.ID), nil
	}
	return fmt.Sprintf("Question %s is answered: %s", o.ID, answer), nil
}

// who is the sender as shown to people.
func (q request) who() string {
	if q.here.channel.Local && (q.name == "" || q.name == q.user) { // an id that says nothing to people
		return "the owner"
	}
	return cmp.Or(q.name, q.user)
}

// answerable are the open questions that the sender can answer: those asked here, and
// others.
func (r *MessageRouter) answerable(tx *bus.Tx, q request) (here, elsewhere []questions.Question, err error) {
	open, err := r.questions.Open(tx, tx.Now)
	if err != nil || len(open) == 0 {
		return nil, nil, err
	}
	isOwner, err := r.isOwner(tx, q)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range open {
		may, err := r.mayAnswer(tx, &o, q, isOwner)
		switch {
		case err != nil:
			return nil, nil, err
		case askedHere(&o, q, isOwner):
			here = append(here, o)
		case may:
			elsewhere = append(elsewhere, o)
		}
	}
	return here, elsewhere, nil
}

// askedHere says whether a question was asked in the conversation. The default
// recipient of a channel is its owner.
func askedHere(o *questions.Question, q request, isOwner bool) bool {
	if o.Handle != "" {
		return o.Handle == q.conversation.Handle
	}
	return o.Channel == q.here.channel.ID && isOwner && !q.conversation.Group
}

func (r *MessageRouter) mayAnswer(tx *bus.Tx, o *questions.Question, q request, isOwner bool) (bool, error) {
	if askedHere(o, q, isOwner) {
		return true, nil
	}
	if !isOwner || q.conversation.Group {
		return false, nil
	}
	return r.ofOwner(tx, o)
}

// ofOwner says whether a question was asked of the owner, and not of somebody
// else in private.
func (r *MessageRouter) ofOwner(tx journal.Reader, o *questions.Question) (bool, error) {
	c := r.directory.Current().Channel(o.Channel)
	if o.Handle == "" || c == nil || c.Local {
		return true, nil
	}
	at, err := tx.ConversationByHandle(o.Handle)
	if err != nil || at == nil || at.Group {
		return true, err
	}
	owner, err := ownerOn(tx, c)
	if err != nil {
		return false, err
	}
	return owner.UserID != "" && (at.Address == owner.UserID || at.Address == owner.Conversation && at.Thread == owner.Thread), nil
}

// isOwner says whether the sender is the owner on that channel.
func (r *MessageRouter) isOwner(tx journal.Reader, q request) (bool, error) {
	if q.here.channel.Local {
		return true, nil
	}
	owner, err := ownerOn(tx, q.here.channel)
	return q.user != "" && owner.UserID == q.user, err
}
