package board

import (
	"net/http"
	"strings"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// channels shows the channels and whether they are ready.
func (b *board) channels(mux *http.ServeMux) {
	b.page(mux, "/board/channels", owners, door.ScopeChannels, func(q *request) (*sheet, error) {
		dir, err := b.Read.Directory(q.Context(), &adminv1.DirectoryRequest{})
		if err != nil {
			return nil, err
		}
		t := &table{
			Head: []string{q.say("Channel"), q.say("State"), q.say("Agent"), q.say("What to do")},
			Empty: q.say("There are no channels: all of them are disabled in config.yaml. " +
				"`switchboard setup` connects one."),
		}
		for _, x := range admin.Channels(dir) {
			name := cell{Text: q.translate(x.Name), Sub: x.ID, Href: "/board/extensions/" + x.ID}
			if x.Default {
				name.Sub += ", " + q.say("the default channel")
			}
			r := row{Cells: []cell{name, q.state(x.Status), text(dash(x.Agent)), text(q.advice(x))}}
			if x.Status == "ready" || x.Status == "degraded" {
				r.Forms = []form{{
					Action: "/board/channels/send", Label: q.say("Send"), Summary: q.say("Send a message"),
					Hidden: []hidden{{"channel", x.ID}},
					Fields: []field{{
						Name: "text", Label: q.say("To the default recipient"), Type: "area", Required: true,
					}},
				}}
			}
			t.Rows = append(t.Rows, r)
		}
		return &sheet{Title: q.say("Channels"), Blocks: []block{{
			Text: []string{q.say("Channels are the ways to reach the assistant, and for it to reach you.")}, Table: t,
		}}}, nil
	})
	b.change(mux, "/board/channels/send", owners, door.ScopeChannels, func(q *request) (back, said string, err error) {
		sent, err := b.Manage.Send(q.Context(), &adminv1.SendRequest{Channel: q.field("channel"), Text: q.field("text")})
		switch {
		case err != nil:
		case sent.GetStatus() == "failed":
			err = toolError(q.say("The message wasn't delivered: %s", q.translate(sent.GetDetail())))
		case sent.GetStatus() == "queued":
			said = q.say("The message is queued: %s", q.translate(sent.GetDetail()))
		default:
			said = q.say("The message is delivered to %s.", q.field("channel"))
		}
		return "/board/channels", said, err
	})
}

// advice says what to do about a channel.
func (q *request) advice(x admin.Channel) string {
	detail := words.Translate(q.v.Language, x.Detail)
	switch x.Status {
	case "ready":
		return dash(detail)
	case "unconfigured":
		return strings.TrimSpace(detail + " " + q.say("Set it up with `switchboard setup`, or in config.yaml."))
	case "failed", "invalid":
		return strings.TrimSpace(detail + " " + q.say("Its page has the log, and can restart it."))
	case "disabled":
		return q.say("It is disabled. `switchboard extensions enable %s` enables it.", x.ID)
	}
	return dash(detail)
}
