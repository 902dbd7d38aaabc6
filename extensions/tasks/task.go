package tasks

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// main is the name of the conversation's agent, and its id in keys.
const main = "main"

// States of a task.
const (
	Queued   = "queued"
	Running  = "running"
	Finished = "finished"
)

// Outcomes of a task.
const (
	OK          = "ok"
	Failed      = "error"
	Timeout     = "timeout"
	Cancelled   = "cancelled"
	Capped      = "capped"
	Interrupted = "interrupted"
)

// announce is the deliver option that sends a result to main as an input.
const announce = "announce"

// Task is a task that one agent gave to another.
type Task struct {
	ID          string             `json:"id"`
	Root        string             `json:"root"` // session of the conversation
	Name        string             `json:"name"`
	Kind        string             `json:"kind"`
	Preview     string             `json:"begins,omitempty"` // first line of its prompt
	Agent       string             `json:"agent"`
	Model       string             `json:"model,omitempty"`
	Blank       bool               `json:"blank,omitempty"` // without the instructions of the agent's manifest
	Requester   string             `json:"requester"`       // name of the agent that gave it
	RequesterID string             `json:"requester_id"`    // main, or the id of the requester's task
	ReplyTo     string             `json:"reply_to,omitempty"`
	Chain       string             `json:"chain"` // id of its ancestor that main pushed: turns are capped per chain
	Depth       int                `json:"depth"` // 1 for a task of main
	Deliver     string             `json:"deliver,omitempty"`
	Timeout     float64            `json:"timeout,omitempty"` // seconds from its start
	Seq         string             `json:"line"`              // position in the queue
	Session     string             `json:"session,omitempty"` // of the worker, once it has given its final output
	State       string             `json:"state"`
	HasSlot     bool               `json:"placed,omitempty"`  // uses a slot of its queue
	Waiting     bool               `json:"waiting,omitempty"` // released its slot while it waits
	HasQueue    bool               `json:"gives,omitempty"`   // has or had a queue of its own
	HasMail     bool               `json:"mail,omitempty"`    // its inbox may have items
	Stop        string             `json:"stop,omitempty"`    // outcome it will have, because it was stopped
	Dropped     bool               `json:"dropped,omitempty"` // its result is not delivered
	Forget      bool               `json:"forget,omitempty"`  // its rows are deleted when it ends
	Outcome     string             `json:"outcome,omitempty"`
	Principal   contract.Principal `json:"principal,omitzero"` // for whom it was given, and where
	CreatedAt   time.Time          `json:"created_at"`
	StartedAt   time.Time          `json:"started_at,omitzero"`
	FinishedAt  time.Time          `json:"finished_at,omitzero"`
}

// title names the worker's session for people.
func (t *Task) title() string { return "task " + t.Name + " for " + t.Requester }

// sessionKey returns the key of the worker's session.
func (t *Task) sessionKey() string {
	return "task:" + t.ID + ":" + t.Root + ":" + url.PathEscape(t.Name)
}

// parseSessionKey parses the key of a worker's session.
func parseSessionKey(key string) (id, root, name string, ok bool) {
	parts := strings.Split(key, ":")
	if len(parts) != 4 || parts[0] != "task" {
		return "", "", "", false
	}
	name, err := url.PathUnescape(parts[3])
	return parts[1], parts[2], name, err == nil
}

// ended reports whether a task has finished or is being stopped.
func (t *Task) ended() bool { return t.State == Finished || t.Stop != "" }

func (t *Task) deadline() time.Time {
	return t.StartedAt.Add(seconds(t.Timeout))
}

// since returns when a task entered its state.
func (t *Task) since() time.Time {
	switch t.State {
	case Running:
		return t.StartedAt
	case Finished:
		return t.FinishedAt
	}
	return t.CreatedAt
}

// seconds converts a number of seconds; the bound prevents an overflow.
func seconds(n float64) time.Duration { return time.Duration(min(n, 1e9) * float64(time.Second)) }

// outcome returns how a task ended, or will end.
func (t *Task) outcome() string { return cmp.Or(t.Outcome, t.Stop) }
