package tasks

import (
	"cmp"
	"net/url"
	"strings"
	"time"
)

// main is the name of the agent that a tree belongs to, and its id in keys.
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

// announce is the delivery of a result that runs the agent which gave the task.
const announce = "announce"

// Task is one piece of work that an agent gave to another.
type Task struct {
	ID          string    `json:"id"`
	Root        string    `json:"root"` // session that the tree belongs to
	Name        string    `json:"name"`
	Kind        string    `json:"kind"`
	Begins      string    `json:"begins,omitempty"` // how its prompt begins
	Agent       string    `json:"agent"`
	Model       string    `json:"model,omitempty"`
	Blank       bool      `json:"blank,omitempty"` // without the instructions of the agent's manifest
	Requester   string    `json:"requester"`       // its name in the tree
	RequesterID string    `json:"requester_id"`    // main, or the id of its task
	ReplyTo     string    `json:"reply_to,omitempty"`
	Chain       string    `json:"chain"` // piece of work whose turns are counted together: the task of main above it
	Depth       int       `json:"depth"` // of a task of main: 1
	Deliver     string    `json:"deliver,omitempty"`
	Timeout     float64   `json:"timeout,omitempty"` // seconds from its start
	Line        string    `json:"line"`              // its number among those queued
	Session     string    `json:"session,omitempty"` // of the worker, once it has spoken
	State       string    `json:"state"`
	Placed      bool      `json:"placed,omitempty"`  // it has one of the places of its queue
	Waiting     bool      `json:"waiting,omitempty"` // it has given its place back while it waits
	Gives       bool      `json:"gives,omitempty"`   // it has a queue of its own, or had
	Mail        bool      `json:"mail,omitempty"`    // something was put into its inbox
	Stop        string    `json:"stop,omitempty"`    // the outcome that it will have, because it was stopped
	Outcome     string    `json:"outcome,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"`
}

// sessionKey is the key of the worker's session.
func (t *Task) sessionKey() string {
	return "task:" + t.ID + ":" + t.Root + ":" + url.PathEscape(t.Name)
}

// ofSession is what the key of a session says of a worker.
func ofSession(key string) (id, root, name string, ok bool) {
	parts := strings.Split(key, ":")
	if len(parts) != 4 || parts[0] != "task" {
		return "", "", "", false
	}
	name, err := url.PathUnescape(parts[3])
	return parts[1], parts[2], name, err == nil
}

// over says whether a task does nothing any more, or is about to end.
func (t *Task) over() bool { return t.State == Finished || t.Stop != "" }

func (t *Task) deadline() time.Time {
	return t.StartedAt.Add(seconds(t.Timeout))
}

// since is when a task came into its state.
func (t *Task) since() time.Time {
	switch t.State {
	case Running:
		return t.StartedAt
	case Finished:
		return t.FinishedAt
	}
	return t.CreatedAt
}

func seconds(n float64) time.Duration { return time.Duration(min(n, 1e9) * float64(time.Second)) } // far more overflows

// outcome is how a task has ended, or is about to.
func (t *Task) outcome() string { return cmp.Or(t.Outcome, t.Stop) }
