package api

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Name is a client's name of a conversation.
type Name string

// Schema implements huma.SchemaProvider.
func (Name) Schema(huma.Registry) *huma.Schema {
	longest := 64
	return &huma.Schema{Type: huma.TypeString, MaxLength: &longest, Pattern: `^[^~\x00-\x1f/]*$`}
}

// Conversation is one of the token's conversations.
type Conversation struct {
	Name    string    `json:"name"`
	Title   string    `json:"title,omitempty"`
	Last    *Message  `json:"last,omitempty" doc:"The newest message."`
	Unread  int       `json:"unread" doc:"Messages of the assistant after the last one that was read."`
	Updated time.Time `json:"updated"`
}

type (
	// ByName names a conversation.
	ByName struct {
		Name Name `path:"name"`
	}
	readRequest struct {
		ByName
		Body struct {
			Seq int64 `json:"seq" minimum:"0" doc:"Messages up to this one were read."`
		}
	}
	followRequest struct {
		ByName
		After  after `query:"after" doc:"Begin after this seq; absent: with the next message."`
		LastID after `header:"Last-Event-ID" doc:"Of the last message that was received: the stream continues after it."`
	}
)

func (a *api) conversations(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/conversations", id: "list-conversations", tag: "messages", scope: door.ScopeMessages,
		summary: "List the token's conversations, the latest first",
	}, a.listConversations)
	add(h, op{
		method: http.MethodGet, path: "/conversations/{name}/stream", id: "follow-conversation", tag: "messages",
		scope: door.ScopeMessages, long: true, summary: "Follow a conversation (SSE)",
		about: "Events named message, whose id is the seq, and draft. A client that comes back with Last-Event-ID gets " +
			"each later message once; drafts may be lost.",
		responses: map[string]*huma.Response{"200": streamResponse("Messages and drafts.")},
	}, a.followConversation)
	add(h, op{
		method: http.MethodPost, path: "/conversations/{name}/read", id: "read-conversation", tag: "messages",
		scope: door.ScopeMessages, summary: "Note that messages were read", status: http.StatusNoContent,
	}, func(ctx context.Context, v door.Visitor, in *readRequest) (*struct{}, error) {
		return &struct{}{}, a.Chat.Read(ctx, v, conversationOf(v, string(in.Name)), in.Body.Seq)
	})
	add(h, op{
		method: http.MethodDelete, path: "/conversations/{name}", id: "delete-conversation", tag: "messages",
		scope: door.ScopeMessages, summary: "Delete the messages of a conversation", status: http.StatusNoContent,
		about: "Its session stays: the assistant still knows what was said.",
	}, func(ctx context.Context, v door.Visitor, in *ByName) (*struct{}, error) {
		return &struct{}{}, a.Chat.Delete(ctx, v, conversationOf(v, string(in.Name)))
	})
	// Events of a stream are described by schemas, too.
	for _, t := range []reflect.Type{reflect.TypeFor[Message](), reflect.TypeFor[Draft]()} {
		h.OpenAPI().Components.Schemas.Schema(t, true, "")
	}
}

func (a *api) listConversations(ctx context.Context, v door.Visitor, in *Paging) (*listing[Conversation], error) {
	all, err := a.Chat.List(ctx, v)
	if err != nil {
		return nil, err
	}
	var own []Conversation
	for _, c := range all {
		name, is := clientName(v, c.Name)
		if !is {
			continue
		}
		x := Conversation{Name: name, Title: c.Title, Unread: c.Unread, Updated: c.Updated.UTC()}
		if c.Last.Seq > 0 {
			last := messageOf(v, c.Last)
			x.Last = &last
		}
		own = append(own, x)
	}
	return offsetPage(own, *in)
}

func (a *api) followConversation(ctx context.Context, v door.Visitor, in *followRequest) (*streaming, error) {
	leave, err := a.enter(v)
	if err != nil {
		return nil, err
	}
	name := conversationOf(v, string(in.Name))
	var from int64
	switch {
	case in.LastID.Set:
		from = in.LastID.Seq
	case in.After.Set:
		from = in.After.Seq
	default:
		last, err := a.Chat.Lines(ctx, v, name, 0, 1<<62, 1)
		if err != nil {
			leave()
			return nil, err
		}
		if len(last) > 0 {
			from = last[len(last)-1].Seq
		}
	}
	return &streaming{func(c huma.Context) {
		defer leave()
		s := newSSE(c)
		if s.begin(from) != nil {
			return
		}
		w := wait{api: a, visitor: v, said: chat.Line{Conversation: name, Seq: from}}
		_ = relay(ctx, a, v, s, w.frames, func(f chat.Frame) error { // the client comes back
			if f.Draft != nil {
				return s.send(0, "draft", draftOf(*f.Draft))
			}
			return s.send(f.Line.Seq, "message", messageOf(v, *f.Line))
		})
	}}, nil
}
