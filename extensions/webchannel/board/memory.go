package board

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// remembered is what the extension memory says of a memory.
type remembered struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Text     string    `json:"text"`
	Scope    string    `json:"scope"`
	Due      string    `json:"due"`
	DueLocal string    `json:"due_local"`
	Overdue  bool      `json:"overdue"`
	By       string    `json:"by"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
}

type memoryList struct {
	Memories   []remembered `json:"memories"`
	More       int          `json:"more"`
	Unreadable []struct {
		ID, Error string
	} `json:"unreadable"`
}

const (
	memoryPath    = "/board/memory"
	memoriesShown = 100
	mostMemories  = 1000
)

// memory shows what is remembered, and lets the visitor change it.
func (b *board) memory(mux *http.ServeMux) {
	b.page(mux, memoryPath, members, door.ScopeMemory, func(q *request) (*sheet, error) {
		asked := q.URL.Query()
		words, kind, of := strings.TrimSpace(asked.Get("q")), asked.Get("kind"), q.person()
		household := true
		find := form{
			Action: memoryPath, Get: true, Label: q.say("Search"), Fields: []field{
				{Name: "q", Label: q.say("Words"), Type: "search", Value: words},
				{Name: "kind", Label: q.say("Kind"), Type: "choice", Options: choices(kind, append([]string{
					"", q.say("all kinds"),
				}, q.kinds()...)...)},
			},
		}
		if q.v.Owner() {
			people, err := b.Read.People(q.Context(), &adminv1.PeopleRequest{})
			if err != nil {
				return nil, err
			}
			if len(people.GetPeople()) > 1 {
				if asked.Get("person") != "" {
					of, household = asked.Get("person"), false
				}
				find.Fields = append(find.Fields, field{
					Name: "person", Label: q.say("Whose"), Type: "choice", Options: q.peopleChoices(of, people.GetPeople()),
				})
			}
		}
		n := min(number(asked.Get("n"), memoriesShown), mostMemories)
		name, fields := "memory/list_memories", map[string]any{"limit": n}
		if kind != "" {
			fields["kind"] = kind
		}
		if words != "" {
			name, fields["query"] = "memory/recall", words
		}
		found, err := askFor[memoryList](q, name, fields, of, household)
		if err != nil {
			return nil, err
		}
		t := q.memoryTable(found, words+kind != "")
		if found.More > 0 && n < mostMemories {
			more := url.Values{"n": {"1000"}, "q": {words}, "kind": {kind}, "person": {asked.Get("person")}}
			t.More = &link{Text: q.say("and %d more", found.More), Href: memoryPath + "?" + more.Encode()}
		}
		add := form{
			Action: memoryPath + "/add", Label: q.say("Remember"), Summary: q.say("Remember something"),
			Fields: q.memoryFields(remembered{Kind: "fact"}),
		}
		listed := block{Table: t}
		for _, u := range found.Unreadable {
			listed.Problems = append(listed.Problems, q.say("%s is damaged: %s", u.ID, q.translate(u.Error)))
			listed.Forms = append(listed.Forms, q.forget(u.ID, u.ID))
		}
		return &sheet{Title: q.say("Memory"), Blocks: []block{{Forms: []form{find, add}}, listed}}, nil
	})
	b.change(mux, memoryPath+"/add", members, door.ScopeMemory, func(q *request) (string, string, error) {
		_, err := do(q, "memory/remember", q.memoryArguments())
		return memoryPath, q.say("It is remembered."), err
	})
	b.change(mux, memoryPath+"/edit", members, door.ScopeMemory, func(q *request) (string, string, error) {
		fields := q.memoryArguments()
		fields["id"], fields["due"] = q.field("id"), q.field("due")
		_, err := do(q, "memory/remember", fields)
		return memoryPath, q.say("Saved."), err
	})
	b.change(mux, memoryPath+"/forget", members, door.ScopeMemory, func(q *request) (string, string, error) {
		said, err := do(q, "memory/forget", map[string]any{"ids": []string{q.field("id")}})
		return memoryPath, said, err
	})
}

// kinds are the kinds of memories with their names.
func (q *request) kinds() []string {
	return []string{"fact", q.say("fact"), "preference", q.say("preference"), "open", q.say("open item")}
}

func (q *request) kindName(kind string) string {
	for i, all := 0, q.kinds(); i < len(all); i += 2 {
		if all[i] == kind {
			return all[i+1]
		}
	}
	return kind
}

// peopleChoices are everyone, and each person.
func (q *request) peopleChoices(chosen string, people []*adminv1.Person) []option {
	pairs := []string{"", q.say("everyone's")}
	for _, x := range people {
		pairs = append(pairs, x.GetId(), nameOf(x))
	}
	return choices(chosen, pairs...)
}

// memoryFields are the inputs of a memory.
func (q *request) memoryFields(m remembered) []field {
	return []field{
		{Name: "text", Label: q.say("What to remember"), Type: "area", Value: m.Text, Required: true},
		{Name: "kind", Label: q.say("Kind"), Type: "choice", Options: choices(m.Kind, q.kinds()...)},
		{
			Name: "due", Label: q.say("Due, for an open item"), Type: "text", Value: m.Due,
			Hint: q.say("such as 2026-03-01 or 2026-03-01T18:30"),
		},
	}
}

func (q *request) memoryArguments() map[string]any {
	fields := map[string]any{"text": q.field("text"), "kind": cmp.Or(q.field("kind"), "fact")}
	if due := q.field("due"); due != "" {
		fields["due"] = due
	}
	return fields
}

func (q *request) forget(id, what string) form {
	return form{
		Action: memoryPath + "/forget", Label: q.say("Forget it for good"), Summary: q.say("Forget"), Danger: true,
		Hidden: []hidden{{"id", id}}, Question: q.say("Forget “%s”?", shorten(what, 60)),
	}
}

func (q *request) memoryTable(found memoryList, filtered bool) *table {
	t := &table{
		Head:  []string{q.say("What"), q.say("Kind"), q.say("Due"), q.say("By"), q.say("Since")},
		Empty: q.say("Nothing is remembered. Tell the assistant: “remember that the kettle is in the kitchen”."),
	}
	if filtered {
		t.Empty = q.say("No memory matches.")
	}
	for _, m := range found.Memories {
		since := m.Updated
		if since.IsZero() {
			since = m.Created
		}
		due := text(dash(m.DueLocal))
		if m.Overdue {
			due.Class = "warn"
		}
		what := text(m.Text)
		if what.Sub = m.ID; m.Scope != "" {
			what.Sub += ", " + q.say("scope %s", m.Scope)
		}
		t.Rows = append(t.Rows, row{
			Cells: []cell{what, text(q.kindName(m.Kind)), due, text(dash(m.By)), q.moment(since)},
			Forms: []form{
				{
					Action: memoryPath + "/edit", Label: q.say("Save"), Summary: q.say("Edit"), Hidden: []hidden{{"id", m.ID}},
					Fields: q.memoryFields(m),
				},
				q.forget(m.ID, m.Text),
			},
		})
	}
	return t
}
