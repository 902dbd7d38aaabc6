package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// The private tools of the tasks extension.
const (
	listTasks  = "tasks/list"
	showTask   = "tasks/show"
	cancelTask = "tasks/cancel"
)

// task has the shown fields of a task; raw is all of it.
type task struct {
	ID         string    `json:"id"`
	Root       string    `json:"root"`
	Name       string    `json:"name"`
	Agent      string    `json:"agent"`
	Model      string    `json:"model"`
	Requester  string    `json:"requester"`
	Deliver    string    `json:"deliver"`
	Timeout    float64   `json:"timeout"`
	Session    string    `json:"session"`
	SessionKey string    `json:"session_key"`
	State      string    `json:"state"`
	Waiting    bool      `json:"waiting"`
	Stop       string    `json:"stop"`
	Outcome    string    `json:"outcome"`
	Prompt     string    `json:"prompt"`
	Output     string    `json:"output"`
	Error      string    `json:"error"`
	Partial    string    `json:"partial_output"`
	CreatedAt  time.Time `json:"created_at"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
	raw        json.RawMessage
}

func (t *task) UnmarshalJSON(data []byte) error {
	type fields task
	t.raw = append(t.raw[:0], data...)
	return json.Unmarshal(data, (*fields)(t))
}

func (t task) MarshalJSON() ([]byte, error) { return t.raw, nil } //nolint:unparam // json.Marshaler wants it

const (
	taskRunning  = "running"
	taskFinished = "finished"
)

// doing returns the state of a task in a word; the outcome of a finished one.
func (t task) doing() string {
	switch {
	case t.State == taskFinished && t.Outcome != "":
		return t.Outcome
	case t.State == taskRunning && t.Stop != "":
		return "stopping"
	case t.State == taskRunning && t.Waiting:
		return "waiting"
	}
	return t.State
}

// since returns when its state began.
func (t task) since() time.Time {
	switch t.State {
	case taskRunning:
		return t.StartedAt
	case taskFinished:
		return t.FinishedAt
	}
	return t.CreatedAt
}

func newTasksCommand() *cobra.Command {
	return group("tasks", "Tasks that agents gave to sub-agents", newTasksList(), newTasksShow(), newTasksCancel())
}

func newTasksList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the tasks, unfinished ones first", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "also those that finished more than a day ago")
	c.RunE = withKernel("list the tasks", func(c *cobra.Command, k *admin.Client, _ []string) error {
		found, more, err := readTasks(c.Context(), k, *all)
		if err != nil {
			return err
		}
		where := namesOf(c.Context(), k)
		err = list(c, *asJSON, found, "ID NAME STATE AGE FOR AGENT CONVERSATION | AGENT FOR AGE",
			"There are no tasks. An agent, or `/push` in a chat, makes one.",
			func(_ *printer, t task) []cell {
				return []cell{text(t.ID), text(t.Name), state(t.doing()), text(age(t.since())), text(t.Requester), text(t.Agent),
					text(where.of(t.Root))}
			})
		if err != nil || *asJSON || more == 0 {
			return err
		}
		printerOf(c).faint(fmt.Sprintf("and %d more: --all", more))
		return nil
	})
	return c
}

func readTasks(ctx context.Context, k *admin.Client, all bool) ([]task, int, error) {
	return tasksOf(ctx, k, "", all)
}

// tasksOf reads the tasks that a person gave; of all people without one.
func tasksOf(ctx context.Context, k *admin.Client, person string, all bool) ([]task, int, error) {
	found, err := callToolOf[struct {
		Tasks []task
		More  int
	}](ctx, k, person, listTasks, map[string]any{"all": all})
	return found.Tasks, found.More, err
}

func readTask(ctx context.Context, k *admin.Client, id string) (task, error) {
	return callTool[task](ctx, k, showTask, map[string]any{"id": id})
}

func newTasksCancel() *cobra.Command {
	c := &cobra.Command{Use: "cancel ID", Short: "Stop a task and the tasks that it started", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(taskIDs)}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("cancel task", func(c *cobra.Command, k *admin.Client, args []string) error {
		return runTool(c, k, cancelTask, map[string]any{"id": args[0]}, *asJSON)
	})
	return c
}

func taskIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	found, _, err := readTasks(ctx, k, false)
	for _, t := range found {
		out = append(out, t.ID+"\t"+t.Name+", "+t.doing())
	}
	return out, err
}
