// Package wire is the protocol between a terminal (`switchboard chat`) and the
// terminal channel: newline-delimited JSON, one Frame per line, over a unix socket
// that only its owner can open.
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
//	file {id, name, data}, ... {id, done}     ->                        before the message that names it
//	message {id, text, files: [id]}           ->
//	fetch {id, text}                          ->                        a file of the conversation
//	                                          <-  file {id, attachments}, {id, data} ..., {id, done}
//
// Promises. The channel answers accepted only when a message is on disk; without
// it, a terminal sends the message again under the same id on its next connection,
// and it counts once. A message to the terminal is delivered only when the terminal
// has answered shown; until then the channel sends it again under the same id, and
// the terminal shows it once. Messages keep their order in both directions. Drafts,
// echoes and states may be lost. A file lasts as long as its connection until a message
// names it; a terminal that sends a message again sends its files again first.
//
// Versions: hello and welcome carry the protocol version. A channel refuses an
// unsupported version with a fatal error frame. Within a version only fields and
// frame types are added, and both sides ignore unknown ones.
package wire

import "github.com/switchboard-run/switchboard/contract"

// Version is the protocol version of this package.
const Version = 1

const (
	// SocketName is the name of the chat socket in the run directory.
	SocketName = "chat.sock"
	// TokenName is the name of the token file in the extension's data directory.
	// Only the owner can read it; other extensions can reach the socket, but not
	// the file.
	TokenName = "terminal.token"
	// RunDirVariable names the environment variable that holds the run directory.
	RunDirVariable = "SWITCHBOARD_RUN_DIR"
	// DefaultConversation is the conversation of terminals that name no other.
	DefaultConversation = "terminal"
	// MaxText is the largest text of one message, in bytes.
	MaxText = 256 << 10
	// MaxFrame is the largest line, in bytes: MaxText with every byte escaped, and
	// the other fields.
	MaxFrame = 6*MaxText + 4096
	// MaxID is the longest id, in bytes.
	MaxID = 128
	// MaxFiles is the most files of one message.
	MaxFiles = 20
	// Chunk is how many bytes of a file a frame has at most.
	Chunk = 256 << 10
)

// Type is the type of a frame.
type Type string

// Frame types. The first four go from the terminal to the channel, the others to the
// terminal; Message and File go both ways.
const (
	// Hello opens the connection: Version, Terminal, Token, and optionally
	// Conversation or New, Agent and Script.
	Hello Type = "hello"
	// Message is one text: ID and Text, and Files that were sent before. To the terminal
	// it also has Conversation, and Notice, ReplyTo, Session, Draft, Part, Parts,
	// Attachments and Actions where they apply.
	Message Type = "message"
	// Shown says that message ID is on the screen.
	Shown Type = "shown"
	// Fetch asks for a file of the conversation: ID, and a reference in Text. File
	// frames or an Error with that ID answer it.
	Fetch Type = "fetch"
	// File is a part of a file: ID and Data, in the first one also Name or, to the
	// terminal, the file in Attachments. Done ends the file.
	File Type = "file"

	// Welcome answers Hello: Version, Conversation, Text (one line of greeting),
	// Hint (what to do next), Commands, and Attach.
	Welcome Type = "welcome"
	// Accepted says that message ID is on disk.
	Accepted Type = "accepted"
	// Echo is a message from another terminal of the conversation: ID, Text, Attachments.
	Echo Type = "echo"
	// Draft is the whole text so far of an unfinished answer: ID (of the draft, not
	// of a message) and Text. Without Text, the assistant is working; with Done, the
	// draft ends without a message. Otherwise a message replaces it.
	Draft Type = "draft"
	// State says whether the channel can accept messages: Ready, or else Text for
	// people.
	State Type = "state"
	// Error refuses message ID finally, or, without an ID, reports a problem of the
	// connection; with Fatal the channel closes it, and reconnecting does not help.
	Error Type = "error"
)

// Frame is one line of the protocol. Its Type says which fields it has.
type Frame struct {
	Type         Type   `json:"type"`
	Version      int    `json:"version,omitempty"`
	Terminal     string `json:"terminal,omitempty"` // id of one running chat, over all its connections
	Token        string `json:"token,omitempty"`    // content of TokenName
	Conversation string `json:"conversation,omitempty"`
	New          bool   `json:"new,omitempty"`      // begin a new conversation
	Agent        string `json:"agent,omitempty"`    // agent that answers this terminal
	Language     string `json:"language,omitempty"` // of the person, an IETF tag
	Script       bool   `json:"script,omitempty"`   // not interactive: answers only
	ID           string `json:"id,omitempty"`
	Text         string `json:"text,omitempty"`
	Hint         string `json:"hint,omitempty"`
	Commands     string `json:"commands,omitempty"` // names of slash commands, separated by spaces
	ReplyTo      string `json:"reply_to,omitempty"` // id of the terminal's message that this answers
	Draft        string `json:"draft,omitempty"`    // id of the draft that this replaces
	Session      string `json:"session,omitempty"`  // id of the session that sent it
	Notice       bool   `json:"notice,omitempty"`   // not an answer, but for example a reminder
	Repeat       bool   `json:"repeat,omitempty"`   // may have been shown before
	Part         int    `json:"part,omitempty"`     // of a text that was split, from 1
	Parts        int    `json:"parts,omitempty"`
	Attach       bool   `json:"attach,omitempty"` // the channel takes files
	Name         string `json:"name,omitempty"`
	Data         []byte `json:"data,omitempty"`
	Done         bool   `json:"done,omitempty"`
	Ready        bool   `json:"ready,omitempty"`
	Fatal        bool   `json:"fatal,omitempty"`

	Files       []string              `json:"files,omitempty"` // ids of files of the message
	Attachments []contract.Attachment `json:"attachments,omitempty"`
	Actions     []contract.Action     `json:"actions,omitempty"`
}

// Last reports whether f is the last part of its text.
func (f Frame) Last() bool { return f.Part >= f.Parts }
