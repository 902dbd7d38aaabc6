package board

import (
	"crypto/rand"
	"net/http"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

const (
	questionsPath = "/board/questions"
	// channel is the id of the web channel.
	channel = "web_channel"
)

// questions shows the open questions, which are answered in the visitor's chat, and to the owner
// the lasting approvals.
func (b *board) questions(mux *http.ServeMux) {
	b.page(mux, questionsPath, anyone, door.ScopeMessages, func(q *request) (*sheet, error) {
		open, err := q.openQuestions()
		if err != nil {
			return nil, err
		}
		s := &sheet{Title: q.say("Questions")}
		if len(open) == 0 {
			s.Blocks = []block{{Text: []string{q.say("No question is open. When an agent needs your permission or asks you " +
				"something, it is here and in your chat.")}}}
		}
		for _, x := range open {
			s.Blocks = append(s.Blocks, q.questionBlock(x))
		}
		if q.v.May(door.ScopeAdmin, false) {
			block, err := q.approvalsBlock()
			if err != nil {
				return nil, err
			}
			s.Blocks = append(s.Blocks, block)
		}
		return s, nil
	})
	b.change(mux, questionsPath+"/answer", anyone, door.ScopeMessages, func(q *request) (string, string, error) {
		open, err := q.openQuestions()
		if err != nil {
			return "", "", err
		}
		i := slices.IndexFunc(open, func(x *adminv1.Question) bool { return x.GetId() == q.field("id") })
		if i < 0 || !q.mayAnswer(open[i]) {
			return "", "", words.Errorf("%w: this question is not open any more", contract.ErrNotFound)
		}
		said, ok := answerOf(open[i], q.field("answer"))
		if !ok {
			return "", "", words.Errorf("%w: write an answer first", contract.ErrInvalid)
		}
		// The id is the form's: to send it twice is to say it once.
		_, err = b.Chat.Say(q.Context(), q.v, chat.Message{ID: "board-" + q.field("form"), Text: said})
		return questionsPath, q.say("Your answer is sent. What follows is in your chat."), err
	})
	b.change(mux, questionsPath+"/revoke", owners, door.ScopeAdmin, func(q *request) (string, string, error) {
		out, err := b.Manage.RevokeApprovals(q.Context(), &adminv1.RevokeApprovalsRequest{
			Agent: q.field("agent"), Tool: q.field("tool"),
		})
		if err == nil && out.GetRevoked() == 0 {
			err = words.Errorf("%w: there is no such approval any more", contract.ErrNotFound)
		}
		return questionsPath, q.say("%s asks again before it calls %s.", q.field("agent"), q.field("tool")), err
	})
}

// answerOf returns the command that answers a question.
func answerOf(x *adminv1.Question, answer string) (said string, ok bool) {
	if x.GetKind() == "approve" {
		switch answer {
		case "yes":
			return "/approve " + x.GetId(), true
		case "always":
			return "/approve " + x.GetId() + " always", true
		case "no":
			return "/deny " + x.GetId(), true
		}
		return "", false
	}
	return "/answer " + x.GetId() + " " + answer, answer != ""
}

// openQuestions returns the open questions that the visitor may see: all for the owner, and for
// others those that they were asked in private.
func (q *request) openQuestions() ([]*adminv1.Question, error) {
	all, err := q.b.Read.Questions(q.Context(), &adminv1.QuestionsRequest{})
	if err != nil {
		return nil, err
	}
	open := all.GetQuestions()
	if !q.v.Owner() {
		open = slices.DeleteFunc(open, func(x *adminv1.Question) bool { return x.GetPerson() != q.v.Person })
	}
	return open, nil
}

// mayAnswer reports whether the visitor can answer a question from the web channel: the owner
// those that no other person was asked, others those that they were asked there.
func (q *request) mayAnswer(x *adminv1.Question) bool {
	if q.v.Owner() {
		return x.GetPerson() == "" || x.GetPerson() == q.v.Person
	}
	return x.GetPerson() == q.v.Person && x.GetChannel() == channel
}

func (q *request) questionBlock(x *adminv1.Question) block {
	b := block{
		Title: q.say("%s asks", x.GetAsker()), Said: []entry{{Kind: "other", Text: x.GetText()}},
		Facts: []fact{
			{q.say("Asked"), q.at(x.GetAskedAtUs())}, {q.say("Until"), q.at(x.GetDeadlineUs())},
			{q.say("On"), text(dash(x.GetChannel()))}, {q.say("Question"), cell{Text: x.GetId(), Code: true}},
		},
	}
	if !q.mayAnswer(x) {
		b.Text = []string{q.say("It was asked on %s, and can be answered there.", x.GetChannel())}
		if q.v.Owner() {
			b.Text = []string{q.say("It was asked of another person, in private: only they can answer it.")}
		}
		return b
	}
	answer := func(label, value string) form {
		return form{
			Action: questionsPath + "/answer", Label: label,
			Hidden: []hidden{{"id", x.GetId()}, {"form", rand.Text()}, {"answer", value}},
		}
	}
	switch {
	case x.GetKind() == "approve":
		b.Forms = []form{answer(q.say("Yes"), "yes"), answer(q.say("No"), "no")}
		if q.v.Owner() && x.GetCall() != "" {
			b.Forms = append(b.Forms, answer(q.say("Always"), "always"))
		}
	case len(x.GetOptions()) > 0:
		for _, o := range x.GetOptions() {
			b.Forms = append(b.Forms, answer(o, o))
		}
	default:
		b.Forms = []form{{
			Action: questionsPath + "/answer", Label: q.say("Answer"), Open: true,
			Hidden: []hidden{{"id", x.GetId()}, {"form", rand.Text()}},
			Fields: []field{{Name: "answer", Label: q.say("Your answer"), Type: "area", Required: true}},
		}}
	}
	return b
}

func (q *request) approvalsBlock() (block, error) {
	t := &table{
		Head:  []string{q.say("Tool"), q.say("Agent"), q.say("Where"), q.say("By"), q.say("Since")},
		Empty: q.say("Nothing is approved for good: agents ask before each call of a tool that needs approval."),
	}
	all, err := q.b.Read.Approvals(q.Context(), &adminv1.ApprovalsRequest{})
	for _, a := range all.GetApprovals() {
		where := q.say("everywhere")
		if a.GetChannel() != "" {
			where = a.GetChannel() + " " + a.GetConversation()
		}
		t.Rows = append(t.Rows, row{
			Cells: []cell{
				{Text: a.GetTool(), Code: true}, text(a.GetAgent()), text(where), text(dash(a.GetBy())), q.at(a.GetAtUs()),
			},
			Forms: []form{{
				Action: questionsPath + "/revoke", Label: q.say("Revoke"), Danger: true,
				Hidden:   []hidden{{"agent", a.GetAgent()}, {"tool", a.GetTool()}},
				Question: q.say("Ask again before %s calls %s?", a.GetAgent(), a.GetTool()),
			}},
		})
	}
	return block{Title: q.say("Approved for good"), Table: t}, err
}
