package tasks

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// entry is a task as listed.
type entry struct {
	Name         string `json:"name"`
	By           string `json:"by,omitempty"`           // requester, if not the caller
	Conversation string `json:"conversation,omitempty"` // set if several are listed
	Prompt       string `json:"prompt,omitempty"`       // preview, of unfinished tasks of this conversation
	State        string `json:"state"`
	Outcome      string `json:"outcome,omitempty"`
	Age          string `json:"age"`
}

type listed struct {
	Tasks []entry `json:"tasks"`
	More  int     `json:"more,omitempty"`
	Text  string  `json:"text"`
}

const maxListed = 200

var errPeopleOnly = words.Errorf("only people can list other conversations")

// queue lists the tasks of the caller; for main, those of the whole conversation.
func (t *tasks) queue(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ All bool }
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	root := me.root
	if args.All && !byCommand(call) {
		return sdk.ToolResult{}, errPeopleOnly
	}
	if args.All {
		root = ""
	}
	all, err := t.sorted(ctx, root)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := listed{Tasks: []entry{}}
	for _, task := range all {
		if task.Root != me.root && !call.Principal.Sees(task.Principal) ||
			!args.All && me.task != nil && task.RequesterID != me.id {
			continue
		}
		e := entry{Name: task.Name, State: task.State, Outcome: task.Outcome, Age: age(c.now, task.since())}
		if task.RequesterID != me.id {
			e.By = task.Requester
		}
		if args.All {
			e.Conversation = task.Root
		}
		if task.State != Finished && task.Root == me.root { // prompts of other conversations may be private
			e.Prompt = task.Preview
		}
		if task.Stop != "" && task.State == Running {
			e.State = "stopping"
		}
		out.Tasks = append(out.Tasks, e)
	}
	if more := len(out.Tasks) - maxListed; more > 0 {
		out.More, out.Tasks = more, out.Tasks[:maxListed]
	}
	out.Text = out.format("")
	return sdk.JSON(out)
}

// sorted returns the tasks of a root, or of all roots: unfinished ones first,
// then the finished ones, newest first.
func (t *tasks) sorted(ctx context.Context, root string) (all []*Task, err error) {
	err = t.each(ctx, root, func(task *Task) error {
		all = append(all, task)
		return nil
	})
	slices.SortStableFunc(all, func(a, b *Task) int {
		if fa, fb := a.State == Finished, b.State == Finished; fa != fb {
			if fa {
				return 1
			}
			return -1
		} else if fa {
			return b.FinishedAt.Compare(a.FinishedAt)
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	})
	return all, err
}

func age(now, at time.Time) string { return words.Span(now.Sub(at).Truncate(time.Second)) }

func (l listed) format(language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	var b strings.Builder
	for _, group := range []struct{ title, state string }{
		{say("Queued"), Queued}, {say("Running"), Running}, {say("Stopping"), "stopping"}, {say("Finished"), Finished},
	} {
		first := true
		for _, e := range l.Tasks {
			if e.State != group.state {
				continue
			}
			if first {
				b.WriteString(group.title + ":\n")
				first = false
			}
			line := "- " + e.Name
			if e.Conversation != "" {
				line += say(" in %s", e.Conversation)
			}
			if e.By != "" {
				line += say(", for %s", e.By)
			}
			switch e.State {
			case Finished:
				line += say(" (%s, %s ago)", say(e.Outcome), words.Translate(language, e.Age))
			case Running:
				line += say(" (started %s ago)", words.Translate(language, e.Age))
			}
			if e.Prompt != "" {
				line += ": " + e.Prompt
			}
			b.WriteString(line + "\n")
		}
		if !first {
			b.WriteString("\n")
		}
	}
	if l.More > 0 {
		b.WriteString(say("and %d more", l.More) + "\n")
	}
	if b.Len() == 0 {
		return say("The queue is empty.")
	}
	return strings.TrimSpace(b.String())
}

type waitingItem struct {
	From         string `json:"from"`
	Kind         string `json:"kind"` // result or message
	Conversation string `json:"conversation,omitempty"`
	Age          string `json:"age"`
}

type inboxList struct {
	Messages []waitingItem `json:"messages"`
	More     int           `json:"more,omitempty"`
	Text     string        `json:"text"`
}

// inbox lists the caller's inbox without collecting anything.
func (t *tasks) inbox(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ All bool }
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if args.All && !byCommand(call) {
		return sdk.ToolResult{}, errPeopleOnly
	}
	prefix, names := orderOf(me.root, me.id), map[string]string{}
	seen := map[string]bool{me.root: true} // conversations
	if args.All {
		prefix = orderPrefix
		if err := t.each(ctx, "", func(task *Task) error {
			names[task.ID] = task.Name
			seen[task.Root] = seen[task.Root] || call.Principal.Sees(task.Principal)
			return nil
		}); err != nil {
			return sdk.ToolResult{}, err
		}
	}
	out := inboxList{Messages: []waitingItem{}}
	err = t.scan(ctx, prefix, func(v sdk.Value) error {
		parts := strings.Split(v.Key, "/") // order, root, agent, number
		if len(parts) != 4 || !seen[parts[1]] {
			return nil
		}
		if len(out.Messages) == maxListed {
			out.More++
			return nil
		}
		item, _, err := c.itemAt(agent{root: parts[1], id: parts[2]}, "", v)
		if err != nil || item == nil {
			return err
		}
		w := waitingItem{From: item.From, Kind: "message", Age: age(c.now, item.At)}
		if item.Task != "" {
			w.Kind = "result"
		}
		if args.All {
			w.Conversation = parts[1] + "/" + cmp.Or(names[parts[2]], parts[2])
		}
		out.Messages = append(out.Messages, w)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out.Text = out.format("")
	return sdk.JSON(out)
}

func (l inboxList) format(language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	if len(l.Messages) == 0 {
		return say("The inbox is empty.")
	}
	var b strings.Builder
	b.WriteString(say("Messages:") + "\n")
	for _, m := range l.Messages {
		where := ""
		if m.Conversation != "" {
			where = say(" in %s", m.Conversation)
		}
		age := words.Translate(language, m.Age)
		if m.Kind == "result" {
			b.WriteString(say("- result from %s%s (%s ago)", m.From, where, age) + "\n")
		} else {
			b.WriteString(say("- message from %s%s (%s ago)", m.From, where, age) + "\n")
		}
	}
	if l.More > 0 {
		b.WriteString(say("and %d more", l.More) + "\n")
	}
	return strings.TrimSpace(b.String())
}
