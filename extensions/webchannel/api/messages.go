package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

const messagesPath = "/messages"

// Message is one line of a conversation.
type Message struct {
	Seq          int64        `json:"seq" doc:"In the conversation, ascending."`
	ID           string       `json:"id"`
	Conversation string       `json:"conversation"`
	Role         string       `json:"role" enum:"user,assistant"`
	Text         string       `json:"text"`
	At           time.Time    `json:"at"`
	ReplyTo      string       `json:"reply_to,omitempty" doc:"Id of the message that it answers."`
	Notice       bool         `json:"notice,omitempty" doc:"A reminder or a message from elsewhere, not an answer."`
	Attachments  []Attachment `json:"attachments,omitempty"`
	Actions      []Action     `json:"actions,omitempty" doc:"Buttons: send the command of one as a message."`
	Session      string       `json:"session,omitempty" doc:"The session that sent it."`
	Event        string       `json:"event,omitempty" doc:"Of a user's message: its event, for its trace."`
	Draft        string       `json:"draft,omitempty" doc:"Id of the draft that it replaces."`
}

// Attachment is a file of a message.
type Attachment struct {
	Kind string `json:"kind" doc:"photo, voice, document, ..."`
	Name string `json:"name,omitempty"`
	Blob string `json:"blob,omitempty" doc:"SHA-256 of the file."`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// Action is a button below a message.
type Action struct {
	Label   string `json:"label"`
	Command string `json:"command"`
}

// Draft is the text of an answer so far.
type Draft struct {
	ID      string `json:"id"`
	ReplyTo string `json:"reply_to,omitempty"`
	Text    string `json:"text" doc:"Empty: the assistant is working."`
	Done    bool   `json:"done,omitempty"`
}

// Exchange is a message with its answer.
type Exchange struct {
	Message Message   `json:"message"`
	Status  string    `json:"status" enum:"answered,ended,waiting" doc:"ended: without a text. waiting: not answered yet."`
	Outcome string    `json:"outcome,omitempty" doc:"How its turn ended: ok, error, cancelled, timeout, capped, dead."`
	Reply   *Message  `json:"reply,omitempty"`
	Others  []Message `json:"others,omitempty" doc:"What else came meanwhile, such as questions and notices."`
}

// NewMessage is a message to send.
type NewMessage struct {
	Conversation Name     `json:"conversation,omitempty" doc:"One of the token's own; absent: main."`
	Text         string   `json:"text" minLength:"1"`
	Agent        string   `json:"agent,omitempty" maxLength:"300" doc:"Absent: the conversation's or the default one."`
	ReplyTo      string   `json:"reply_to,omitempty" maxLength:"300" doc:"Id of the message that it answers."`
	Attachments  []string `json:"attachments,omitempty" maxItems:"20" doc:"The blobs of files that were uploaded."`
	Wait         float64  `json:"wait,omitempty" minimum:"0" maximum:"600" doc:"Seconds to wait for the answer."`
	Stream       bool     `json:"stream,omitempty" doc:"Answer with a stream, as with Accept: text/event-stream."`
}

type (
	messageCreation struct {
		Key    string `header:"Idempotency-Key" hidden:"true"`
		Accept string `header:"Accept" hidden:"true"`
		Body   NewMessage
	}
	// MessageQuery names a conversation.
	MessageQuery struct {
		Conversation Name `query:"conversation" doc:"Absent: main."`
	}
	messageListQuery struct {
		Paging
		MessageQuery
		After after `query:"after" doc:"Instead, the oldest first: those after this seq."`
	}
	exchangeQuery struct {
		ByID
		MessageQuery
		Wait float64 `query:"wait" minimum:"0" maximum:"600" doc:"Seconds to wait for the answer."`
	}
	exchangeResponse struct{ Body Exchange }
)

// defaultWait is how long a stream of one message lasts at most.
const defaultWait = 10 * time.Minute

func (a *api) messages(h huma.API) {
	exchange := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Exchange](), true, "")
	content := func(about string) *huma.Response {
		return &huma.Response{Description: about, Content: map[string]*huma.MediaType{"application/json": {Schema: exchange}}}
	}
	answered := streamResponse("The message with its answer; or a stream with the events message, draft, reply, other " +
		"and, at the end, done with the exchange.")
	answered.Content["application/json"] = &huma.MediaType{Schema: exchange}
	add(h, op{
		method: http.MethodPost, path: messagesPath, id: "send-message", tag: "messages", scope: door.ScopeMessages,
		long: true, summary: "Send a message; wait for the answer, or stream it",
		about: "The message is on disk when the response comes, or the stream begins. With an Idempotency-Key it is sent " +
			"once and has the key as id, and a repeated request waits for the same answer.",
		responses: map[string]*huma.Response{
			"200": answered, "202": content("The message is accepted, and not answered yet."),
		},
	}, a.send)
	add(h, op{
		method: http.MethodGet, path: messagesPath, id: "list-messages", tag: "messages", scope: door.ScopeMessages,
		summary: "Read a conversation, the newest message first",
	}, a.listMessages)
	add(h, op{
		method: http.MethodGet, path: messagesPath + "/{id}", id: "get-message", tag: "messages", scope: door.ScopeMessages,
		long: true, summary: "Show a message that was sent, with its answer",
	}, a.getExchange)
}

func (a *api) send(ctx context.Context, v door.Visitor, in *messageCreation) (*streaming, error) {
	m := chat.Message{
		ID: in.Key, Conversation: conversationOf(v, string(in.Body.Conversation)), Text: in.Body.Text, Agent: in.Body.Agent,
		ReplyTo: in.Body.ReplyTo,
	}
	if m.ID == "" {
		m.ID = rand.Text()
	}
	for _, blob := range in.Body.Attachments {
		m.Attachments = append(m.Attachments, contract.Attachment{Blob: blob})
	}
	stream := in.Body.Stream || wantsStream(in.Accept)
	leave := func() {}
	if stream || in.Body.Wait > 0 {
		var err error
		if leave, err = a.enter(v); err != nil {
			return nil, err
		}
	}
	accept, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	said, err := a.Chat.Say(accept, v, m)
	if err != nil {
		leave()
		return nil, err
	}
	if said.Text != m.Text { // without this API's record of the key: it is older than that
		leave()
		return nil, problem(http.StatusUnprocessableEntity, typeKeyReused,
			"this "+keyHeader+" came with another message before; choose a new one")
	}
	w := &wait{api: a, visitor: v, said: said, out: Exchange{Message: messageOf(v, said), Status: waiting}}
	return &streaming{func(c huma.Context) {
		defer leave()
		switch {
		case stream:
			w.stream(ctx, c)
		case in.Body.Wait > 0:
			w.forAnswer(ctx, seconds(in.Body.Wait))
			fallthrough
		default:
			w.write(c)
		}
	}}, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (a *api) listMessages(ctx context.Context, v door.Visitor, in *messageListQuery) (*listing[Message], error) {
	var since, before int64
	if in.After.Set {
		since = in.After.Seq
	} else {
		before = 1 << 62
	}
	if err := in.at(&before); err != nil {
		return nil, err
	}
	if in.Cursor != "" && in.After.Set {
		if err := in.at(&since); err != nil {
			return nil, err
		}
		before = 0
	}
	lines, err := a.Chat.Lines(ctx, v, conversationOf(v, string(in.Conversation)), since, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := &listing[Message]{Page[Message]{Items: []Message{}}}
	for i := range lines {
		if len(page.Body.Items) == in.Limit {
			page.Body.Next = cursor(page.Body.Items[in.Limit-1].Seq)
			break
		}
		if !in.After.Set { // the last ones come in their order
			i = len(lines) - 1 - i
		}
		page.Body.Items = append(page.Body.Items, messageOf(v, lines[i]))
	}
	return page, nil
}

func (a *api) getExchange(ctx context.Context, v door.Visitor, in *exchangeQuery) (*exchangeResponse, error) {
	conversation := conversationOf(v, string(in.Conversation))
	said, err := a.find(ctx, v, conversation, in.ID)
	if err != nil {
		return nil, err
	}
	w := &wait{api: a, visitor: v, said: said, out: Exchange{Message: messageOf(v, said), Status: waiting}}
	if in.Wait > 0 {
		leave, err := a.enter(v)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	w.forAnswer(ctx, max(seconds(in.Wait), lookTime))
	return &exchangeResponse{w.out}, nil
}

// find returns the visitor's message with an id. It looks at the newest ones.
func (a *api) find(ctx context.Context, v door.Visitor, conversation, id string) (chat.Line, error) {
	const page, most = 200, 10_000
	before := int64(1 << 62)
	for range most / page {
		lines, err := a.Chat.Lines(ctx, v, conversation, 0, before, page)
		if err != nil {
			return chat.Line{}, err
		}
		for _, l := range slices.Backward(lines) {
			if l.Mine && l.ID == id {
				return l, nil
			}
		}
		if len(lines) < page {
			break
		}
		before = lines[0].Seq
	}
	return chat.Line{}, missing("message", id)
}

func (w *wait) write(c huma.Context) {
	_, out := humago.Unwrap(c)
	out.Header().Set("Content-Type", "application/json")
	if w.out.Status == waiting {
		out.WriteHeader(http.StatusAccepted)
	}
	_ = json.NewEncoder(out).Encode(w.out) // the client is gone
}

// mainConversation is the name of the conversation without one.
const mainConversation = "main"

// conversationOf is the name of a conversation among those of the visitor's user. A token has
// conversations of its own; a page has those of the person.
func conversationOf(v door.Visitor, name string) string {
	if name == "" {
		name = mainConversation
	}
	if v.Token != "" {
		return tokenPrefix(v) + name
	}
	if name == mainConversation {
		return ""
	}
	return name
}

func tokenPrefix(v door.Visitor) string { return fmt.Sprintf("api~%s~", v.Token) }

// clientName is a conversation as its client calls it, if it is one of the client's.
func clientName(v door.Visitor, name string) (string, bool) {
	if v.Token == "" {
		if name == "" {
			name = mainConversation
		}
		return name, !strings.HasPrefix(name, "api~")
	}
	return strings.CutPrefix(name, tokenPrefix(v))
}

func messageOf(v door.Visitor, l chat.Line) Message {
	m := Message{
		Seq: l.Seq, ID: l.ID, Role: "assistant", Text: l.Text, At: l.At.UTC(), ReplyTo: l.ReplyTo, Notice: l.Notice,
		Session: l.Session, Event: l.Event, Draft: l.Draft,
	}
	m.Conversation, _ = clientName(v, l.Conversation)
	if l.Mine {
		m.Role = "user"
	}
	for _, x := range l.Attachments {
		m.Attachments = append(m.Attachments, Attachment{x.Kind, x.Name, x.Blob, x.MIME, x.Size})
	}
	for _, x := range l.Actions {
		m.Actions = append(m.Actions, Action{x.Label, x.Command})
	}
	return m
}
