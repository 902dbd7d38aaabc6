package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// main is the name of the agent that a tree belongs to.
const main = "main"

// stateIdle is the state of a session in which nothing is to be done.
const stateIdle = "idle"

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
	ID         string    `json:"id"`
	Root       string    `json:"root"` // session that the tree belongs to
	Name       string    `json:"name"`
	Kind       string    `json:"kind"`
	Agent      string    `json:"agent"`
	Model      string    `json:"model,omitempty"`
	Blank      bool      `json:"blank,omitempty"` // without the instructions of the agent's manifest
	Requester  string    `json:"requester"`       // its name in the tree
	Depth      int       `json:"depth"`           // of a task of main: 1
	Deliver    string    `json:"deliver,omitempty"`
	Timeout    float64   `json:"timeout,omitempty"` // seconds from its start
	Session    string    `json:"session,omitempty"` // of the worker, once it has spoken
	State      string    `json:"state"`
	Outcome    string    `json:"outcome,omitempty"`
	Stop       string    `json:"stop,omitempty"` // the outcome that it will have, because it was stopped
	CreatedAt  time.Time `json:"created_at"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// Texts is what was said in a task.
type Texts struct {
	Prompt  string `json:"prompt"`
	Output  string `json:"output,omitempty"`
	Error   string `json:"error,omitempty"`
	Partial string `json:"partial_output,omitempty"`
}

// queue is the queue of one agent: names in the order in which they begin.
type queue struct {
	Active  bool     `json:"active,omitempty"`  // what is queued begins when there is a place
	Limit   int      `json:"limit,omitempty"`   // places; 0: any number
	Timeout float64  `json:"timeout,omitempty"` // of tasks that have none of their own
	Queued  []string `json:"queued,omitempty"`
	Running []string `json:"running,omitempty"`
	Waiting []string `json:"waiting,omitempty"` // have given their place back while they wait
}

// Item is one message in an inbox.
type Item struct {
	From    string    `json:"from"`
	Result  *Result   `json:"result,omitempty"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// Result is what a task yields, once.
type Result struct {
	From        string `json:"from"`
	TaskID      string `json:"task_id"`
	Success     bool   `json:"success"`
	Output      string `json:"output,omitempty"`
	Error       string `json:"error,omitempty"`
	Partial     string `json:"partial_output,omitempty"`
	Outcome     string `json:"outcome"`
	Uncollected int    `json:"uncollected_messages,omitempty"` // that lay in its inbox when it ended
}

// notice is what the agent of a root was told, and has to be told, of results
// that lie in its inbox.
type notice struct {
	Number  int64  `json:"number,omitempty"` // of the newest notice
	Named   []mark `json:"named,omitempty"`  // results in it that are not collected yet
	Unnamed []mark `json:"unnamed,omitempty"`
}

// mark is one result in an inbox.
type mark struct {
	Name string `json:"name"`
	Seq  string `json:"seq"`
}

// follow is a person who waits for a message, in the conversation of a root.
type follow struct {
	From    string    `json:"from,omitempty"`
	ReplyTo string    `json:"reply_to"`
	Until   time.Time `json:"until,omitzero"`
}

const (
	taskPrefix   = "task/"
	queuePrefix  = "queue/"
	noticePrefix = "notice/"
	followPrefix = "follow/"
)

func taskKey(root, name string) string   { return taskPrefix + root + "/" + name }
func queueKey(root, owner string) string { return queuePrefix + root + "/" + owner }
func textKey(id string) string           { return "text/" + id }
func inboxPrefix(root, name, from string) string {
	return "inbox/" + root + "/" + name + "/" + from + "/"
}
func orderPrefix(root, name string) string { return "order/" + root + "/" + name + "/" }

// sessionKey is the key of a worker's session.
func sessionKey(id, root, name string) string {
	return "task:" + id + ":" + root + ":" + url.PathEscape(name)
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

func sessionRequest(ctx context.Context, id string) *kernelv1.SessionRequest {
	return &kernelv1.SessionRequest{Session: id, Lane: sdk.LaneOf(ctx)}
}

// change is what one commit changes: rows that were read, and are written if
// nobody has written them since, and further effects.
type change struct {
	*tasks
	ctx     context.Context
	rows    map[string]*row
	order   []string
	further sdk.Effects
	poked   map[string]bool
	now     time.Time
}

type row struct {
	value   any // nil: it does not exist
	version int64
	written bool
}

func (t *tasks) change(ctx context.Context) *change {
	return &change{tasks: t, ctx: ctx, rows: map[string]*row{}, poked: map[string]bool{}, now: time.Now().UTC()}
}

// read is a row as this change sees it; nil: it does not exist.
func read[T any](c *change, key string) (*T, error) {
	if r := c.rows[key]; r != nil {
		v, _ := r.value.(*T)
		return v, nil
	}
	stored, err := c.k.Get(c.ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	r := &row{version: stored.Version}
	c.rows[key], c.order = r, append(c.order, key)
	if stored.Version == 0 {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal(stored.Value, v); err != nil {
		return nil, fmt.Errorf("what is stored as %s cannot be read: %w", key, err)
	}
	r.value = v
	return v, nil
}

// readOrNew is read with an empty row in place of one that does not exist.
func readOrNew[T any](c *change, key string) (*T, error) {
	v, err := read[T](c, key)
	if v == nil && err == nil {
		v = new(T)
	}
	return v, err
}

// write writes a row; nil removes it.
func (c *change) write(key string, value any) {
	r := c.rows[key]
	if r == nil { // a new one
		r = &row{}
		c.rows[key], c.order = r, append(c.order, key)
	}
	r.value, r.written = value, true
}

// effect adds a further effect.
func (c *change) effect(e ...sdk.Effect) { c.further = append(c.further, e...) }

// poke has those who wait in a tree look again once this is committed.
func (c *change) poke(root string) {
	c.mu.Lock()
	waiting := len(c.waits[root]) > 0
	c.mu.Unlock()
	if waiting && !c.poked[root] {
		c.poked[root] = true
		c.effect(sdk.Publish(TopicChanged, changed{Root: root}))
	}
}

// effects is the change as one commit.
func (c *change) effects() sdk.Effects {
	var all sdk.Effects
	for _, key := range c.order {
		switch r := c.rows[key]; {
		case !r.written:
		case r.value != nil:
			all = append(all, sdk.PutAt(key, r.value, r.version))
		case r.version != 0:
			all = append(all, sdk.DeleteAt(key, r.version))
		}
	}
	return append(all, c.further...)
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// each calls f with every task of a root; of all roots, if it is empty.
func (t *tasks) each(ctx context.Context, root string, f func(*Task) error) error {
	prefix := taskPrefix
	if root != "" {
		prefix += root + "/"
	}
	err := t.k.Scan(ctx, prefix, func(v sdk.Value) error {
		task := &Task{}
		if err := json.Unmarshal(v.Value, task); err != nil {
			t.log.Error("a stored task cannot be read", "key", v.Key, "error", err)
			return nil
		}
		return f(task)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("read the tasks: %w", err)
	}
	return nil
}
