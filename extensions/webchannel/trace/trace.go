// Package trace is the page that shows what followed from a message, as a picture with times:
// what `switchboard trace` shows, with the same words.
//
// Each step is a row of a tree with a bar from its start to its end; a step opens to its
// event with deliveries and attempts, its call with the result, or the request that a model
// was sent. A trace shows sessions of others that worked for the message, so it is the
// owner's alone. The page needs no script.
package trace

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/agent/sent"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

//go:embed *.html
var files embed.FS

var (
	tree  = page.Parse(files, "trace.html")
	steps = page.Parse(files, "step.html")
)

// Options are what the pages need.
type Options struct {
	Read adminv1.ReadClient
}

// Register adds the pages. An id may be that of any event or a platform's id of a message,
// such as a Telegram chat/message.
func Register(mux *http.ServeMux, o Options) {
	mux.HandleFunc("GET /trace", o.owner(o.find))
	mux.HandleFunc("GET /trace/{id...}", o.owner(o.tree))
	mux.HandleFunc("GET /step/{id}", o.owner(o.step))
}

// owner lets only the owner in.
func (o Options) owner(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := door.From(r.Context())
		if !v.Owner() || !v.May(door.ScopeSessions, false) {
			page.Refuse(w, r, http.StatusForbidden)
			return
		}
		if err := serve(w, r); err != nil {
			page.Fail(w, r, err)
		}
	}
}

// find leads from the field for an id to its trace.
func (o Options) find(w http.ResponseWriter, r *http.Request) error {
	if id := strings.TrimSpace(r.URL.Query().Get("id")); id != "" {
		http.Redirect(w, r, Path(id), http.StatusSeeOther) //nolint:gosec // the path begins with /trace/
		return nil
	}
	render(w, r, words.Say(door.From(r.Context()).Language, "Trace"), &picture{})
	return nil
}

// Path is the address of the trace of an id.
func Path(id string) string { return (&url.URL{Path: "/trace/" + id}).EscapedPath() }

func (o Options) tree(w http.ResponseWriter, r *http.Request) error {
	t, err := admin.ReadTrace(r.Context(), o.Read, r.PathValue("id"))
	if err != nil {
		return err
	}
	p := &picture{
		ID: r.PathValue("id"), Trace: t, All: r.URL.Query().Has("all"), language: door.From(r.Context()).Language,
	}
	root := t.Tree
	if !p.All {
		root = t.Story()
	}
	p.add(root, 1)
	render(w, r, words.Say(door.From(r.Context()).Language, "Trace of %s", t.Root), p)
	return nil
}

func render(w http.ResponseWriter, r *http.Request, title string, p *picture) {
	page.Render(w, r, page.Page{Title: title, Content: tree, Data: p})
}

// picture is what the template shows.
type picture struct {
	ID    string // as asked
	Trace *admin.Trace
	All   bool // every event and delivery
	Rows  []row

	language string
}

// row is one step.
type row struct {
	Level      int // from 1
	Title      string
	Text       string
	Ended      string
	Result     string
	State      string // class of its color
	After      string
	Took       string
	Left, Wide float64 // of its bar, in thousandths
	Asked      bool
	Href       string // of its page; empty: it has none
}

// most is the most levels that are shown as such.
const most = 12

func (p *picture) add(n *admin.Node, level int) {
	plain := func(s string) string { return s }
	ended := n.Ended(p.language, func(_, shown string) string { return shown })
	x := row{
		Level: min(level, most), Title: n.Title(p.language, plain), Text: n.Text,
		Ended: strings.TrimLeft(ended, ":, "), State: color(n.State), After: admin.Duration(p.language, p.Trace.After(n)),
		Asked: n.ID == p.Trace.Asked, Href: href(n),
	}
	if n.Kind == admin.KindTool && n.State == "done" {
		x.Result = n.Result
	}
	whole := max(p.Trace.Millis, 0.001)
	x.Left = min(max(p.Trace.After(n)/whole, 0), 1) * scale
	took := p.Trace.Millis - p.Trace.After(n) // of one that has not ended
	if n.TookMillis != nil {
		took = *n.TookMillis
		x.Took = admin.Duration(p.language, took)
	} else if n.State != "running" {
		took = 0
	}
	x.Wide = max(min(took/whole*scale, scale-x.Left), thin)
	x.Left = min(x.Left, scale-thin)
	p.Rows = append(p.Rows, x)
	for _, c := range n.Children {
		p.add(c, level+1)
	}
}

const (
	scale = 1000
	thin  = 3 // of a moment
)

func color(state string) string {
	switch state {
	case "done", contract.OutcomeOK, "delivered":
		return "ok"
	case "failed", "dead", contract.OutcomeError, contract.OutcomeTimeout:
		return "bad"
	case "running", "pending", "in flight":
		return "warn"
	}
	return "quiet"
}

// href is the address of what a step opens to.
func href(n *admin.Node) string {
	switch {
	case n.ID == "", n.Kind == admin.KindTurn:
		return ""
	}
	return "/step/" + url.PathEscape(n.ID)
}

// opened is what the page of a step shows.
type opened struct {
	Event      *admin.Event
	Payload    string
	At         time.Time
	Deliveries []delivery
	Call       *adminv1.Call
	State      string // of the call, in the visitor's language
	Arguments  string
	Result     string
	Request    *sent.Request
}

type delivery struct {
	*adminv1.Delivery
	Color   string
	Shown   string // its state, in the visitor's language
	Started time.Time
	Settled time.Time
}

func (o Options) step(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var x opened
	var err error
	switch {
	case strings.HasPrefix(id, "e"):
		err = o.event(r, &x, id)
	case strings.HasPrefix(id, "s"):
		x.Request, err = sent.Read(r.Context(), o.Read, id)
	default:
		err = o.call(r, &x, id)
	}
	if err != nil {
		return err
	}
	page.Render(w, r, page.Page{
		Title: words.Say(door.From(r.Context()).Language, "Step %s", id), Content: steps, Data: x,
	})
	return nil
}

func (o Options) event(r *http.Request, x *opened, id string) error {
	e, err := admin.EventByID(r.Context(), o.Read, id)
	if err != nil {
		return err
	}
	language := door.From(r.Context()).Language
	x.Event, x.Payload, x.At = &e, indented(e.GetPayload()), time.UnixMicro(e.GetCreatedAtUs())
	for _, d := range e.Deliveries {
		x.Deliveries = append(x.Deliveries, delivery{
			d, color(d.GetState()), admin.StateIn(language, d.GetState()), at(d.GetStartedAtUs()), at(d.GetSettledAtUs()),
		})
	}
	return nil
}

func (o Options) call(r *http.Request, x *opened, id string) error {
	calls, err := admin.Calls(r.Context(), o.Read, id)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		return fmt.Errorf("%w: there is no step %q", contract.ErrNotFound, id)
	}
	x.State = admin.StateIn(door.From(r.Context()).Language, calls[0].GetState())
	x.Call, x.At = calls[0], time.UnixMicro(calls[0].GetStartedAtUs())
	x.Arguments, x.Result = indented(calls[0].GetArguments()), indented([]byte(calls[0].GetResult()))
	return nil
}

func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// indented formats JSON; anything else is returned unchanged.
func indented(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
