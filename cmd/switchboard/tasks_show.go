package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newTasksShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show the prompt, steps and result of a task", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(taskIDs),
		Long: "Shows the prompt of a task, each step of its agent with tool calls and their results, and its result.\n" +
			"Give the id of a task, or its name if it is unique.\n\n" +
			"With --follow, shows each step as it comes until the task has finished, also across a restart of the\nkernel.",
		Example: "  switchboard tasks show research-a --follow",
	}
	asJSON := jsonFlag(c)
	follow := c.Flags().BoolP("follow", "f", false, "show new steps until the task has finished")
	c.RunE = withKernel("show task", func(c *cobra.Command, k *admin.Client, args []string) error {
		w := &taskWatch{c: c, p: printerOf(c), k: k, names: map[string]string{}}
		defer w.close()
		if err := w.read(args[0]); err != nil {
			return err
		}
		if !*asJSON {
			w.head()
		}
		for {
			if !*asJSON {
				w.steps()
			}
			if !*follow || w.t.State == taskFinished {
				break
			}
			if err := w.wait(); err != nil {
				return err
			}
		}
		if *asJSON {
			return printJSON(c, w.t)
		}
		w.end()
		return nil
	})
	return c
}

// tasksEvery is the interval of checks for new steps.
const tasksEvery = 300 * time.Millisecond

// taskWatch shows the progress of one task.
type taskWatch struct {
	c     *cobra.Command
	p     *printer
	k     *admin.Client
	own   *admin.Client // the new connection after a restart of the kernel
	t     task
	said  transcript
	shown int64             // the last row shown
	names map[string]string // of tools, by call
	last  string            // the last text of the agent
}

func (w *taskWatch) close() {
	if w.own != nil {
		w.own.Close()
	}
}

// read reads the task and then its history, so that the history of a finished task is
// complete.
func (w *taskWatch) read(id string) error {
	t, err := readTask(w.c.Context(), w.k, id)
	if err != nil {
		return err
	}
	if t.Session == "" {
		t.Session = w.t.Session
	}
	w.t = t
	w.said, err = transcriptOf(w.c.Context(), w.k, &w.t)
	return err
}

// wait reads the task again after a moment. If the kernel has stopped, it waits for it.
func (w *taskWatch) wait() error {
	ctx, announced := w.c.Context(), false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tasksEvery):
		}
		err := w.read(w.t.ID)
		if err == nil {
			if announced {
				w.p.faint("\nThe kernel is back.")
			}
			return nil
		}
		if _, alive := w.k.Status(ctx, &adminv1.StatusRequest{}); alive == nil && !isStarting(ctx, w.k, showTask) {
			return err
		}
		if !announced {
			announced = true
			w.p.faint("\nThe kernel has stopped. This continues when it is back; press Ctrl-C to quit.")
		}
		if again, err := connect(ctx); err == nil {
			w.close()
			w.own, w.k = again, again
		}
	}
}

// head shows the task itself.
func (w *taskWatch) head() {
	t, p := w.t, w.p
	where := namesOf(w.c.Context(), w.k)
	p.line("%s  %s  %s", t.Name, p.paint(gray, t.ID), p.paint(stateColor(t.doing()), t.doing()))
	about := fmt.Sprintf("for %s of %s, by %s", t.Requester, where.with(t.Root), t.Agent)
	if t.Model != "" {
		about += " with " + t.Model
	}
	if t.Session != "" {
		about += " in " + t.Session
	}
	about += ", given " + p.clock(t.CreatedAt)
	if t.Timeout > 0 {
		about += ", may take " + time.Duration(t.Timeout*float64(time.Second)).String()
	}
	if t.Deliver != "" {
		about += ", deliver: " + t.Deliver
	}
	p.wrapped(gray, about, "")
	p.line("")
	p.body(t.Prompt, "  ")
}

// steps shows the new steps of its agent.
func (w *taskWatch) steps() {
	for _, e := range w.said.entries {
		if e.Seq > w.shown && (e.Kind != "input" || e.InputKind != contract.InputTask) {
			w.p.entry(w.said.Session, e, w.names)
		}
		for _, call := range e.Calls {
			w.names[call.CallId] = call.Name
		}
		if e.Kind == "answer" {
			w.last = e.Text
		}
		w.shown = max(w.shown, e.Seq)
	}
}

// end shows the state of the task, and its result unless the last step has just shown it.
func (w *taskWatch) end() {
	t, p := w.t, w.p
	switch how := p.paint(stateColor(t.doing()), t.doing()); {
	case t.State != taskFinished:
		p.line("\n%s", how)
		p.faint(fmt.Sprintf("`switchboard tasks show %s --follow` follows it.", t.ID))
	case t.StartedAt.IsZero():
		p.line("\nfinished: %s, before it began", how)
	default:
		took := float64(t.FinishedAt.Sub(t.StartedAt)) / float64(time.Millisecond)
		p.line("\nfinished: %s, after %s", how, admin.Duration("", took))
	}
	for _, part := range []struct{ title, text string }{{"partial output", t.Partial}, {"error", t.Error},
		{"result", t.Output}} {
		if said := strings.TrimSpace(part.text); said != "" && said != strings.TrimSpace(w.last) {
			p.line("%s:", part.title)
			p.body(part.text, "  ")
		}
	}
}

// transcriptOf is what was said in the session of a task so far.
func transcriptOf(ctx context.Context, k *admin.Client, t *task) (transcript, error) {
	if t.Session == "" { // not finished
		found, err := admin.Sessions(ctx, k, &adminv1.SessionsRequest{Agent: t.Agent, Key: t.SessionKey})
		if err != nil || len(found) == 0 {
			return transcript{}, err
		}
		t.Session = found[0].GetId()
	}
	said, err := readTranscript(ctx, k, t.Session)
	if errors.Is(err, contract.ErrNotFound) { // the session was deleted
		return transcript{NamedSession: admin.NamedSession{Session: &adminv1.Session{Id: t.Session,
			Agent: cmp.Or(t.Agent, "the agent")}}}, nil
	}
	return said, err
}
