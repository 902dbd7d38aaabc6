package board

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// task is what the extension tasks says of a task.
type task struct {
	ID          string    `json:"id"`
	Root        string    `json:"root"`
	Name        string    `json:"name"`
	Begins      string    `json:"begins"`
	Agent       string    `json:"agent"`
	Model       string    `json:"model"`
	Requester   string    `json:"requester"`
	RequesterID string    `json:"requester_id"`
	Session     string    `json:"session"`
	State       string    `json:"state"`
	Waiting     bool      `json:"waiting"`
	Stop        string    `json:"stop"`
	Outcome     string    `json:"outcome"`
	Prompt      string    `json:"prompt"`
	Output      string    `json:"output"`
	Error       string    `json:"error"`
	Partial     string    `json:"partial_output"`
	CreatedAt   time.Time `json:"created_at"`
	StartedAt   time.Time `json:"started_at"`
	FinishedAt  time.Time `json:"finished_at"`
}

// doing returns the state of a task in a word; the outcome of a finished one.
func (t task) doing() string {
	switch {
	case t.State == "finished" && t.Outcome != "":
		return t.Outcome
	case t.State == "running" && t.Stop != "":
		return "stopping"
	case t.State == "running" && t.Waiting:
		return "waiting"
	}
	return t.State
}

// since returns when its state began.
func (t task) since() time.Time {
	switch t.State {
	case "running":
		return t.StartedAt
	case "finished":
		return t.FinishedAt
	}
	return t.CreatedAt
}

type taskList struct {
	Tasks []task `json:"tasks"`
	More  int    `json:"more"`
}

// exchange is what the extension links says of an exchange.
type exchange struct {
	ID        string `json:"id"`
	Initiator string `json:"initiator"`
	Peer      string `json:"peer"`
	From      struct {
		Session  string `json:"session"`
		Exchange string `json:"exchange"`
	} `json:"initiated_from"`
	MaxMessages int       `json:"max_messages"`
	Messages    int       `json:"messages"`
	ActiveAt    time.Time `json:"active_at"`
	Over        bool      `json:"over"`
	Outcome     string    `json:"outcome"`
	Summary     string    `json:"summary"`
}

type linkList struct {
	Links []struct {
		From, To, Mode, Problem string
		MaxMessages             int `json:"max_messages"`
	} `json:"links"`
	Exchanges []exchange `json:"exchanges"`
	More      int        `json:"more"`
}

const tasksPath = "/board/tasks"

// tasks shows the tasks and the exchanges of linked agents, as trees.
func (b *board) tasks(mux *http.ServeMux) {
	b.page(mux, tasksPath, members, door.ScopeTasks, func(q *request) (*sheet, error) {
		all := q.URL.Query().Get("all") == "yes"
		found, err := ask[taskList](q, "tasks/list", map[string]any{"all": all})
		if err != nil {
			return nil, err
		}
		b := block{Tree: q.taskTree(found.Tasks)}
		if len(found.Tasks) == 0 {
			b.Text = []string{q.say("There are no tasks. An agent makes one when it gives work to another, and so does /push " +
				"in a chat.")}
		}
		if found.More > 0 && !all {
			b.Links = []link{{Text: q.say("and %d more", found.More), Href: tasksPath + "?all=yes"}}
		}
		return &sheet{Title: q.say("Tasks"), Blocks: append([]block{b}, q.linkBlocks(all)...)}, nil
	})
	b.page(mux, tasksPath+"/{id}", members, door.ScopeTasks, func(q *request) (*sheet, error) {
		t, err := ask[task](q, "tasks/show", map[string]any{"id": q.PathValue("id")})
		if err != nil {
			return nil, err
		}
		return q.taskSheet(t), nil
	})
	b.page(mux, tasksPath+"/exchange/{id}", members, door.ScopeTasks, func(q *request) (*sheet, error) {
		return q.exchangeSheet(q.PathValue("id"))
	})
	b.change(mux, tasksPath+"/cancel", members, door.ScopeTasks, func(q *request) (string, string, error) {
		said, err := do(q, "tasks/cancel", map[string]any{"id": q.field("id")})
		return tasksPath, said, err
	})
}

// taskTree puts the tasks below those that gave them.
func (q *request) taskTree(all []task) []node {
	known := map[string]bool{}
	for _, t := range all {
		known[t.ID] = true
	}
	below := map[string][]task{}
	for _, t := range all {
		parent := t.RequesterID
		if !known[parent] || parent == t.ID {
			parent = ""
		}
		below[parent] = append(below[parent], t)
	}
	var build func(parent string, depth int) []node
	build = func(parent string, depth int) (nodes []node) {
		for _, t := range below[parent] {
			n := node{
				Text: t.Name, Href: tasksPath + "/" + url.PathEscape(t.ID), State: q.state(t.doing()),
				Sub: q.say("%s for %s, since %s", t.Agent, t.Requester, q.moment(t.since()).Text),
			}
			if t.Begins != "" {
				n.Sub += " · " + shorten(t.Begins, 120)
			}
			if t.State != "finished" && t.Stop == "" {
				n.Forms = []form{q.cancelTask(t)}
			}
			if depth < deepest {
				n.Children = build(t.ID, depth+1)
			}
			nodes = append(nodes, n)
		}
		return nodes
	}
	return build("", 0)
}

// deepest bounds the levels of a tree.
const deepest = 20

func (q *request) cancelTask(t task) form {
	return form{
		Action: tasksPath + "/cancel", Label: q.say("Stop the task"), Summary: q.say("Cancel"), Danger: true,
		Hidden:   []hidden{{"id", t.ID}},
		Question: q.say("Stop %s and the tasks that it started? Its result has its output so far.", t.Name),
	}
}

func (q *request) taskSheet(t task) *sheet {
	about := block{Facts: []fact{
		{q.say("State"), q.state(t.doing())}, {q.say("Agent"), cell{Text: t.Agent, Sub: t.Model}},
		{q.say("For"), text(t.Requester)}, {q.say("Given"), q.moment(t.CreatedAt)},
		{q.say("Begun"), q.moment(t.StartedAt)}, {q.say("Finished"), q.moment(t.FinishedAt)},
	}}
	if t.State != "finished" && t.Stop == "" {
		about.Forms = []form{q.cancelTask(t)}
	}
	if t.Session != "" && q.v.Owner() {
		about.Links = []link{{Text: q.say("What was said"), Href: sessionPath(t.Session)}}
	}
	s := &sheet{Title: t.Name, Blocks: []block{about}}
	for _, part := range []struct{ title, text string }{
		{q.say("The task"), t.Prompt}, {q.say("Output so far"), t.Partial}, {q.say("Error"), q.translate(t.Error)},
		{q.say("Result"), t.Output},
	} {
		if part.text != "" {
			s.Blocks = append(s.Blocks, block{Title: part.title, Said: []entry{{Kind: "other", Text: part.text}}})
		}
	}
	s.Blocks = append(s.Blocks, block{Links: []link{{Text: q.say("All tasks"), Href: tasksPath}}})
	return s
}

// linkBlocks shows the links between agents and the exchanges on them; nothing if there are
// none, or if the extension doesn't run.
func (q *request) linkBlocks(all bool) (out []block) {
	found, err := ask[linkList](q, "links/list_links", map[string]any{"all": all, "limit": 1000})
	if err != nil || len(found.Links)+len(found.Exchanges) == 0 {
		return nil
	}
	t := &table{Head: []string{q.say("Linked agents"), q.say("Mode"), q.say("Messages"), q.say("State")}}
	for _, l := range found.Links {
		state := q.state("ready")
		if l.Problem != "" {
			state = cell{Text: q.say("not in effect"), Class: "bad", Sub: q.translate(l.Problem)}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			text(l.From + " – " + l.To), text(l.Mode), text(fmt.Sprint(l.MaxMessages)), state,
		}})
	}
	b := block{Title: q.say("Exchanges of linked agents"), Tree: q.exchangeTree(found.Exchanges)}
	if len(b.Tree) == 0 {
		b.Text = []string{q.say("No exchange is open.")}
	}
	if !all {
		b.Links = []link{{Text: q.say("Show finished ones too"), Href: tasksPath + "?all=yes"}}
	}
	return []block{{Title: q.say("Links"), Table: t}, b}
}

// exchangeTree puts the exchanges below those that led to them.
func (q *request) exchangeTree(all []exchange) []node {
	known := map[string]bool{}
	for _, x := range all {
		known[x.ID] = true
	}
	below := map[string][]exchange{}
	for _, x := range all {
		parent := x.From.Exchange
		if !known[parent] || parent == x.ID {
			parent = ""
		}
		below[parent] = append(below[parent], x)
	}
	var build func(parent string, depth int) []node
	build = func(parent string, depth int) (nodes []node) {
		for _, x := range below[parent] {
			n := node{
				Text: x.Initiator + " → " + x.Peer, Href: tasksPath + "/exchange/" + url.PathEscape(x.ID),
				State: q.state(x.state()),
				Sub:   q.say("%d of %d messages, %s", x.Messages, x.MaxMessages, q.moment(x.ActiveAt).Text),
			}
			if depth < deepest {
				n.Children = build(x.ID, depth+1)
			}
			nodes = append(nodes, n)
		}
		return nodes
	}
	return build("", 0)
}

func (x exchange) state() string {
	if x.Over {
		return cmp.Or(x.Outcome, "ended")
	}
	return "open"
}

func (q *request) exchangeSheet(id string) (*sheet, error) {
	found, err := ask[struct {
		Exchange exchange `json:"exchange"`
		Messages []struct {
			From string    `json:"from"`
			Text string    `json:"text"`
			At   time.Time `json:"at"`
		} `json:"messages"`
		Sessions map[string]string `json:"sessions"`
		Ending   string            `json:"ending"`
	}](q, "links/show_exchange", map[string]any{"id": id})
	if err != nil {
		return nil, err
	}
	x := found.Exchange
	about := block{Facts: []fact{
		{q.say("State"), q.state(x.state())},
		{q.say("Messages"), text(words.Sprintf("%d / %d", x.Messages, x.MaxMessages))},
	}}
	if found.Ending != "" {
		about.Text = []string{q.translate(found.Ending)}
	}
	if x.Summary != "" {
		about.Text = append(about.Text, x.Summary)
	}
	if q.v.Owner() {
		for _, agent := range []string{x.Initiator, x.Peer} {
			if s := found.Sessions[agent]; s != "" {
				about.Links = append(about.Links, link{Text: q.say("The side of %s", agent), Href: sessionPath(s)})
			}
		}
	}
	said := block{Title: q.say("What was said")}
	for _, m := range found.Messages {
		said.Said = append(said.Said, entry{Kind: "other", Who: m.From, At: q.moment(m.At), Text: m.Text})
	}
	about.Links = append(about.Links, link{Text: q.say("All tasks"), Href: tasksPath})
	return &sheet{Title: x.Initiator + " → " + x.Peer, Blocks: []block{about, said}}, nil
}
