package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Question waits for a person's answer.
type Question struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind" enum:"approve,choose,answer" doc:"yes or no; one of options; any text"`
	Text     string     `json:"text"`
	Options  []string   `json:"options"`
	Asker    string     `json:"asker" doc:"The extension, or the agent in whose turn it is asked."`
	Channel  string     `json:"channel,omitempty" doc:"Where it was asked."`
	Person   string     `json:"person,omitempty" doc:"Who was asked in private; absent: the owner, or a group."`
	AskedAt  *time.Time `json:"asked_at,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"`
}

// NewAnswer is the answer to a question.
type NewAnswer struct {
	Answer       string `json:"answer" minLength:"1" maxLength:"10000" doc:"yes or no; an option or its number; any text"`
	Conversation Name   `json:"conversation,omitempty" doc:"Where it was asked; the owner may answer anywhere."`
}

type (
	answerRequest struct {
		Key string `header:"Idempotency-Key" hidden:"true"`
		ByID
		Body NewAnswer
	}
)

// answerTime is how long an answer is waited for.
const answerTime = 10 * time.Second

func (a *api) questions(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/questions", id: "list-questions", tag: "questions", scope: door.ScopeMessages,
		summary: "List the open questions, the oldest first",
		about:   "The owner sees all, anyone else what they were asked in private.",
	}, func(ctx context.Context, v door.Visitor, in *Paging) (*listing[Question], error) {
		all, err := a.openQuestions(ctx, v)
		if err != nil {
			return nil, err
		}
		return offsetPage(all, *in)
	})
	add(h, op{
		method: http.MethodPost, path: "/questions/{id}/answer", id: "answer-question", tag: "questions",
		scope: door.ScopeMessages, summary: "Answer a question",
		about: "The answer is a message of the person: /answer, /approve or /deny. The response has what the assistant " +
			"says to it, if that comes within ten seconds.",
	}, a.answer)
}

func (a *api) openQuestions(ctx context.Context, v door.Visitor) ([]Question, error) {
	open, err := a.Read.Questions(ctx, &adminv1.QuestionsRequest{})
	if err != nil {
		return nil, err
	}
	var all []Question
	for _, q := range open.GetQuestions() {
		if !v.Owner() && (q.GetPerson() == "" || q.GetPerson() != v.Person) {
			continue
		}
		all = append(all, Question{
			ID: q.GetId(), Kind: q.GetKind(), Text: q.GetText(), Options: append([]string{}, q.GetOptions()...),
			Asker: q.GetAsker(), Channel: q.GetChannel(), Person: q.GetPerson(), AskedAt: moment(q.GetAskedAtUs()),
			Deadline: moment(q.GetDeadlineUs()),
		})
	}
	return all, nil
}

func (a *api) answer(ctx context.Context, v door.Visitor, in *answerRequest) (*exchangeResponse, error) {
	m := chat.Message{Conversation: conversationOf(v, string(in.Body.Conversation))}
	if in.Key != "" {
		m.ID = "answer-" + keyID(v, in.Key)
		if said, err := a.find(ctx, v, m.Conversation, m.ID); err == nil { // before a crash
			return a.exchange(ctx, v, said), nil
		}
	}
	open, err := a.openQuestions(ctx, v)
	if err != nil {
		return nil, err
	}
	var q *Question
	for i := range open {
		if open[i].ID == in.ID {
			q = &open[i]
		}
	}
	if q == nil {
		return nil, missing("open question", in.ID)
	}
	m.Text = "/answer " + q.ID + " " + in.Body.Answer
	if q.Kind == contract.AskApprove {
		switch strings.ToLower(in.Body.Answer) {
		case "yes", "approve":
			m.Text = "/approve " + q.ID
		case "no", "deny":
			m.Text = "/deny " + q.ID
		}
	}
	if m.ID == "" {
		m.ID = "answer-" + newID()
	}
	said, err := a.Chat.Say(ctx, v, m)
	if err != nil {
		return nil, err
	}
	return a.exchange(ctx, v, said), nil
}

// exchange waits a moment for the answer to a command.
func (a *api) exchange(ctx context.Context, v door.Visitor, said chat.Line) *exchangeResponse {
	w := &wait{api: a, visitor: v, said: said, out: Exchange{Message: messageOf(v, said), Status: waiting}}
	w.forAnswer(ctx, answerTime)
	return &exchangeResponse{w.out}
}
