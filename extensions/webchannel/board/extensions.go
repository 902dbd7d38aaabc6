package board

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// server is what the extension mcp says of an MCP server.
type server struct {
	ID, Name, Consent, State, Error string
	Tools, Problems, Permissions    []string
}

const extensionsPath = "/board/extensions"

// extensions shows the extensions with what they may do, their health and their logs.
func (b *board) extensions(mux *http.ServeMux) {
	b.page(mux, extensionsPath, owners, door.ScopeAdmin, func(q *request) (*sheet, error) {
		all, err := q.allExtensions()
		if err != nil {
			return nil, err
		}
		t := &table{
			Head: []string{
				q.say("Extension"), q.say("State"), q.say("Ready"), q.say("Sandbox"), q.say("Since"), q.say("Detail"),
			},
			Empty: q.say("There are no extensions."),
		}
		unused := table{Head: []string{q.say("Extension"), q.say("What it is")}}
		var asked []string
		for _, x := range all {
			if x.GetConsent().GetState() == "asks" {
				asked = append(asked, q.say("%s asks for your permission: its page says for what.", x.GetId()))
			}
			sandbox := text(none)
			if x.GetSandbox() != nil {
				sandbox = q.state(x.GetSandbox().GetLevel())
			}
			detail, _, _ := strings.Cut(cmp.Or(x.GetDetail(), x.GetProblem()), "\n")
			who := cell{Text: x.GetId(), Sub: q.translate(x.GetName()), Href: pathOf(x.GetId())}
			if x.GetState() == "disabled" {
				unused.Rows = append(unused.Rows, row{
					Cells: []cell{who, text(dash(q.whatItIs(x)))}, Forms: []form{q.enableForm(x)},
				})
				continue
			}
			t.Rows = append(t.Rows, row{Cells: []cell{
				who, q.state(x.GetState()), q.state(x.GetReadiness()), sandbox, q.at(x.GetSinceUs()),
				text(dash(q.translate(detail))),
			}})
		}
		s := &sheet{Title: q.say("Extensions"), Blocks: []block{q.installBlock(), {Table: t}}}
		if len(asked) > 0 {
			s.Blocks = slices.Insert(s.Blocks, 0, block{Problems: asked})
		}
		if servers := q.serversBlock(all); servers != nil {
			s.Blocks = append(s.Blocks, *servers)
		}
		if len(unused.Rows) > 0 {
			s.Blocks = append(s.Blocks, block{Title: q.say("Not enabled"), Folded: true, Table: &unused})
		}
		return s, nil
	})
	b.page(mux, extensionsPath+"/{id}", owners, door.ScopeAdmin, func(q *request) (*sheet, error) {
		all, err := q.allExtensions()
		if err != nil {
			return nil, err
		}
		id := q.PathValue("id")
		if id == contract.KernelSource {
			return &sheet{Title: q.say("The kernel"), Blocks: []block{q.logBlock(id)}}, nil
		}
		i := slices.IndexFunc(all, func(x *adminv1.Extension) bool { return x.GetId() == id })
		if i < 0 {
			return nil, words.Errorf("%w: there is no such extension", contract.ErrNotFound)
		}
		return q.extensionSheet(all[i]), nil
	})
	b.extensionChanges(mux)
	b.installations(mux)
}

// pathOf is the page of an extension.
func pathOf(id string) string { return extensionsPath + "/" + url.PathEscape(id) }

// allExtensions returns the extensions, with a note at those that are busy.
func (q *request) allExtensions() ([]*adminv1.Extension, error) {
	all, err := admin.Extensions(q.Context(), q.b.Read)
	if err != nil {
		return nil, err
	}
	status, err := q.b.Read.Status(q.Context(), &adminv1.StatusRequest{})
	admin.NoteBusy(all, status.GetWaiting(), q.b.Now())
	return all, err
}

// serversBlock shows the MCP servers; nil: there are none.
func (q *request) serversBlock(all []*adminv1.Extension) *block {
	if !slices.ContainsFunc(all, func(x *adminv1.Extension) bool {
		return x.GetId() == "mcp" && x.GetState() == "active"
	}) {
		return nil
	}
	b := &block{Title: q.say("MCP servers")}
	servers, err := ask[[]server](q, "mcp/status", nil)
	if err != nil {
		b.Problems = []string{q.problem(err)}
		return b
	}
	b.Table = &table{
		Head:  []string{q.say("Server"), q.say("Consent"), q.say("State"), q.say("Tools"), q.say("What it may use")},
		Empty: q.say("There are no MCP servers. mcp.json in the home names them."),
	}
	for _, x := range servers {
		problems := slices.Clone(x.Problems)
		if x.Error != "" {
			problems = append(problems, x.Error)
		}
		state := q.state(x.State)
		state.Sub = strings.Join(q.translated(problems), "; ")
		which := []hidden{{"server", x.ID}}
		b.Table.Rows = append(b.Table.Rows, row{
			Cells: []cell{
				{Text: cmp.Or(x.Name, x.ID), Sub: "mcp/" + x.ID}, q.state(x.Consent), state,
				text(dash(strings.Join(x.Tools, ", "))), text(dash(strings.Join(q.translated(x.Permissions), "; "))),
			},
			Forms: []form{
				{Action: extensionsPath + "/server/allow", Label: q.say("Allow"), Hidden: which},
				{
					Action: extensionsPath + "/server/refuse", Label: q.say("Refuse"), Hidden: which, Danger: true,
					Question: q.say("Refuse %s? It is stopped, and its tools are gone.", x.ID),
				},
			},
		})
	}
	return b
}

// extensionChanges serves the forms of extensions.
func (b *board) extensionChanges(mux *http.ServeMux) {
	decide := func(allow bool) func(q *request) (string, string, error) {
		return func(q *request) (string, string, error) {
			done, err := b.Manage.Decide(q.Context(), &adminv1.DecideRequest{
				Id: q.field("id"), Code: q.field("code"), Allow: allow, Tools: q.field("tools") == "yes", By: q.v.Name,
			})
			said, x := q.say("%s is allowed.", q.field("id")), done.GetExtension()
			switch {
			case !allow && x.GetConsent().GetOlder():
				said = q.say("What %s asks for in addition is refused. It goes on with the permissions that it had.",
					q.field("id"))
			case !allow:
				said = q.say("%s is refused, and doesn't run.", q.field("id"))
			}
			return pathOf(q.field("id")), said, err
		}
	}
	b.change(mux, extensionsPath+"/allow", owners, door.ScopeAdmin, decide(true))
	b.change(mux, extensionsPath+"/refuse", owners, door.ScopeAdmin, decide(false))
	b.change(mux, extensionsPath+"/restart", owners, door.ScopeAdmin, func(q *request) (string, string, error) {
		done, err := b.Manage.Restart(q.Context(), &adminv1.RestartRequest{Id: q.field("id")})
		if err != nil {
			return "", "", err
		}
		said := q.say("%s is restarted.", q.field("id"))
		others := slices.DeleteFunc(done.GetRestarted(), func(id string) bool { return id == q.field("id") })
		if len(others) > 0 {
			said += " " + q.say("These share its process and restarted with it: %s.", strings.Join(others, ", "))
		}
		return pathOf(q.field("id")), said, nil
	})
	for _, verb := range []string{"allow", "refuse"} {
		b.change(mux, extensionsPath+"/server/"+verb, owners, door.ScopeAdmin, func(q *request) (string, string, error) {
			said, err := do(q, "mcp/"+verb, map[string]any{"server": q.field("server")})
			return extensionsPath, said, err
		})
	}
}
