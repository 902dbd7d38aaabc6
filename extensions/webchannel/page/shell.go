// Package page is the pages that people see in a browser: the shell that all of them have,
// and the chat.
//
// # Promises
//
//   - A page works from 360 to 1600 pixels, light and dark, by keyboard and with a screen
//     reader, in the visitor's language, and loads nothing from elsewhere.
//   - No page has inline scripts or styles, and no text of anyone becomes markup: html/template
//     escapes it, and Markdown keeps no HTML.
//   - A message that a person has sent is repeated under one id until it is accepted; a
//     connection that breaks is made again, without gaps and without doubles.
//
// # Pages of other packages
//
// Another package renders its pages with Render. Its template sees a View:
//
//	//go:embed people.html
//	var people = page.Parse(files, "people.html")
//
//	func (b *board) people(w http.ResponseWriter, r *http.Request) {
//		v := door.From(r.Context())
//		if !v.May(door.ScopePeople, false) {
//			page.Refuse(w, r, http.StatusForbidden)
//			return
//		}
//		page.Render(w, r, page.Page{
//			Title: words.Say(v.Language, "People"), Active: "/board/people", Content: people, Data: rows,
//			Scripts: []string{"board.js"}, Texts: map[string]string{"saved": words.Say(v.Language, "Saved.")},
//		})
//	}
//
// In the template, .Data is what was passed, .Say "text" translates (the test of the texts
// reads templates too), .Count is words.Count, .Time shows a time in the browser's time zone,
// and .Visitor is the visitor. The format of a time is time, date, both, when (the time, and
// before today the date, too) or ago. Scripts are modules in the directory static; they import what
// shell.js exports: say, post, stream, toast, times. A form may have data-confirm with a
// question to ask before it is sent.
//
// Classes of the style:
//
//	toolbar    a row of buttons and fields above a content
//	cards      a grid of cards; card: a box, with h2 or h3; card dl: names and values
//	scroll     around a table that is wider than a phone; table.data: a table of data
//	badge      a state in one word; with ok, warn, bad or quiet: its color
//	tabs       a row of links to parts of a page, the current one with aria-current="page"
//	form       fields below each other: label, input, p.hint; row: fields in one row
//	button     a link as a button; button.primary, button.danger, button.link
//	empty      what is said where there is nothing to show; error: what went wrong
//	more       a details with a summary and a div of further buttons
//	tree       nested lists as a tree; code, pre: as usual; muted, small, number, right
package page

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/httpstatus"
)

//go:embed *.html
var templates embed.FS

var shell = Parse(templates, "shell.html")

// Page is what Render shows.
type Page struct {
	Title   string                    // in the visitor's language
	Active  string                    // path of the entry in the navigation that it belongs to
	Status  int                       // 0: 200
	Content func() *template.Template // sees a View
	Data    any
	Scripts []string          // names of modules in the directory static
	Styles  []string          // names of styles there, besides the one of all pages
	Texts   map[string]string // for the scripts, in the visitor's language, by key
	Wide    bool              // uses all of the window, without margins
}

// View is what the template of a page sees.
type View struct {
	Page
	Visitor door.Visitor
	// Query is the text of the search field.
	Query string
}

// Parse returns the template of a file, for Page.Content. It is parsed when it is first shown: processes without
// pages share the program. It panics then if the template is wrong.
func Parse(files fs.FS, name string, more ...string) func() *template.Template {
	return sync.OnceValue(func() *template.Template {
		return template.Must(template.New(name).ParseFS(files, append([]string{name}, more...)...))
	})
}

// ParseText returns a template, as Parse does.
func ParseText(text string) func() *template.Template {
	return sync.OnceValue(func() *template.Template { return template.Must(template.New("").Parse(text)) })
}

// Say translates a text.
func (v View) Say(text string, args ...any) string {
	return words.Say(v.Visitor.Language, text, args...)
}

// Count translates a text with a number.
func (v View) Count(one, other string, n int, args ...any) string {
	return words.Count(v.Visitor.Language, one, other, n, args...)
}

// Language is the language of the page, an IETF tag.
func (v View) Language() string {
	if slices.Contains(words.Languages(), v.Visitor.Language) {
		return v.Visitor.Language
	}
	return "en"
}

// Time shows a time; the browser puts it into its own time zone. Formats are those of the
// package's comment.
func (v View) Time(t time.Time, format string) template.HTML {
	if t.IsZero() {
		return ""
	}
	at := t.UTC().Format(time.RFC3339)
	//nolint:gosec // a time and an escaped word are no markup
	return template.HTML(`<time datetime="` + at + `" data-format="` + template.HTMLEscapeString(format) + `">` +
		t.UTC().Format("2006-01-02 15:04") + `</time>`)
}

// Static is the address of a file in the directory static.
func (v View) Static(name string) string { return Static(name) }

// Body is the content.
func (v View) Body() (template.HTML, error) {
	if v.Content == nil {
		return "", nil
	}
	var b bytes.Buffer
	err := v.Content().Execute(&b, v)
	return template.HTML(b.String()), err //nolint:gosec // html/template has made it
}

// ScriptTexts are the texts of the scripts: those of the shell and of the page.
func (v View) ScriptTexts() map[string]string {
	say := v.Say
	all := map[string]string{
		"failed":       say("That didn't work: %s", "%s"),
		"offline":      say("No connection. Trying again…"),
		"online":       say("Connected again."),
		"unauthorized": say("You are not logged in any more. Run `switchboard web` or write /web to your assistant."),
	}
	maps.Copy(all, v.Texts)
	return all
}

// Render writes a page. It is not kept by the browser.
func Render(w http.ResponseWriter, r *http.Request, p Page) {
	v := View{Page: p, Visitor: door.From(r.Context()), Query: r.URL.Query().Get("q")}
	var b bytes.Buffer
	if err := shell().Execute(&b, v); err != nil {
		http.Error(w, "render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	if p.Status != 0 {
		w.WriteHeader(p.Status)
	}
	_, _ = w.Write(b.Bytes())
}

// Refuse writes a page for a request that can't be done, with the reason for people.
func Refuse(w http.ResponseWriter, r *http.Request, status int) {
	v := door.From(r.Context())
	text := words.Say(v.Language, "That didn't work. Try again in a moment.")
	switch status {
	case http.StatusForbidden:
		text = words.Say(v.Language, "You may not see this. The owner can.")
	case http.StatusNotFound:
		text = words.Say(v.Language, "There is nothing here. It may have been deleted.")
	}
	Render(w, r, Page{Title: words.Say(v.Language, "That didn't work"), Status: status, Content: message, Data: text})
}

// Fail writes a page with an error.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	v := door.From(r.Context())
	Render(w, r, Page{
		Title: words.Say(v.Language, "That didn't work"), Status: httpstatus.Of(err), Content: message,
		Data: words.Translate(v.Language, err.Error()),
	})
}

var message = ParseText(`<p class="error" role="alert">{{.Data}}</p>`)
