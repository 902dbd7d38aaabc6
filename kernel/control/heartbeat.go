package control

import "time"

// Heartbeat is what the heartbeat has done since the beginning.
type Heartbeat struct {
	EverySeconds int64            `json:"every_seconds"` // how often it should look
	Runs         int64            `json:"runs"`
	Skipped      map[string]int64 `json:"skipped"` // runs that asked no model, by reason
	ModelCalls   int64            `json:"model_calls"`
	ModelErrors  int64            `json:"model_errors"`
	Invalid      int64            `json:"invalid"` // answers that could not be read
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Noops        int64            `json:"noops"`
	Done         int64            `json:"done"`
	Escalations  int64            `json:"escalations"`
	Repeated     int64            `json:"repeated"` // escalations that were not made again

	LastRun        *time.Time `json:"last_run,omitempty"`
	LastResult     string     `json:"last_result,omitempty"`
	LastCall       *time.Time `json:"last_call,omitempty"`
	LastEscalation *time.Time `json:"last_escalation,omitempty"`
	Problem        string     `json:"problem,omitempty"` // of the last run

	// Followed is how many escalations were followed to their end: the newest, as
	// far as their events are kept. Deliveries is how many of them led to
	// something that a channel delivered, Undelivered are the others.
	Followed    int          `json:"followed"`
	Deliveries  int          `json:"deliveries"`
	Undelivered []Escalation `json:"undelivered"`
}

// Escalation is one time that the heartbeat has asked an agent to act.
type Escalation struct {
	Event  string    `json:"event"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}
