package sdk

import (
	"context"

	"github.com/switchboard-run/switchboard/contract"
)

// UserMessage is a message of a person, as a channel reports it with
// Kernel.Receive.
type UserMessage = contract.UserMessage

// Channel is a way to people.
type Channel interface {
	// Send sends one message. Messages of one conversation come one at a time
	// and in order; other conversations are concurrent. A nil error means that
	// the platform has it. Retry, Drop and Unknown say what else is the case;
	// any other error means that it was not sent.
	Send(ctx context.Context, m Message) (Receipt, error)
}

// ChannelFunc is a Channel that is one function.
type ChannelFunc func(ctx context.Context, m Message) (Receipt, error)

// Send calls f.
func (f ChannelFunc) Send(ctx context.Context, m Message) (Receipt, error) { return f(ctx, m) }

// Drafter is a Channel that can show text while it is being written. Drafts are
// lost when anything is in their way. A message with the DraftID takes the
// draft's place; when a turn ends with nothing to say, the draft is Done instead.
type Drafter interface {
	Draft(ctx context.Context, d Draft)
}

// DraftRemover is a Drafter whose drafts stay where they are until something
// takes their place, also when its process has ended. RemoveDraft is called, in
// the place of Draft with Done, when a turn ends with nothing to say, and again
// until it has succeeded; its errors mean what those of Send mean. Of the draft
// it is given the id and the address.
type DraftRemover interface {
	Drafter
	RemoveDraft(ctx context.Context, d Draft) error
}

// Message is one message to send.
type Message struct {
	ID           string // stays the same when the message is sent again
	Text         string // Markdown, with the mark of a repetition if people may see it twice
	Unmarked     string // Text without that mark, for what repeats nothing, such as an edit
	Conversation string // the channel's own address; empty: the default recipient
	Thread       string
	Owner        string // user id of the owner on this channel, if one is known
	ReplyTo      string // the platform's id of the message this answers
	DraftID      string // the draft that this message replaces
	Part, Parts  int    // of a text that was split
	Repeat       bool   // an earlier attempt may have been sent
	Session      string // the session that says it; may be empty
	Notice       bool   // not an answer: a reminder or a message from elsewhere
}

// Receipt is what the platform said.
type Receipt struct {
	ProviderID   string // the platform's id of the message
	Conversation string // where it really went
	Thread       string
	Effects      Effects // committed together with the acknowledgement
}

// Draft is the text so far.
type Draft struct {
	Conversation string
	Thread       string
	ID           string
	ReplyTo      string // the platform's id of the message that is being answered
	Text         string // empty: the assistant is working
	Done         bool   // nothing more comes of this draft
}
