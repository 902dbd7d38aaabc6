package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Task is work that a sub-agent does.
type Task struct {
	ID         string     `json:"id"`
	Root       string     `json:"root" doc:"The session of the conversation in which it was given."`
	Name       string     `json:"name"`
	Agent      string     `json:"agent"`
	Model      string     `json:"model,omitempty"`
	Requester  string     `json:"requester" doc:"The agent that gave it; main: that of the conversation."`
	Begins     string     `json:"begins,omitempty" doc:"The first line of its prompt."`
	Prompt     string     `json:"prompt,omitempty"`
	State      string     `json:"state" enum:"queued,running,finished"`
	Waiting    bool       `json:"waiting,omitempty" doc:"For a message of another agent."`
	Stop       string     `json:"stop,omitempty" doc:"It is being stopped, with this outcome."`
	Outcome    string     `json:"outcome,omitempty" doc:"ok, error, timeout, cancelled, capped, interrupted"`
	Output     string     `json:"output,omitempty"`
	Error      string     `json:"error,omitempty"`
	Partial    string     `json:"partial_output,omitempty"`
	Timeout    float64    `json:"timeout,omitempty" doc:"Seconds from its start."`
	Session    string     `json:"session,omitempty" doc:"Of the sub-agent, once it has finished."`
	CreatedAt  *time.Time `json:"created_at,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// NewTask is a task to give.
type NewTask struct {
	Prompt       string  `json:"prompt" minLength:"1" doc:"All that the sub-agent needs to know."`
	Name         string  `json:"name,omitempty" maxLength:"40" pattern:"^[a-z0-9-]*$" doc:"Begins the name of the task."`
	Agent        string  `json:"agent,omitempty" maxLength:"300" doc:"Absent: a copy of the default one."`
	Model        string  `json:"model,omitempty" maxLength:"300"`
	Timeout      float64 `json:"timeout,omitempty" minimum:"0" doc:"Seconds from its start; 0: as long as it takes."`
	Conversation Name    `json:"conversation,omitempty" doc:"Where it is given and its result goes; absent: tasks."`
}

type taskQuery struct {
	Paging
	All bool `query:"all" doc:"Also those that finished more than a day ago."`
}

type (
	taskResponse struct{ Body Task }
	taskCreation struct {
		Key  string `header:"Idempotency-Key" hidden:"true"`
		Body NewTask
	}
)

// The private tools of the tasks extension.
const (
	listTasks  = "tasks/list"
	showTask   = "tasks/show"
	cancelTask = "tasks/cancel"
)

func (a *api) tasks(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/tasks", id: "list-tasks", tag: "tasks", scope: door.ScopeTasks,
		summary: "List the tasks, unfinished ones first",
	}, func(ctx context.Context, v door.Visitor, in *taskQuery) (*listing[Task], error) {
		all, err := a.allTasks(ctx, v, in.All)
		if err != nil {
			return nil, err
		}
		return offsetPage(all, in.Paging)
	})
	add(h, op{
		method: http.MethodGet, path: "/tasks/{id}", id: "get-task", tag: "tasks", scope: door.ScopeTasks,
		summary: "Show a task with its prompt and result",
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*taskResponse, error) {
		t, err := a.task(ctx, v, in.ID)
		return &taskResponse{t}, err
	})
	add(h, op{
		method: http.MethodPost, path: "/tasks", id: "add-task", tag: "tasks", scope: door.ScopeTasks,
		summary: "Give a task to a sub-agent, and start it", status: http.StatusCreated,
		about: "It is given in a conversation of the token, by /push and /run.",
	}, a.addTask)
	add(h, op{
		method: http.MethodPost, path: "/tasks/{id}/cancel", id: "cancel-task", tag: "tasks", scope: door.ScopeTasks,
		summary: "Stop a task and the tasks that it started",
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*taskResponse, error) {
		t, err := a.task(ctx, v, in.ID)
		if err != nil {
			return nil, err
		}
		if t.State != "finished" && t.Stop == "" {
			if _, err := callTool[json.RawMessage](ctx, a, v, cancelTask, map[string]string{"id": in.ID}); err != nil {
				return nil, err
			}
			t, err = a.task(ctx, v, in.ID)
		}
		return &taskResponse{t}, err
	})
}

func (a *api) allTasks(ctx context.Context, v door.Visitor, all bool) ([]Task, error) {
	found, err := callTool[struct{ Tasks []Task }](ctx, a, v, listTasks, map[string]any{"all": all})
	return found.Tasks, err
}

func (a *api) task(ctx context.Context, v door.Visitor, id string) (Task, error) {
	all, err := a.allTasks(ctx, v, true)
	if err != nil {
		return Task{}, err
	}
	for _, t := range all {
		if t.ID == id {
			return callTool[Task](ctx, a, v, showTask, map[string]string{"id": id})
		}
	}
	return Task{}, missing("task", id)
}

// addTask says /push and /run in a conversation of the token. Both messages have ids made of the
// key, and the task has a name made of it, so a repeated request finds what was done.
func (a *api) addTask(ctx context.Context, v door.Visitor, in *taskCreation) (*taskResponse, error) {
	id := newID()
	if in.Key != "" {
		id = keyID(v, in.Key)
	}
	name := cmp.Or(in.Body.Name, "api") + "-" + strings.ToLower(id[:8])
	conversation := conversationOf(v, cmp.Or(string(in.Body.Conversation), "tasks"))
	push := []string{"/push --name", name}
	for _, o := range []struct{ option, value string }{{"agent", in.Body.Agent}, {"model", in.Body.Model}} {
		switch {
		case o.value == "":
		case !oneWord.MatchString(o.value):
			return nil, problem(http.StatusUnprocessableEntity, "", fmt.Sprintf("there is no %s %q", o.option, o.value))
		default:
			push = append(push, "--"+o.option, o.value)
		}
	}
	if in.Body.Timeout > 0 {
		push = append(push, fmt.Sprintf("--timeout %g", in.Body.Timeout))
	}
	said, err := a.order(ctx, v, chat.Message{
		ID: "push-" + id, Conversation: conversation, Text: strings.Join(append(push, "--", in.Body.Prompt), " "),
	})
	if err != nil {
		return nil, err
	}
	made, found, err := a.taskNamed(ctx, v, name)
	switch {
	case err != nil:
		return nil, err
	case !found && said != "":
		return nil, problem(http.StatusUnprocessableEntity, "", said)
	case !found:
		return nil, problem(http.StatusGatewayTimeout, "",
			"the tasks extension did not answer in time; repeat the request with the same "+keyHeader)
	}
	if _, err := a.order(ctx, v, chat.Message{ID: "run-" + id, Conversation: conversation, Text: "/run"}); err != nil {
		return nil, err
	}
	t, err := a.task(ctx, v, made.ID)
	return &taskResponse{t}, err
}

// order says a command, and returns what it is answered with, if that comes in time.
func (a *api) order(ctx context.Context, v door.Visitor, m chat.Message) (string, error) {
	said, err := a.Chat.Say(ctx, v, m)
	if err != nil {
		return "", err
	}
	if x := a.exchange(ctx, v, said); x.Body.Reply != nil {
		return x.Body.Reply.Text, nil
	}
	return "", nil
}

var oneWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

func (a *api) taskNamed(ctx context.Context, v door.Visitor, name string) (Task, bool, error) {
	all, err := a.allTasks(ctx, v, true)
	for _, t := range all {
		if t.Name == name {
			return t, true, nil
		}
	}
	return Task{}, false, err
}
