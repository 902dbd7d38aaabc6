package contract

// Limits that both sides enforce.
const (
	// MaxPayload is the largest event payload, in bytes.
	MaxPayload = 1 << 20
	// MaxMessage is the largest gRPC message in either direction, in bytes.
	MaxMessage = 16 << 20
	// MaxHops is the number of events since the last model turn after which a
	// chain is ended.
	MaxHops = 16
	// MaxToolResult is the number of bytes of a tool result that reach a model;
	// what is longer is cut, with a note.
	MaxToolResult = 32 << 10
)

// RepeatMark begins a text that may have been sent before, on a channel that
// cannot dedupe. Who splits a text to a channel's limit leaves room for it.
const RepeatMark = "(possibly sent before) "
