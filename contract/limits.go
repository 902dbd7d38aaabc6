package contract

import "strings"

// Limits that both sides enforce.
const (
	// MaxPayload is the largest event payload, in bytes.
	MaxPayload = 1 << 20
	// MaxMessage is the largest gRPC message in either direction, in bytes.
	MaxMessage = 16 << 20
	// StreamWindow and ConnWindow are how many bytes of one stream, and of all of a
	// connection, may be on their way before they are read. They are the same from
	// the beginning to the end: a transport that measures what they should be asks
	// and answers with each message, and wakes both processes twice for it.
	StreamWindow = 1 << 20
	ConnWindow   = 4 << 20
	// MaxHops is the number of events since the last model turn after which a
	// chain is ended.
	MaxHops = 16
	// MaxToolResult is the number of bytes of a tool result that reach a model;
	// what is longer is cut, with a note.
	MaxToolResult = 32 << 10
	// MaxEffects is the largest number of effects of one commit: while they are
	// applied, everybody else waits.
	MaxEffects = 4096
)

// RepeatMark begins a text that may have been sent before, unless the channel's
// platform is known to drop the repetition.
const RepeatMark = "(possibly sent before) "

// MinChannelLength is the smallest length limit that a channel can have, in UTF-16
// units. A text with a mark fits it.
const MinChannelLength = 50

// Truncate cuts a text after at most limit bytes, between characters, and then adds
// the mark. A text that fits stays as it is.
func Truncate(text string, limit int, mark string) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + mark
}
