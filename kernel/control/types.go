package control

import (
	"encoding/json"
	"time"

	"github.com/switchboard-run/switchboard/home/backup"
)

// Status is how a kernel is.
type Status struct {
	Version     string      `json:"version"`
	PID         int         `json:"pid"`
	Home        string      `json:"home"`
	StartedAt   time.Time   `json:"started_at"`
	Timezone    string      `json:"timezone"`
	StoreBytes  int64       `json:"store_bytes"`
	Sandbox     string      `json:"sandbox"` // what this system can limit extensions in
	LastEvent   string      `json:"last_event,omitempty"`
	Models      []string    `json:"models"` // asked in this order
	Extensions  []Extension `json:"extensions"`
	Waiting     []Waiting   `json:"waiting"` // deliveries that are not settled
	DeadLetters int         `json:"dead_letters"`
	Strangers   int         `json:"strangers"` // pairing codes that wait for approval
	// Damage is what was met of a damaged store, and the way out.
	Damage string `json:"damage,omitempty"`
	// Problems are of files whose last edit is not in force, and of links.
	Problems []string `json:"problems"`
	// Limits are the limits of spending that are reached today.
	Limits []string `json:"limits,omitempty"`
	// Hints are for a person to act upon.
	Hints  []string     `json:"hints"`
	Backup backup.State `json:"backup"`
}

// Waiting is what waits for one extension under one subscription.
type Waiting struct {
	Extension  string `json:"extension"`
	Topic      string `json:"topic"` // the pattern
	Deliveries int    `json:"deliveries"`
	InFlight   int    `json:"in_flight"`        // of them, in its hands
	Parked     bool   `json:"parked,omitempty"` // it was removed or disabled; they are kept for a day
}

// Extension is one extension, running or not.
type Extension struct {
	ID          string     `json:"id"`
	Name        string     `json:"name,omitempty"`
	Version     string     `json:"version,omitempty"`
	Builtin     bool       `json:"builtin"`
	Kinds       []string   `json:"kinds"` // channel, agent, tools, models
	State       string     `json:"state"` // disabled and invalid, and the states of the supervisor
	Readiness   string     `json:"readiness,omitempty"`
	Detail      string     `json:"detail,omitempty"` // why it is not active or not ready, and what to do
	PID         int        `json:"pid,omitempty"`
	Since       *time.Time `json:"since,omitempty"` // of the state
	RetryAt     *time.Time `json:"retry_at,omitempty"`
	Restarts    int        `json:"restarts"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	Crash       string     `json:"crash,omitempty"`   // the end of what the process wrote before it died
	Problem     string     `json:"problem,omitempty"` // of its file, when an older version of it is in force
	Sandbox     *Sandbox   `json:"sandbox,omitempty"` // of its process, while it runs
}

// Sandbox is what limits the process of an extension, as the system enforces it.
type Sandbox struct {
	Level   string   `json:"level"`             // full, partial, none
	Network string   `json:"network,omitempty"` // what it may do with it, in words
	Files   []string `json:"files,omitempty"`   // what it may use besides its own and the system's
	Reason  string   `json:"reason,omitempty"`  // why it is not full
}

// States of an extension that does not take part.
const (
	StateDisabled = "disabled" // switched off by the configuration
	StateInvalid  = "invalid"  // its files, or those of what it requires, are wrong
)

// Channel is a way to people.
type Channel struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Status    string   `json:"status"` // ready, unconfigured, degraded, offline, or the state of its process
	Detail    string   `json:"detail,omitempty"`
	Default   bool     `json:"default"`
	MaxLength int      `json:"max_length,omitempty"`
	AllowFrom []string `json:"allow_from,omitempty"` // by the configuration
	Agent     string   `json:"agent,omitempty"`      // who answers by the configuration
}

// Sent is what became of a text.
type Sent struct {
	Status     string   `json:"status"` // delivered, queued, failed
	Channel    string   `json:"channel_id"`
	Detail     string   `json:"detail,omitempty"`
	Events     []string `json:"events"`                 // one for each part
	ProviderID []string `json:"provider_ids,omitempty"` // as far as they are known
}

// Outcomes of a send.
const (
	SentDelivered = "delivered"
	SentQueued    = "queued"
	SentFailed    = "failed"
)

// People are those who may talk to the assistant, and those who ask to.
type People struct {
	Approved []Person  `json:"approved"`
	Waiting  []Pairing `json:"waiting"`
}

// Person is somebody who was approved on a channel.
type Person struct {
	Channel    string    `json:"channel"`
	UserID     string    `json:"user_id"`
	Name       string    `json:"name,omitempty"`
	Owner      bool      `json:"owner"`
	ApprovedAt time.Time `json:"approved_at"`
}

// Pairing is a code that waits for approval.
type Pairing struct {
	Code      string    `json:"code"`
	Channel   string    `json:"channel"`
	UserID    string    `json:"user_id"`
	Name      string    `json:"name,omitempty"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Agent is one agent.
type Agent struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	State       string   `json:"state"`
	Enabled     bool     `json:"enabled"`
	Default     bool     `json:"default"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"`   // that it may use
	Memory      []string `json:"memory"`  // scopes that it may read and write
	History     string   `json:"history"` // session; none: it hears each input as if it were the first
}

// SessionQuery selects sessions, the most recently active first.
type SessionQuery struct {
	Agent string
	Limit int // 0: 100
}

// Session is one conversation of one agent.
type Session struct {
	ID           string    `json:"id"`
	Agent        string    `json:"agent"`
	Key          string    `json:"key"`
	Name         string    `json:"name"`              // in words
	State        string    `json:"state"`             // idle; waiting: its agent does not have it now; running
	Turns        int       `json:"turns,omitempty"`   // begun and not ended: all but the last were interrupted
	Waiting      int       `json:"waiting,omitempty"` // inputs that no turn has begun with
	Memory       []string  `json:"memory"`            // scopes that its agent may read and write
	Channel      string    `json:"channel,omitempty"`
	Conversation string    `json:"conversation,omitempty"` // the channel's address of it
	Thread       string    `json:"thread,omitempty"`
	Group        bool      `json:"group,omitempty"`
	Ended        bool      `json:"ended,omitempty"` // by /new: another session has the conversation now
	Rows         int64     `json:"rows"`
	Last         string    `json:"last,omitempty"` // the beginning of the newest text
	CreatedAt    time.Time `json:"created_at"`
	ActiveAt     time.Time `json:"active_at"`
}

// Transcript is a session with its history.
type Transcript struct {
	Session
	Entries []Entry `json:"entries"`
}

// Entry is one row of a history.
type Entry struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"` // input, context, answer, result, note, summary
	Turn    int64     `json:"turn,omitempty"`
	Input   string    `json:"input,omitempty"`      // the event of an input
	Of      string    `json:"input_kind,omitempty"` // user, task, record, ...
	Sender  string    `json:"sender,omitempty"`
	Model   string    `json:"model,omitempty"`
	Text    string    `json:"text,omitempty"`
	Calls   []Call    `json:"calls,omitempty"`
	CallID  string    `json:"call_id,omitempty"` // of a result
	IsError bool      `json:"is_error,omitempty"`
}

// Call is a tool call that an answer asks for.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"`
}

// ToolResult is the answer of a tool.
type ToolResult struct {
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
}

// Searched is how many events, the newest of all, are looked at for those of a
// topic: a store may have millions.
const Searched = 200_000

// EventQuery selects events.
type EventQuery struct {
	Topic string // a pattern; empty: all
	Limit int    // 0: 100
}

// Event is one event with what became of it.
type Event struct {
	ID          string          `json:"id"`
	At          time.Time       `json:"at"`
	Topic       string          `json:"topic"`
	Key         string          `json:"key,omitempty"`
	Source      string          `json:"source"`
	Correlation string          `json:"correlation_id"`
	Causation   string          `json:"causation_id,omitempty"`
	Hop         int32           `json:"hop,omitempty"`
	DedupeKey   string          `json:"dedupe_key,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Deliveries  []Delivery      `json:"deliveries"`
}

// Delivery is one event for one extension.
type Delivery struct {
	Extension  string     `json:"extension"`
	Topic      string     `json:"topic"` // the pattern of the subscription
	State      string     `json:"state"` // pending, in flight, done, dead
	Attempts   int        `json:"attempts,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	SettledAt  *time.Time `json:"settled_at,omitempty"`
	Uncertain  bool       `json:"uncertain,omitempty"` // an attempt may have had its effect
	Reason     string     `json:"reason,omitempty"`
	ProviderID string     `json:"provider_id,omitempty"`
}

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	Event     string    `json:"event"`
	Topic     string    `json:"topic"`
	Extension string    `json:"extension"` // that did not take it; kernel: nobody could be found
	At        time.Time `json:"at"`        // of the event
	DiedAt    time.Time `json:"died_at"`
	Attempts  int       `json:"attempts"`
	Reason    string    `json:"reason"`
}
