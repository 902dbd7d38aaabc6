package tasks

import (
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// Item is an entry of an inbox: a message, or a reference to the result of a task.
type Item struct {
	From    string    `json:"from"`
	Task    string    `json:"task,omitempty"` // id of the task whose result it is
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// Message is an item as receive and check return it.
type Message struct {
	From string `json:"from"`
	*Result
	Message  string `json:"message,omitempty"`
	Received string `json:"received"`
}

// message returns an item with its result.
func (i Item) message(result *Result) Message {
	return Message{From: i.From, Result: result, Message: i.Message, Received: i.At.Format(time.RFC3339)}
}

// load returns an item with its result, if it has one.
func (c *change) load(item Item) (Message, error) {
	if item.Task == "" {
		return item.message(nil), nil
	}
	result, err := read[Result](c, resultPrefix+item.Task)
	if err == nil && result == nil {
		result = &Result{
			From: item.From, TaskID: item.Task, Outcome: Interrupted, Error: words.Sprintf("the result was lost"),
		}
	}
	return item.message(result), err
}

// size is the approximate length of a message in bytes.
func (m Message) size() int {
	if r := m.Result; r != nil {
		return len(r.Output) + len(r.Error) + len(r.Partial) + 200
	}
	return len(m.Message) + 200
}

// markdown formats a message for people, in their language.
func (m Message) markdown(language string) string {
	r := m.Result
	switch {
	case r == nil:
		return words.Say(language, "**%s** writes: %s", m.From, m.Message)
	case r.Success:
		return words.Say(language, "**%s** has finished:\n\n%s", m.From, r.Output)
	}
	text := words.Say(language, "**%s** has failed (%s): %s", m.From, words.Say(language, r.Outcome),
		words.Translate(language, r.Error))
	if r.Partial != "" {
		text += "\n\n" + words.Say(language, "Output so far:") + "\n\n" + r.Partial
	}
	return text
}

// recordCollected records in a conversation that a person collected a message.
func recordCollected(root string, m Message) sdk.Effect {
	return sdk.Raw(&busv1.Input{
		Session: root, Kind: contract.InputRecord, Sender: m.From, IfExists: true,
		Text: "The user has collected this from the inbox:\n" + m.markdown(""),
	})
}
