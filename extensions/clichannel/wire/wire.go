// Package wire is the protocol between a terminal (`switchboard chat`) and the
// extension that serves the chat socket: newline-delimited JSON, one Frame per
// line, over a unix socket that only its owner can open.
//
// A conversation on the wire:
//
//	terminal                                  channel
//	hello {version, terminal, token, ...}     ->
//	                                          <-  welcome {version, conversation, text?, hint?}
//	message {id, text}                        ->
//	                                          <-  accepted {id}
//	                                          <-  draft {text}        any number, may be lost
//	                                          <-  message {id, text, reply_to?}
//	shown {id}                                ->
//
// Promises. A message is accepted only once it is on disk; a terminal that saw
// no accepted sends the message again, under the same id, on its next
// connection, and it counts once. A message to the terminal is delivered only
// once the terminal has answered shown; until then the channel sends it again,
// under the same id, and the terminal shows it once. Messages keep their order
// in both directions. Drafts, echoes and states promise nothing.
//
// Versions: hello and welcome carry the protocol version. A channel refuses a
// version that it does not speak with an error frame marked fatal. Within a
// version only fields and frame types are added, and both sides ignore what
// they do not know.
package wire

// Version is the protocol version of this package.
const Version = 1

const (
	// SocketName is the name of the chat socket in the run directory.
	SocketName = "chat.sock"
	// TokenName is the name of a file in the extension's data directory. Who can
	// read it is the owner; other extensions can reach the socket, but not the file.
	TokenName = "terminal.token"
	// RunDirVariable names the environment variable that holds the run directory.
	RunDirVariable = "SWITCHBOARD_RUN_DIR"
	// DefaultConversation is where every terminal is that does not ask for
	// another one.
	DefaultConversation = "terminal"
	// MaxText is the largest text of one message, in bytes.
	MaxText = 256 << 10
	// MaxFrame is the largest line, in bytes: a MaxText in which every byte is
	// escaped, with room for the other fields.
	MaxFrame = 6*MaxText + 4096
	// MaxID is the longest id, in bytes.
	MaxID = 128
)

// Type says what a frame is.
type Type string

// The frames. The first three go from the terminal to the channel, the others
// the other way; Message goes both ways.
const (
	// Hello opens the connection: Version, Terminal, Token, and what the terminal
	// asks for: Conversation or New, Agent, Script.
	Hello Type = "hello"
	// Message is one text: ID and Text. To the terminal also Conversation, and
	// Notice, ReplyTo, Session, Draft, Part and Parts where they apply.
	Message Type = "message"
	// Shown says that message ID is on the screen.
	Shown Type = "shown"

	// Welcome answers Hello: Version, Conversation, Text (one line of greeting),
	// Hint (what the user may want to do about it) and Commands.
	Welcome Type = "welcome"
	// Accepted says that message ID is on disk.
	Accepted Type = "accepted"
	// Echo is what was written at another terminal of the conversation: ID, Text.
	Echo Type = "echo"
	// Draft is all of the text so far, as an answer is being written: ID (of the
	// draft, not of a message) and Text; without Text, the assistant is working;
	// with Done, it has nothing to say. Otherwise a message takes its place.
	Draft Type = "draft"
	// State says whether the channel can take messages: Ready, and Text for
	// people if not.
	State Type = "state"
	// Error refuses message ID for good, or, without an ID, complains about the
	// connection; with Fatal the channel closes it and coming back is no use.
	Error Type = "error"
)

// Frame is one line of the protocol. Which fields count is said with its Type.
type Frame struct {
	Type         Type   `json:"type"`
	Version      int    `json:"version,omitempty"`
	Terminal     string `json:"terminal,omitempty"` // one running chat, over all its connections
	Token        string `json:"token,omitempty"`    // what stands in TokenName
	Conversation string `json:"conversation,omitempty"`
	New          bool   `json:"new,omitempty"`    // begin a conversation of its own
	Agent        string `json:"agent,omitempty"`  // who shall answer this terminal
	Script       bool   `json:"script,omitempty"` // no person looks on: answers only
	ID           string `json:"id,omitempty"`
	Text         string `json:"text,omitempty"`
	Hint         string `json:"hint,omitempty"`
	Commands     string `json:"commands,omitempty"` // names of slash commands, with spaces between them
	ReplyTo      string `json:"reply_to,omitempty"` // the message of a terminal that this answers
	Draft        string `json:"draft,omitempty"`    // id of the draft whose place this takes
	Session      string `json:"session,omitempty"`  // that says it
	Notice       bool   `json:"notice,omitempty"`   // not an answer: a reminder, a message from elsewhere
	Repeat       bool   `json:"repeat,omitempty"`   // may have been shown before
	Part         int    `json:"part,omitempty"`     // of a text that was split, from 1
	Parts        int    `json:"parts,omitempty"`
	Done         bool   `json:"done,omitempty"`
	Ready        bool   `json:"ready,omitempty"`
	Fatal        bool   `json:"fatal,omitempty"`
}

// Last reports whether f is the last part of its text.
func (f Frame) Last() bool { return f.Part >= f.Parts }
