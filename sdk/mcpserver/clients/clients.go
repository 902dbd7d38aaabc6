// Package clients is what the MCP server and the extension mcp_server share: the clients of
// the configuration, and the extension's tools.
package clients

import (
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// ID is the id of the extension.
const ID = "mcp_server"

// The extension's tools, by their full names.
const (
	ToolList     = ID + "/clients"  // {} -> List
	ToolCall     = ID + "/call"     // Call -> Client
	ToolAsk      = ID + "/ask"      // Ask -> Question
	ToolAnswered = ID + "/answered" // {id}: the client has the answer
	ToolSend     = ID + "/send"     // Send -> Sent
	ToolSent     = ID + "/sent"     // Send: the client has the result
)

// Its topics.
const (
	TopicCalled   = ID + ".called"
	TopicAnswered = ID + ".answered"
	// TopicSent has how a send ended: a contract.ToolResult with the id of its Sent.
	TopicSent = contract.TopicToolResult + ID
)

// Client is what the configuration says about one client.
type Client struct {
	Name   string   `json:"name"`
	Tools  []string `json:"tools"`            // patterns of full names
	Person string   `json:"person,omitempty"` // for whom it acts; empty: the owner
}

// List is the result of ToolList.
type List struct {
	Clients []Client `json:"clients"`
	Approve []string `json:"approve,omitempty"` // patterns of tools that need approval
}

// Call asks whether a client may call a tool, and is the payload of TopicCalled.
type Call struct {
	Client    string `json:"client"`
	Tool      string `json:"tool"`
	Private   bool   `json:"private,omitempty"`
	Arguments string `json:"arguments,omitempty"` // JSON, cut
}

// Ask asks the owner, or the person for whom a client acts.
type Ask struct {
	Client   string   `json:"client"`
	For      string   `json:"for,omitempty"` // @ and the id of that person; empty: the owner
	Question string   `json:"question"`
	Approve  bool     `json:"approve,omitempty"` // the answer is yes or no
	Options  []string `json:"options,omitempty"`
	Timeout  int64    `json:"timeout_seconds,omitempty"` // 0: an hour
}

// Send sends a text for a client. Another one with the same id changes nothing.
type Send struct {
	Client  string `json:"client"`
	For     string `json:"for,omitempty"` // as in Ask
	ID      string `json:"id"`
	Channel string `json:"channel_id,omitempty"`
	Person  string `json:"person,omitempty"` // a name; empty: the recipient of the channel
	Text    string `json:"text"`
	// Join takes the same text of the last minutes for this one, if its client has not got its
	// result: a client that could not wait for it has begun again.
	Join bool `json:"join,omitempty"`
	// After is the newest event before the send.
	After int64 `json:"after,omitempty"`
}

// Sent is a text that will be sent. Its result is an event of TopicSent.
type Sent struct {
	ID      string    `json:"id"`
	After   int64     `json:"after,omitempty"` // seq of an event before the result
	Created time.Time `json:"created"`
	Done    string    `json:"done,omitempty"` // its result, if no event has it
}

// Question is a question of a client. Asking it again returns it until its answer is
// fetched.
type Question struct {
	ID      string    `json:"id"`
	Client  string    `json:"client"`
	Created time.Time `json:"created"`
	Outcome string    `json:"outcome,omitempty"` // contract.AskAnswered, ...; empty: open
	Answer  string    `json:"answer,omitempty"`
	By      string    `json:"by,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Matches reports whether patterns (<extension>/<tool>, <extension>/*) name a tool. A
// private one is named by its full name only.
func Matches(patterns []string, tool string, private bool) bool {
	extension, _, _ := strings.Cut(tool, "/")
	return slices.Contains(patterns, tool) || !private && slices.Contains(patterns, extension+"/*")
}

// Signed marks a text as one of a client.
func Signed(client, text string) string { return client + " (MCP): " + text }
