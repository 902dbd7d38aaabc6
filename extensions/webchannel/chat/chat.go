// Package chat is the conversations of the web channel: a durable log of lines for each, and
// who follows it now.
//
// # Promises
//
//   - A line of a person is stored in the commit that accepts the message. A line of the
//     assistant is stored, under the id of its message, before that is acknowledged, and a
//     repetition of the message finds it: kill any process, and each line is there once.
//   - A follower is shown nothing as a line that is not on disk.
//   - Lines of a conversation have ascending numbers. Who follows a conversation from a number
//     gets each later line once, in order, also over a restart of the extension or the kernel.
//   - Drafts are best effort and replaced by a line with their id.
//
// All of it belongs to one person's user; no method reads or writes another one's.
package chat

import (
	"context"
	"iter"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Message is what a person, or a program for them, says.
type Message struct {
	// ID is chosen by the sender, unique in the conversation: the same ID again is the same
	// message, over crashes too, and nothing is stored twice.
	ID           string
	Conversation string // the sender's name of it, such as work; empty: the main one
	Text         string
	Agent        string // empty: the one that the conversation chose, or the default one
	ReplyTo      string // ID of the line that it answers; empty: none
	Attachments  []contract.Attachment
	// Record is something to know before the message, such as what a program says was said
	// before: the assistant is shown it as data. It starts no turn and is no line.
	Record string
	// ForwardedFrom names who wrote the text, if the sender only passes it on: it is data,
	// never a command, an answer to a question or an approval. Empty: the sender wrote it.
	ForwardedFrom string
}

// Line is one line of a conversation.
type Line struct {
	Seq          int64                 `json:"seq"`                // in the conversation, ascending from 1
	ID           string                `json:"id"`                 // the sender's of a message, or that of what was sent
	Conversation string                `json:"-"`                  // see Message
	Mine         bool                  `json:"mine,omitempty"`     // the person wrote it; else the assistant
	Text         string                `json:"text,omitempty"`     // Markdown
	At           time.Time             `json:"at"`                 // when it was stored
	ReplyTo      string                `json:"reply_to,omitempty"` // ID of the line that it answers
	Draft        string                `json:"draft,omitempty"`    // id of the draft that it replaces
	Attachments  []contract.Attachment `json:"attachments,omitempty"`
	Actions      []contract.Action     `json:"actions,omitempty"`
	Notice       bool                  `json:"notice,omitempty"`  // a reminder, or a message from elsewhere
	Session      string                `json:"session,omitempty"` // the session that sent it
	// Event is the id of the event of the message, for its trace; empty: unknown, and
	// the ID finds it.
	Event string `json:"event,omitempty"`
}

// Draft is the text of an answer so far.
type Draft struct {
	ID      string
	ReplyTo string // ID of the line that is answered
	Text    string // empty: the assistant is working
	Done    bool   // it ends: a line with its ID follows, or the turn had no text
}

// Frame is one thing that happens in a conversation; exactly one field is set.
type Frame struct {
	Line  *Line
	Draft *Draft
}

// Conversation describes one conversation.
type Conversation struct {
	Name    string // empty: the main one
	Title   string // as shown to people
	Last    Line   // the beginning of its text
	Unread  int    // lines of the assistant after the last one that was read
	Updated time.Time
}

// Conversations is the chat of the web channel. All methods are safe for concurrent use;
// their errors are for people and wrap those of package contract.
type Conversations interface {
	// Say accepts a message. When it returns, the kernel has it on disk.
	Say(ctx context.Context, v door.Visitor, m Message) (Line, error)
	// Lines returns at most limit lines: those after a number, or, with before > 0, the last
	// ones before it.
	Lines(ctx context.Context, v door.Visitor, conversation string, after, before int64, limit int) ([]Line, error)
	// Follow yields the lines after a number and then what happens, until ctx is done or the
	// extension ends. A follower that reads slowly misses drafts, and no lines. It comes back
	// with the last number it saw.
	Follow(ctx context.Context, v door.Visitor, conversation string, after int64) iter.Seq2[Frame, error]
	// List returns the conversations, the latest first.
	List(ctx context.Context, v door.Visitor) ([]Conversation, error)
	// Read notes that the lines up to a number were read.
	Read(ctx context.Context, v door.Visitor, conversation string, seq int64) error
	// Delete deletes a conversation with its lines; not its session.
	Delete(ctx context.Context, v door.Visitor, conversation string) error
}
