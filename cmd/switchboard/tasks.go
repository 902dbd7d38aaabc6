package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/kernel/control"
)

// The private tools of the tasks extension.
const (
	listTasks  = "tasks/list"
	showTask   = "tasks/show"
	cancelTask = "tasks/cancel"
)

// task is what is shown of one; raw is all of it.
type task struct {
	ID         string    `json:"id"`
	Root       string    `json:"root"`
	Name       string    `json:"name"`
	Agent      string    `json:"agent"`
	Requester  string    `json:"requester"`
	Session    string    `json:"session"`
	SessionKey string    `json:"session_key"`
	State      string    `json:"state"`
	Outcome    string    `json:"outcome"`
	Prompt     string    `json:"prompt"`
	Output     string    `json:"output"`
	Error      string    `json:"error"`
	Partial    string    `json:"partial_output"`
	CreatedAt  time.Time `json:"created_at"`
	raw        json.RawMessage
}

func (t *task) UnmarshalJSON(data []byte) error {
	type fields task
	t.raw = append(t.raw[:0], data...)
	return json.Unmarshal(data, (*fields)(t))
}

func (t task) MarshalJSON() ([]byte, error) { return t.raw, nil } //nolint:unparam // json.Marshaler wants it

const taskFinished = "finished"

func newTasksCommand() *cobra.Command {
	return group("tasks", "Work that agents have given to sub-agents", newTasksList(), newTasksShow(), newTasksCancel())
}

func newTasksList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the tasks, unfinished ones first", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "also those that finished more than a day ago")
	c.RunE = withKernel("listing the tasks", func(c *cobra.Command, k control.Kernel, _ []string) error {
		found, more, err := readTasks(c.Context(), k, *all)
		if err != nil {
			return err
		}
		err = list(c, *asJSON, found, "ID NAME FOR AGENT STATE OUTCOME AGE CONVERSATION", "There are no tasks. An agent, or `/push` in a chat, makes one.",
			func(_ *printer, t task) []cell {
				return []cell{
					text(t.ID), text(t.Name), text(t.Requester), text(t.Agent), state(t.State), text(dash(t.Outcome)), text(ago(t.CreatedAt)), text(t.Root),
				}
			})
		if err != nil || *asJSON || more == 0 {
			return err
		}
		printerOf(c).faint(fmt.Sprintf("and %d more: --all", more))
		return nil
	})
	return c
}

func readTasks(ctx context.Context, k control.Kernel, all bool) ([]task, int, error) {
	content, err := askTasks(ctx, k, listTasks, map[string]any{"all": all})
	if err != nil {
		return nil, 0, err
	}
	var found struct {
		Tasks []task
		More  int
	}
	if err := json.Unmarshal([]byte(content), &found); err != nil {
		return nil, 0, fmt.Errorf("reading the answer of tasks: %w", err)
	}
	return found.Tasks, found.More, nil
}

func askTasks(ctx context.Context, k control.Kernel, name string, fields map[string]any) (string, error) {
	arguments, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	return tool(ctx, k, name, arguments)
}

func readTask(ctx context.Context, k control.Kernel, id string) (t task, err error) {
	content, err := askTasks(ctx, k, showTask, map[string]any{"id": id})
	if err == nil {
		err = json.Unmarshal([]byte(content), &t)
	}
	return t, err
}

// tasksEvery is how often is looked for what has been added.
const tasksEvery = 500 * time.Millisecond

func newTasksShow() *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show what was asked in a task, what its agent did, and its result", Args: cobra.ExactArgs(1), ValidArgsFunction: first(taskIDs)}
	asJSON := jsonFlag(c)
	follow := c.Flags().BoolP("follow", "f", false, "go on until it has finished")
	c.RunE = withKernel("showing task", func(c *cobra.Command, k control.Kernel, args []string) error {
		t, err := readTask(c.Context(), k, args[0])
		if err != nil {
			return err
		}
		p := printerOf(c)
		if !*asJSON {
			p.line("%s  %s", t.ID, t.Name)
			p.faint(fmt.Sprintf("for %s in %s, by %s", t.Requester, t.Root, t.Agent))
			p.line("\n%s", indent(t.Prompt, "  "))
		}
		var shown int64
		for {
			s, err := transcriptOf(c.Context(), k, &t)
			if err != nil {
				return err
			}
			if !*asJSON {
				shown = p.rows(s, shown)
			}
			if !*follow || t.State == taskFinished {
				break
			}
			select {
			case <-c.Context().Done():
				return c.Context().Err()
			case <-time.After(tasksEvery):
			}
			if t, err = readTask(c.Context(), k, t.ID); err != nil {
				return err
			}
		}
		if *asJSON {
			return printJSON(c, t)
		}
		p.line("\n%s", state(t.State+" "+t.Outcome).text)
		for _, part := range []struct{ title, text string }{{"partial output", t.Partial}, {"error", t.Error}, {"output", t.Output}} {
			if part.text != "" {
				p.line("%s:\n%s", part.title, indent(part.text, "  "))
			}
		}
		return nil
	})
	return c
}

// transcriptOf is what was said in the session of a task so far.
func transcriptOf(ctx context.Context, k control.Kernel, t *task) (control.Transcript, error) {
	if t.Session == "" { // it has not said its last word
		sessions, err := k.Sessions(ctx, control.SessionQuery{Agent: t.Agent, Limit: 1000})
		if err != nil {
			return control.Transcript{}, err
		}
		i := slices.IndexFunc(sessions, func(s control.Session) bool { return s.Key == t.SessionKey })
		if i < 0 {
			return control.Transcript{}, nil
		}
		t.Session = sessions[i].ID
	}
	return k.Transcript(ctx, t.Session)
}

// rows shows what an agent did, from a row on, and returns the last one.
func (p *printer) rows(t control.Transcript, from int64) int64 {
	names := map[string]string{}
	for _, e := range t.Entries {
		if e.Seq > from && e.Kind != "input" {
			who, body, c := said(t.Session, e, names)
			p.line("\n%s  %s", p.paint(gray, p.clock(e.At)), p.paint(c, who))
			if body != "" {
				p.line("%s", indent(body, "  "))
			}
		}
		for _, call := range e.Calls {
			names[call.ID] = call.Name
			if e.Seq > from {
				p.line("  %s %s %s", p.paint(yellow, "calls"), call.Name, shorten(call.Arguments, 200))
			}
		}
		from = max(from, e.Seq)
	}
	return from
}

func newTasksCancel() *cobra.Command {
	c := &cobra.Command{Use: "cancel ID", Short: "Stop a task at once, and those that it has started", Args: cobra.ExactArgs(1), ValidArgsFunction: first(taskIDs)}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("cancelling task", func(c *cobra.Command, k control.Kernel, args []string) error {
		content, err := askTasks(c.Context(), k, cancelTask, map[string]any{"id": args[0]})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, json.RawMessage(content))
		}
		var said struct{ Text string }
		if err := json.Unmarshal([]byte(content), &said); err != nil {
			return fmt.Errorf("reading the answer of tasks: %w", err)
		}
		printerOf(c).line("%s", said.Text)
		return nil
	})
	return c
}

func taskIDs(ctx context.Context, k control.Kernel) (out []string, err error) {
	found, _, err := readTasks(ctx, k, false)
	for _, t := range found {
		out = append(out, t.ID+"\t"+t.Name)
	}
	return out, err
}
