package tasks

import (
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Item is one thing in an inbox: a message, or the result of a task, which is
// stored with that.
type Item struct {
	From    string    `json:"from"`
	Task    string    `json:"task,omitempty"` // id of one whose result it is
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// Message is an item as its collector reads it.
type Message struct {
	From string `json:"from"`
	*Result
	Message  string `json:"message,omitempty"`
	Received string `json:"received"`
}

// opened is an item with its result.
func (i Item) opened(result *Result) Message {
	return Message{From: i.From, Result: result, Message: i.Message, Received: i.At.Format(time.RFC3339)}
}

// open reads the result that an item stands for, if it is one.
func (c *change) open(item Item) (Message, error) {
	if item.Task == "" {
		return item.opened(nil), nil
	}
	result, err := read[Result](c, resultPrefix+item.Task)
	if err == nil && result == nil {
		result = &Result{From: item.From, TaskID: item.Task, Outcome: Interrupted, Error: "its result is lost"}
	}
	return item.opened(result), err
}

// size is about how much text a message is.
func (m Message) size() int {
	if r := m.Result; r != nil {
		return len(r.Output) + len(r.Error) + len(r.Partial) + 200
	}
	return len(m.Message) + 200
}

// prose is a message for people.
func (m Message) prose() string {
	r := m.Result
	switch {
	case r == nil:
		return fmt.Sprintf("**%s** writes: %s", m.From, m.Message)
	case r.Success:
		return fmt.Sprintf("**%s** has finished:\n\n%s", m.From, r.Output)
	}
	text := fmt.Sprintf("**%s** has failed (%s): %s", m.From, r.Outcome, r.Error)
	if r.Partial != "" {
		text += "\n\nIt had so far:\n\n" + r.Partial
	}
	return text
}

// record has a conversation know what a person has collected there.
func record(root string, m Message) sdk.Effect {
	return sdk.Raw(&busv1.Input{
		Session: root, Kind: contract.InputRecord, Sender: m.From, IfExists: true,
		Text: "The user has collected this from the inbox:\n" + m.prose(),
	})
}
