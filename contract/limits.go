package contract

import "strings"

// Limits that both sides enforce.
const (
	// MaxPayload is the largest event payload, in bytes.
	MaxPayload = 1 << 20
	// MaxMessage is the largest gRPC message in either direction, in bytes.
	MaxMessage = 16 << 20
	// StreamWindow and ConnWindow are the static gRPC flow-control windows of a
	// stream and of a connection, in bytes. Dynamic windows would send a ping with
	// each message, which wakes both processes twice.
	StreamWindow = 1 << 20
	ConnWindow   = 4 << 20
	// MaxHops is the number of events since the last model turn at which the kernel
	// ends a chain.
	MaxHops = 16
	// MaxToolResult is the number of bytes of a tool result that reach a model;
	// a longer one is cut, with a note.
	MaxToolResult = 32 << 10
	// MaxEffects is the largest number of effects of one commit. All other commits
	// wait while they are applied.
	MaxEffects = 4096
	// MaxBlobs is the largest number of files that one effect names.
	MaxBlobs = 32
	// MaxQuote is how much a message repeats of the one that it answers, and MaxActionCommand
	// the length of an action's command, both in bytes. The latter is what a button in
	// Telegram may carry (core.telegram.org/bots/api, InlineKeyboardButton.callback_data).
	MaxQuote         = 2000
	MaxActionCommand = 64
	// MaxActions is how many actions a message may have.
	MaxActions = 20
	// MaxImageSide is the longest side of an image in a request to a model, in pixels:
	// providers scale larger ones down, and charge for them.
	MaxImageSide = 1568
	// MaxBlobChunk is the most bytes of a file in one message, in either direction.
	MaxBlobChunk = 1 << 20
)

// RepeatMark precedes, in the language of the recipient, a text that may have been sent
// before, unless the channel's platform drops the repetition.
const RepeatMark = "(possibly sent before) "

// MinChannelLength is the smallest length limit of a channel, in UTF-16 units. It
// leaves room for RepeatMark.
const MinChannelLength = 50

// Truncate cuts a text after at most limit bytes, between characters, and appends
// the mark. A text that fits is returned unchanged.
func Truncate(text string, limit int, mark string) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + mark
}
