package board

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	lookPath    = extensionsPath + "/look"
	installPath = extensionsPath + "/install"
	updatePath  = extensionsPath + "/update"
	// self is the extension that serves the page.
	self = "web_channel"
)

// settleTime bounds the wait for an extension that was changed.
const settleTime = 10 * time.Second

// installations serves what changes which extensions are there, and which take part.
func (b *board) installations(mux *http.ServeMux) {
	b.answer(mux, lookPath, owners, door.ScopeAdmin, func(q *request) (*sheet, error) {
		if err := q.fresh(); err != nil {
			return nil, err
		}
		o, err := b.Change.Install(q.Context(), q.wanted())
		if err != nil {
			return nil, err
		}
		return q.offerSheet(o), nil
	})
	install := func(q *request) (string, string, error) {
		if err := q.fresh(); err != nil {
			return "", "", err
		}
		wanted := q.wanted()
		if wanted.Hash = q.field("hash"); wanted.Hash == "" {
			return "", "", words.Errorf("%w: look at the extension first", contract.ErrInvalid)
		}
		wanted.Allow, wanted.Tools = q.field("allow") == "yes", q.field("tools") == "yes"
		wanted.Replace, wanted.By = q.field("replace") == "yes", q.v.Name
		o, err := b.Change.Install(q.Context(), wanted)
		if err != nil {
			return "", "", err
		}
		x := q.settled(o.GetId(), func(x *adminv1.Extension) bool {
			return x.GetVersion() == o.GetVersion() && admin.Settled(x)
		})
		said := q.say("%s %s is installed.", o.GetId(), o.GetVersion())
		if x.GetState() == "not_allowed" {
			said += " " + q.say("It doesn't run until you allow it.")
		}
		return pathOf(o.GetId()), said, nil
	}
	b.change(mux, installPath, owners, door.ScopeAdmin, install)
	b.change(mux, updatePath, owners, door.ScopeAdmin, install)
	b.change(mux, extensionsPath+"/remove", owners, door.ScopeAdmin, func(q *request) (string, string, error) {
		done, err := b.Change.Remove(q.Context(), &adminv1.RemoveRequest{Id: q.field("id"), Data: q.field("data") == "yes"})
		said := q.say("%s is removed.", q.field("id"))
		if done.GetData() != "" {
			said += " " + q.say("Its data stays in %s.", done.GetData())
		}
		return extensionsPath, said, err
	})
	for verb, on := range map[string]bool{"enable": true, "disable": false} {
		b.change(mux, extensionsPath+"/"+verb, owners, door.ScopeAdmin, func(q *request) (string, string, error) {
			id := q.field("id")
			if _, err := b.Change.Enable(q.Context(), &adminv1.EnableRequest{Id: id, Enabled: on}); err != nil {
				return "", "", err
			}
			if !on {
				return pathOf(id), q.say("%s is disabled.", id), nil
			}
			x := q.settled(id, func(x *adminv1.Extension) bool { return x.GetState() != "disabled" && admin.Settled(x) })
			if x.GetState() != "active" {
				return pathOf(id), q.say("%s is enabled, and isn't active yet: this page says why.", id), nil
			}
			return pathOf(id), q.say("%s is enabled and active.", id), nil
		})
	}
}

// fresh refuses who has not logged in a moment ago, and all tokens: what is installed is code
// for this machine, and more than what an old cookie or a token may bring there.
func (q *request) fresh() error {
	if q.v.Fresh(q.b.Now()) {
		return nil
	}
	return fmt.Errorf("%w: %s", contract.ErrDenied, q.howToBeFresh())
}

func (q *request) howToBeFresh() string {
	return q.say("To be sure that it is you, installing needs a new login, not older than 15 minutes. " +
		"Run `switchboard web`, or send /web on another channel, and open the link.")
}

// wanted is the extension that a form names.
func (q *request) wanted() *adminv1.InstallRequest {
	return &adminv1.InstallRequest{Source: q.field("source"), Index: q.field("index"), Id: q.field("id")}
}

// settled waits a moment for an extension to become what it will be.
func (q *request) settled(id string, wanted func(*adminv1.Extension) bool) *adminv1.Extension {
	ctx, cancel := context.WithTimeout(q.Context(), settleTime)
	defer cancel()
	x, _ := admin.Await(ctx, q.b.Read, id, wanted)
	return x
}

// installBlock asks for an extension to look at.
func (q *request) installBlock() block {
	if !q.v.Fresh(q.b.Now()) {
		return block{Title: q.say("Install an extension"), Folded: true, Text: []string{q.howToBeFresh()}}
	}
	return block{Title: q.say("Install an extension"), Folded: true, Text: []string{
		q.say("First you see what it asks for. Nothing of it runs before you agree."),
	}, Forms: []form{{
		Action: lookPath, Label: q.say("Look at it"), Open: true, Fields: []field{
			{
				Name: "source", Label: q.say("Where it is"), Type: "text", Required: true,
				Hint: q.say("The address of a git repository or of an archive (.tar.gz, .zip), or a path on the machine with " +
					"Switchboard."),
			},
			{
				Name: "index", Label: q.say("Index"), Type: "text",
				Hint: q.say("Only if you gave a name: the address of the index that has it."),
			},
		},
	}}}
}

// enableForm enables an extension that the configuration leaves out.
func (q *request) enableForm(x *adminv1.Extension) form {
	id := []hidden{{"id", x.GetId()}}
	return form{Action: extensionsPath + "/enable", Label: q.say("Enable"), Hidden: id, Open: true}
}

// changeForms update, disable and remove an extension.
func (q *request) changeForms(x *adminv1.Extension) (all []form) {
	id := []hidden{{"id", x.GetId()}}
	if !x.GetBuiltin() {
		all = append(all, form{Action: lookPath, Label: q.say("Look for an update"), Hidden: id, Open: true})
	}
	if x.GetState() != "disabled" {
		question := q.say("Disable %s? It stops. Its data and settings stay, and you can enable it again.", x.GetId())
		if x.GetId() == self {
			question = q.say("Disable this page? It is gone at once. `switchboard web` brings it back.")
		}
		all = append(all, form{
			Action: extensionsPath + "/disable", Label: q.say("Disable"), Hidden: id, Danger: true, Question: question,
		})
	}
	if !x.GetBuiltin() {
		all = append(all, form{
			Action: extensionsPath + "/remove", Label: q.say("Remove"), Hidden: id, Danger: true,
			Question: q.say("Remove %s? Its files are deleted.", x.GetId()),
			Fields:   []field{{Name: "data", Label: q.say("Delete its data, too: it can't be restored"), Type: "check"}},
		})
	}
	return all
}

// offerSheet shows an extension that may be installed, before anything is.
func (q *request) offerSheet(o *adminv1.InstallResponse) *sheet {
	id, update := q.field("id"), o.GetInstalled() != ""
	s := &sheet{Title: q.say("Install %s?", orElse(o.GetName(), o.GetId()))}
	version := text(o.GetVersion())
	if update {
		s.Title = q.say("Update %s?", orElse(o.GetName(), o.GetId()))
		version.Sub = q.say("%s is installed", o.GetInstalled())
	}
	about := block{Facts: []fact{
		{q.say("Id"), cell{Text: o.GetId(), Code: true}}, {q.say("Version"), version},
		{q.say("Source"), text(o.GetSource())},
	}}
	if o.GetDescription() != "" {
		about.Text = []string{o.GetDescription()}
	}
	if o.GetPublisher() != "" {
		about.Facts = append(about.Facts, fact{q.say("Publisher"), text(o.GetPublisher())})
	}
	back := block{Links: []link{{Text: q.say("All extensions"), Href: extensionsPath}}}
	if o.GetCurrent() {
		s.Title = q.say("%s is up to date", orElse(o.GetName(), o.GetId()))
		s.Blocks = []block{about, back}
		return s
	}
	if o.GetOlder() {
		about.Problems = append(about.Problems, q.say("This version is older than the installed one."))
	}
	if o.GetForeign() != "" {
		about.Problems = append(about.Problems, q.say("The files that are there were not installed by Switchboard, or have "+
			"been changed since. They would be replaced."))
	}
	s.Blocks = append(s.Blocks, about)
	c := o.GetConsent()
	asks, more := c.GetAsks(), c.GetMore()
	switch {
	case len(asks) == 0:
		s.Blocks = append(s.Blocks, block{Title: q.say("Permissions"), Text: []string{q.say("It asks for no permission.")}})
	case update && len(more) > 0 && len(more) < len(asks):
		s.Blocks = append(s.Blocks, block{Title: q.say("It asks for more, your permission to:"), List: q.translated(more)})
	default:
		s.Blocks = append(s.Blocks, block{Title: q.say("It asks for your permission to:"), List: q.translated(asks)})
	}
	if len(asks) > 0 && len(more) == 0 {
		s.Blocks[len(s.Blocks)-1].Facts = []fact{{q.say("Decision"), q.state("allowed")}}
	}
	if len(o.GetNoLonger()) > 0 {
		s.Blocks = append(s.Blocks, block{Title: q.say("It no longer asks to:"), List: q.translated(o.GetNoLonger())})
	}
	if len(o.GetUses()) > 0 {
		s.Blocks = append(s.Blocks, block{Title: q.say("Without asking, it:"), List: q.translated(o.GetUses())})
	}
	action := installPath
	if id != "" {
		action = updatePath
	}
	hiddens := []hidden{{"source", q.field("source")}, {"index", q.field("index")}, {"id", id}, {"hash", o.GetHash()}}
	if o.GetForeign() != "" {
		hiddens = append(hiddens, hidden{"replace", "yes"})
	}
	yes := form{Action: action, Label: q.say("Install"), Open: true, Hidden: hiddens}
	if update {
		yes.Label = q.say("Update")
	}
	if c.GetOffersTools() && !c.GetTools() {
		yes.Fields = []field{{Name: "tools", Label: q.say("The default agent may use its tools"), Type: "check"}}
	}
	decide := block{Forms: []form{yes}}
	if len(more) > 0 {
		later := yes
		later.Label, later.Fields = q.say("Install without allowing it"), nil
		yes.Label = q.say("Allow and install")
		if update {
			yes.Label = q.say("Allow and update")
		}
		yes.Hidden = append([]hidden{{"allow", "yes"}}, hiddens...)
		decide.Forms = []form{yes}
		if !update {
			decide.Forms = append(decide.Forms, later)
		}
	} else if len(yes.Fields) > 0 {
		decide.Forms[0].Hidden = append([]hidden{{"allow", "yes"}}, hiddens...)
	}
	s.Blocks = append(s.Blocks, decide, back)
	return s
}

// whatItIs says what an extension provides.
func (q *request) whatItIs(x *adminv1.Extension) string {
	var all []string
	for _, kind := range x.GetKinds() {
		switch kind {
		case "agent":
			all = append(all, q.say("agent"))
		case "channel":
			all = append(all, q.say("channel"))
		case "models":
			all = append(all, q.say("models"))
		case "tools":
			all = append(all, q.say("tools"))
		}
	}
	return strings.Join(all, ", ")
}
