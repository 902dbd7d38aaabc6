// Package search is the page that searches all conversations: what `switchboard sessions
// search` finds, for the person who is logged in.
//
// The owner finds everything, a member what they may see in a private chat with the
// assistant; the kernel decides. A guest finds nothing.
package search

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/sessions"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
)

//go:embed *.html
var files embed.FS

var template = page.Parse(files, "search.html")

// Options are what the page needs.
type Options struct {
	Manage adminv1.ManageClient
}

// Register adds the page.
func Register(mux *http.ServeMux, o Options) {
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { o.serve(w, r) })
}

// results is what the template shows.
type results struct {
	Words string
	Hits  []hit
	Older string // address of the older ones; empty: there are none
}

type hit struct {
	sessions.Hit
	Parts []part
	Time  time.Time
	Href  string // of the transcript
}

// part is a piece of a text.
type part struct {
	Text  string
	Match bool
}

// perPage is how many hits one page shows.
const perPage = 30

func (o Options) serve(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if !v.May(door.ScopeSessions, false) {
		page.Refuse(w, r, http.StatusForbidden)
		return
	}
	asked := r.URL.Query()
	shown := results{Words: strings.TrimSpace(asked.Get("q"))}
	if shown.Words != "" {
		found, err := o.find(r.Context(), v, shown.Words, asked.Get("before"))
		if err != nil {
			page.Fail(w, r, err)
			return
		}
		for _, h := range found.Hits {
			h.Name = words.Translate(v.Language, h.Name)
			shown.Hits = append(shown.Hits, describe(h))
		}
		if found.Before != "" {
			shown.Older = "/search?" + url.Values{"q": {shown.Words}, "before": {found.Before}}.Encode()
		}
	}
	page.Render(w, r, page.Page{Title: words.Say(v.Language, "Search"), Content: template, Data: shown})
}

func (o Options) find(ctx context.Context, v door.Visitor, text, before string) (found sessions.Found, err error) {
	query := map[string]any{"query": text, "limit": perPage, "marks": true}
	if before != "" {
		query["before"] = before
	}
	arguments, err := json.Marshal(query)
	if err != nil {
		return found, err
	}
	q := &adminv1.CallToolRequest{Name: sessions.SearchTool, Arguments: arguments}
	if !v.Owner() {
		q.Person, q.Household = v.Account, true
	}
	result, err := o.Manage.CallTool(ctx, q)
	switch {
	case err != nil:
		return found, err
	case result.GetIsError():
		return found, errors.New(result.GetContent())
	}
	if err := json.Unmarshal([]byte(result.GetContent()), &found); err != nil {
		return found, fmt.Errorf("read what the search has found: %w", err)
	}
	return found, nil
}

// after is how many rows the transcript shows after a hit.
const after = 10

func describe(h sessions.Hit) hit {
	at, _ := time.Parse(time.RFC3339, h.At) // not known: it is not shown
	shown := hit{Hit: h, Time: at}
	shown.Href = fmt.Sprintf("/board/sessions/%s?before=%d", url.PathEscape(h.Session), h.Seq+after)
	from := 0
	add := func(to int, match bool) {
		if to > from {
			shown.Parts = append(shown.Parts, part{h.Text[from:to], match})
			from = to
		}
	}
	for _, m := range h.Marks {
		if m[0] >= from && m[0] <= m[1] && m[1] <= len(h.Text) {
			add(m[0], false)
			add(m[1], true)
		}
	}
	add(len(h.Text), false)
	return shown
}
