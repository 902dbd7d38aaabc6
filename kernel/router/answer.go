package router

import (
	"cmp"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/questions"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Every admitted person can answer a question where it was asked. The owner
// can also answer it in any private conversation of theirs, unless it was asked of
// another person in private.

// replied settles the question that a message answers where it was asked; false: it
// answers none and is an ordinary message.
func (r *MessageRouter) replied(tx *bus.Tx, q request, text string) (bool, error) {
	here, _, err := r.answerable(tx, q)
	if err != nil {
		return false, err
	}
	var fitting []questions.Question
	var first *questions.Question // that has to end before the message is read
	for _, o := range here {
		meant, err := meant(tx, &o, q.Quote)
		if err != nil {
			return false, err
		}
		if !meant {
			continue
		}
		if _, fits := o.ParseAnswer(text); fits {
			fitting = append(fitting, o)
		} else if holds, err := holds(tx, &o); err != nil {
			return false, err
		} else if holds {
			first = &o
		}
	}
	switch {
	case len(fitting) > 1:
		return true, r.reply(tx, q, ambiguous(q, fitting))
	case len(fitting) == 1:
		answer, _ := fitting[0].ParseAnswer(text)
		said, err := r.settle(tx, q, &fitting[0], answer)
		if err != nil || fitting[0].Call != "" {
			return true, err // its turn continues and answers
		}
		return true, r.reply(tx, q, said)
	case first != nil:
		return false, r.reply(tx, q, q.say("I'll get to that after question %s is answered: %s\n\n%s",
			first.ID, first.Brief(), first.Instructions()))
	}
	return false, nil
}

// holds reports whether a question still waits when a new message comes where it was
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

// meant reports whether a message may answer a question: its sender has read it, and did
// not choose another message of the assistant to answer.
func meant(tx journal.Reader, o *questions.Question, quote *contract.Quote) (bool, error) {
	if len(o.Sends) == 0 { // it is held
		return false, nil
	}
	yes := quote == nil || quote.Sender != "" || quote.MessageID == ""
	for _, seq := range o.Sends {
		ds, err := tx.Deliveries(journal.DeliveryFilter{Seq: seq})
		if err != nil || slices.ContainsFunc(ds, func(d journal.Delivery) bool { return d.State == journal.Pending }) {
			return false, err
		}
		yes = yes || slices.ContainsFunc(ds, func(d journal.Delivery) bool { return d.ProviderID == quote.MessageID })
	}
	return yes, nil
}

// reply answers the message of a request where it was written.
func (r *MessageRouter) reply(tx *bus.Tx, q request, text string, actions ...contract.Action) error {
	said := contract.ChannelSend{Text: text, Actions: actions, Kind: contract.SendReply, ReplyTo: q.MessageID}
	return r.send(tx, q.here, said)
}

func ambiguous(q request, open []questions.Question) string {
	return q.say("Which question do you mean? For example: /answer %s TEXT, or /deny %s to drop it.\n\n%s",
		open[0].ID, open[0].ID, listed(open))
}

func listed(open []questions.Question) string {
	lines := make([]string, len(open))
	for i, o := range open {
		lines[i] = "- " + o.ID + ": " + o.Summary()
	}
	return strings.Join(lines, "\n")
}

// aboutQuestions answers the commands that list and settle questions.
func (r *MessageRouter) aboutQuestions(tx *bus.Tx, q request, command, rest string) (string, error) {
	here, elsewhere, err := r.answerable(tx, q)
	if err != nil {
		return "", err
	}
	if command == "questions" {
		if all := slices.Concat(here, elsewhere); len(all) > 0 {
			return q.say("Open questions:\n\n%s\n\n/answer ID TEXT answers one; /approve ID and /deny ID say yes and no.",
				listed(all)), nil
		}
		return q.say("No questions are open."), nil
	}
	var o *questions.Question
	var problem string
	first, text, _ := strings.Cut(rest, " ")
	if id, named := ask.ParseID(first); named {
		o, problem, err = r.named(tx, q, id, slices.Concat(here, elsewhere))
	} else {
		text = rest
		o, problem = only(q, command, here, elsewhere)
	}
	if problem != "" || err != nil {
		return problem, err
	}
	switch {
	case command == "deny" && o.Kind != contract.AskApprove:
		_, _, err := r.questions.End(tx, o.ID, contract.AskWithdrawn, "", q.who())
		return q.say("Question %s is dropped.", o.ID), err
	case command == "approve" && o.Kind != contract.AskApprove:
		return q.say("Question %s isn't a yes-or-no question. Use /answer %s TEXT:\n\n%s", o.ID, o.ID, o.Text), nil
	case command == "approve":
		text = cmp.Or(text, words.Yes)
	case command == "deny":
		text = words.No
	}
	answer, fits := o.ParseAnswer(text)
	if !fits {
		return q.say("That doesn't answer question %s.\n\n%s", o.ID, o.Message()), nil
	}
	return r.settle(tx, q, o, answer)
}

// only is the question that a command without an id means: the only one asked here, or
// else elsewhere. If there is none, problem explains it.
func only(q request, command string, here, elsewhere []questions.Question) (o *questions.Question, problem string) {
	for _, open := range [][]questions.Question{here, elsewhere} {
		if command != "answer" {
			open = slices.DeleteFunc(open, func(o questions.Question) bool { return o.Kind != contract.AskApprove })
		}
		if len(open) > 1 {
			return nil, ambiguous(q, open)
		}
		if len(open) == 1 {
			return &open[0], ""
		}
	}
	return nil, q.say("There is no open question to answer.")
}

// named is the question with an id, if it is one of the open ones. Otherwise problem
// explains it.
func (r *MessageRouter) named(tx *bus.Tx, q request, id string, open []questions.Question,
) (o *questions.Question, problem string, err error) {
	if i := slices.IndexFunc(open, func(o questions.Question) bool { return o.ID == id }); i >= 0 {
		return &open[i], "", nil
	}
	problem = q.say("There is no question %s for you here. /questions lists the open ones.", id)
	if o, err = r.questions.Get(tx, id); o == nil || err != nil {
		return nil, problem, err
	}
	may, _, err := r.mayAnswer(tx, o, q)
	if may {
		problem = o.TooLate(q.Language, tx.Now)
	}
	return nil, problem, err
}

// settle ends a question with an answer, and returns the confirmation for the sender; empty:
// they were answered.
func (r *MessageRouter) settle(tx *bus.Tx, q request, o *questions.Question, answer string) (string, error) {
	lasting := o.Lasting && (answer == words.Always || answer == words.AlwaysHere)
	if lasting && !q.owner {
		// The buttons are gone from the question: here they are again.
		return "", r.reply(tx, q, q.say("Only the owner can approve for good. You can answer yes or no."), o.Actions()...)
	}
	_, unseen, err := r.questions.End(tx, o.ID, contract.AskAnswered, answer, q.who())
	if err == nil && !q.at(o) && !unseen {
		text := words.Say(o.Language, "Question %s was answered by %s on %s: %s", o.ID, q.who(), q.here.channel.Name, answer)
		err = r.tellWhereAsked(tx, o, text)
	}
	return o.Settled(q.Language, answer, lasting), err
}

// at reports whether a question was asked where the message was written.
func (q request) at(o *questions.Question) bool {
	return o.Handle == q.conversation.Handle || o.Handle == "" && o.Channel == q.here.channel.ID
}

// who is the name of the sender for people.
func (q request) who() string {
	if q.here.channel.Local && (q.UserName == "" || q.UserName == q.UserID) { // an id without meaning to people
		return q.say("the owner")
	}
	return cmp.Or(q.UserName, q.UserID)
}

// answerable returns the open questions that the sender can answer: those asked here,
// and others.
func (r *MessageRouter) answerable(tx *bus.Tx, q request) (here, elsewhere []questions.Question, err error) {
	open, _, err := r.questions.Open(tx, tx.Now)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range open {
		may, askedHere, err := r.mayAnswer(tx, &o, q)
		switch {
		case err != nil:
			return nil, nil, err
		case askedHere:
			here = append(here, o)
		case may:
			elsewhere = append(elsewhere, o)
		}
	}
	return here, elsewhere, nil
}

// Asked returns the id of the person who was asked a question in private; empty: the
// owner, or a group.
func (r *MessageRouter) Asked(tx journal.Reader, q *questions.Question) (string, error) {
	at, err := tx.ConversationByHandle(q.Handle)
	if at == nil || at.Group || err != nil {
		return "", err
	}
	p, err := people.At(tx, q.Channel, at.Address)
	if p == nil || p.ID == people.Owner || err != nil {
		return "", err
	}
	return p.ID, nil
}

// mayAnswer reports whether the sender can answer a question, and whether it was asked
// here. The default recipient of a channel is its owner, who can answer what was asked of
// no other person in private.
func (r *MessageRouter) mayAnswer(tx *bus.Tx, o *questions.Question, q request) (may, askedHere bool, err error) {
	ownerHere := q.owner && !q.conversation.Group
	askedHere = q.at(o) && (o.Handle != "" || ownerHere)
	if askedHere || !ownerHere {
		return askedHere, askedHere, nil
	}
	at, err := tx.ConversationByHandle(o.Handle)
	c := r.directory.Current().Channel(o.Channel)
	if at == nil || c == nil || err != nil {
		return true, false, err
	}
	anothers, err := r.anothers(tx, c, at.Address, at.Thread)
	return !anothers, false, err
}
