package sdk

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// UserMessage is a person's message, which a channel reports with Kernel.Receive.
type UserMessage = contract.UserMessage

// Channel delivers messages to people.
type Channel interface {
	// Send sends one message. Messages of one conversation come one at a time
	// and in order; conversations are concurrent. A nil error means that the
	// platform has accepted it. An error means that it was not sent, unless it is
	// an Unknown; see also Retry and Drop.
	Send(ctx context.Context, m Message) (Receipt, error)
}

// ChannelFunc is a Channel that is one function.
type ChannelFunc func(ctx context.Context, m Message) (Receipt, error)

// Send calls f.
func (f ChannelFunc) Send(ctx context.Context, m Message) (Receipt, error) { return f(ctx, m) }

// Drafter is a Channel that can show text while it is being written. Drafts are
// best effort. A message with the DraftID replaces the draft; a turn that ends
// without a text sends a draft with Done instead.
type Drafter interface {
	Draft(ctx context.Context, d Draft)
}

// DraftRemover is a Drafter whose drafts remain visible until they are replaced or
// removed, even after its process has ended. When a turn ends without a text,
// RemoveDraft is called instead of Draft with Done, and retried until it succeeds;
// its errors mean the same as those of Send. d has only the id and the address.
type DraftRemover interface {
	Drafter
	RemoveDraft(ctx context.Context, d Draft) error
}

// Message is one message to send.
type Message struct {
	ID           string // stays the same when the message is sent again
	Text         string // Markdown, with contract.RepeatMark if people may see it twice
	Unmarked     string // Text without the mark, for operations that repeat nothing, such as an edit
	Conversation string // the channel's own address; empty: the default recipient
	Thread       string
	Owner        string                // user id of the owner on this channel, if one is known
	ReplyTo      string                // the platform's id of the message that this one answers
	DraftID      string                // the draft that this message replaces
	Part, Parts  int                   // of a text that was split
	Repeat       bool                  // an earlier attempt may have been sent
	Session      string                // the session that sent it; may be empty
	CreatedAt    time.Time             // before the first attempt to send it
	Attachments  []contract.Attachment // to send with the text; see Kernel.GetBlob
	// Actions are buttons to show below the message, for channels whose manifest declares
	// them; see contract.Action.
	Actions []contract.Action
	Notice  bool // not an answer but a reminder or a message from elsewhere
}

// SplitFiles returns the attachments of m that have files, and m with the others in its
// text.
func (m Message) SplitFiles() ([]contract.Attachment, Message) {
	var files []contract.Attachment
	for _, a := range m.Attachments {
		if a.Blob != "" {
			files = append(files, a)
			continue
		}
		m.Text = strings.TrimSpace(m.Text + "\n" + cmp.Or(a.Name, a.Reference()))
		m.Unmarked = strings.TrimSpace(m.Unmarked + "\n" + cmp.Or(a.Name, a.Reference()))
	}
	m.Attachments = nil
	return files, m
}

// Receipt is the platform's answer to a message.
type Receipt struct {
	ProviderID   string // the platform's id of the message
	Conversation string // the conversation that the message was sent to
	Thread       string
	Effects      Effects // committed together with the acknowledgement
}

// Draft is the text of an answer so far.
type Draft struct {
	Conversation string
	Thread       string
	ID           string
	ReplyTo      string // the platform's id of the message being answered
	Text         string // empty: the assistant is working
	Done         bool   // the last update of this draft
}
