package board

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

//go:embed board.html board.css board.js
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"parts": parts}).ParseFS(files, "board.html"))
})

// part is a piece of a text: words, or code between backticks.
type part struct {
	Text string
	Code bool
}

// parts splits a text at its backticks.
func parts(text string) (all []part) {
	pieces := strings.Split(text, "`")
	if len(pieces)%2 == 0 { // one is alone
		return []part{{Text: text}}
	}
	for i, piece := range pieces {
		if piece != "" {
			all = append(all, part{Text: piece, Code: i%2 == 1})
		}
	}
	return all
}

// safe returns what a template has written: html/template has escaped all values in it.
func safe(b bytes.Buffer) template.HTML { return template.HTML(b.String()) } //nolint:gosec // it comes from a template

// sheet is a page: a title and blocks below each other. One template writes all pages, so no
// page can forget to escape something.
type sheet struct {
	Title  string
	Said   string // what a change has just said
	Blocks []block
}

// Style is the address of the board's own style.
func (s *sheet) Style() string { return stylePath }

// Live reports whether the page moves.
func (s *sheet) Live() bool {
	for _, b := range s.Blocks {
		if b.Live != nil {
			return true
		}
	}
	return false
}

// Script is the address of the script.
func (s *sheet) Script() string { return scriptPath }

// block is a part of a page. Its fields are shown in this order.
type block struct {
	Title    string
	Problems []string // what is wrong, first
	Text     []string // paragraphs
	Facts    []fact
	List     []string
	Plot     *plot
	Table    *table
	Week     []day
	Tree     []node
	Said     []entry // a transcript
	Lines    []line  // of a file or a log
	Links    []link
	Forms    []form
	Folded   bool     // it is closed until it is opened, under its title
	Live     *overlay // it moves
}

// overlay is a block that the live board replaces.
type overlay struct {
	Paused string // shown when the connection is lost
	Blocks []block
}

type link struct {
	Text, Href string
	Here       bool // it is the page that is shown
}

type fact struct {
	Name  string
	Value cell
}

// table has rows; Empty is said if there are none.
type table struct {
	Caption string
	Head    []string
	Rows    []row
	Empty   string
	More    *link // to the rows that are not shown
}

// Actions reports whether any row has something to do.
func (t *table) Actions() bool {
	for _, r := range t.Rows {
		if len(r.Forms) > 0 {
			return true
		}
	}
	return false
}

type row struct {
	Cells []cell
	Forms []form
}

// cell is a value of a table.
type cell struct {
	Text  string
	Sub   string // below it, smaller
	Href  string
	Class string // ok, bad, warn, quiet: what a state means
	Code  bool
	ISO   string // set: it is a time
}

// None reports whether there is nothing in it.
func (c cell) None() bool { return c.Text == none && c.Sub == "" }

// none stands for a value that is empty.
const none = "–"

// form changes something. With fields or a question it is folded, under its label.
type form struct {
	Action   string
	Label    string // of the button
	Summary  string // of the fold; empty: Label
	Question string // what is asked first
	Danger   bool
	Get      bool // it asks for a page and changes nothing
	Open     bool // it is not folded
	Hidden   []hidden
	Fields   []field
}

// Folded reports whether the form is closed until it is opened.
func (f form) Folded() bool { return !f.Open && !f.Get && (f.Question != "" || len(f.Fields) > 0) }

// Fold is the title of a closed form.
func (f form) Fold() string { return cmp.Or(f.Summary, f.Label) }

type hidden struct{ Name, Value string }

// field is an input. Its type is that of HTML, or area, choice, check.
type field struct {
	Name, Label, Type, Value, Hint string
	Options                        []option
	Required                       bool
}

type option struct {
	Value, Text string
	Chosen      bool
}

// choices returns options of which one is chosen.
func choices(chosen string, pairs ...string) (all []option) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, option{Value: pairs[i], Text: pairs[i+1], Chosen: pairs[i] == chosen})
	}
	return all
}

// node is a part of a tree.
type node struct {
	Text, Sub, Href string
	State           cell
	Forms           []form
	Children        []node
}

// day is a column of the week.
type day struct {
	Title string
	Today bool
	Items []item
	Empty string
}

type item struct{ At, Text, Sub string }

// entry is a row of a transcript.
type entry struct {
	Who, Kind string // kind: person, assistant, other, bad
	At        cell
	Text      string
	Calls     []call
	Href      string // of its trace
	HrefText  string
}

type call struct{ Title, Text string }

// line is a line of a file or a log.
type line struct {
	Number int // 0: it has none
	At     string
	Class  string
	Text   string
}

func text(s string) cell { return cell{Text: s} }

func linked(s, href string) cell { return cell{Text: s, Href: href} }

// dash returns a text that is not empty.
func dash(s string) string { return cmp.Or(s, none) }

// at returns a time of the contract for people; 0: none.
func (q *request) at(us int64) cell {
	if us == 0 {
		return text(none)
	}
	return q.moment(time.UnixMicro(us))
}

// moment returns a time for people, without the date if it is today.
func (q *request) moment(t time.Time) cell {
	if t.IsZero() {
		return text(none)
	}
	t = t.In(q.zone)
	shown := words.Time(q.v.Language, t)
	if now := q.b.Now().In(q.zone); now.YearDay() == t.YearDay() && now.Year() == t.Year() {
		shown = t.Format("15:04:05")
	}
	return cell{Text: shown, ISO: t.Format(time.RFC3339)}
}

// state returns a state in a word, with what it means.
func (q *request) state(s string) cell {
	if s == "" {
		return text(none)
	}
	c := cell{Text: q.stateWord(s)}
	switch s {
	case "active", "ready", "delivered", "done", "ok", "running", "concluded", "allowed", "full":
		c.Class = "ok"
	case "failed", "invalid", "dead", "error", "interrupted", "unavailable", "refused":
		c.Class = "bad"
	case "backing_off", "busy", "degraded", "starting", "stopping", "pending", "in flight", "queued", "paused", "timeout",
		"cancelled", "capped", "not_allowed", "asks", "partial":
		c.Class = "warn"
	default:
		c.Class = "quiet"
	}
	return c
}

// stateWord translates a state.
func (q *request) stateWord(s string) string {
	switch s {
	case "active":
		return q.say("active")
	case "disabled":
		return q.say("disabled")
	case "invalid":
		return q.say("invalid")
	case "not_allowed":
		return q.say("not allowed")
	case "busy":
		return q.say("busy")
	case "idle":
		return q.say("idle")
	case "waiting":
		return q.say("waiting")
	case "ended":
		return q.say("ended")
	case "open":
		return q.say("open")
	case "concluded":
		return q.say("concluded")
	case "asks":
		return q.say("asks for your permission")
	case "allowed":
		return q.say("allowed")
	case "refused":
		return q.say("refused")
	case "full":
		return q.say("limited")
	case "partial":
		return q.say("partly limited")
	case "none":
		return q.say("not limited")
	case "backing_off":
		return q.say("waits before a restart")
	}
	return strings.ReplaceAll(words.Say(q.v.Language, s), "_", " ")
}

// shorten returns the beginning of a text, in one line.
func shorten(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return s
}
