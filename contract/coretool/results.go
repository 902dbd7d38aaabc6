package coretool

import "encoding/json"

// Channel is a channel in the result of list_channels.
type Channel struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Readiness string `json:"readiness"`
	Detail    string `json:"detail,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
	Default   bool   `json:"default,omitempty"`
}

// Agent is an agent in the result of list_agents.
type Agent struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Delegate    bool   `json:"can_be_given_tasks"`
}

// Outcomes of a send, in a Sent.
const (
	SendDelivered = "delivered"
	SendQueued    = "queued"
	SendFailed    = "failed"
)

// Sent is the outcome of a send to a channel.
type Sent struct {
	Status      string   `json:"status"` // SendDelivered, ...
	Channel     string   `json:"channel_id"`
	To          string   `json:"to,omitempty"` // the person whom it reaches, and where
	Detail      string   `json:"detail,omitempty"`
	Events      []string `json:"-"`
	ProviderIDs []string `json:"-"`
}

// SentResult is the result of a tool that sends: one send, or several.
func SentResult(sends []Sent) string {
	var v any = map[string]any{"sent": sends}
	if len(sends) == 1 {
		v = sends[0]
	}
	b, _ := json.Marshal(v) // strings only
	return string(b)
}
