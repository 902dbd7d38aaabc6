package board

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	deadPath  = "/board/deadletters"
	deadShown = 100
)

// deadLetters shows the deliveries that failed for good.
func (b *board) deadLetters(mux *http.ServeMux) {
	b.page(mux, deadPath, owners, door.ScopeAdmin, func(q *request) (*sheet, error) {
		all, err := admin.DeadLetters(q.Context(), b.Read, deadShown)
		if err != nil {
			return nil, err
		}
		t := &table{
			Head: []string{
				q.say("What"), q.say("For"), q.say("Died"), q.say("Attempts"), q.say("Why"),
			},
			Empty: q.say("There are no dead letters: everything that was to be delivered arrived, or still waits."),
		}
		for _, l := range all {
			e, d := l.Event, l.Delivery
			t.Rows = append(t.Rows, row{
				Cells: []cell{
					{
						Text: preview(e.GetPayload()), Sub: e.GetId() + " · " + e.GetTopic(),
						Href: "/trace/" + url.PathEscape(e.GetId()),
					},
					text(d.GetExtension()), q.at(d.GetSettledAtUs()), text(fmt.Sprint(d.GetAttempts())),
					text(q.translate(d.GetReason())),
				},
				Forms: []form{{
					Action: deadPath + "/resubmit", Label: q.say("Deliver again"), Hidden: []hidden{{"event", e.GetId()}},
					Question: q.again(d),
				}},
			})
		}
		return &sheet{Title: q.say("Dead letters"), Blocks: []block{{
			Text: []string{q.say("These deliveries failed for good: there was no recipient, or it did not accept them in " +
				"time. They are kept for a while (retention.dead in config.yaml).")},
			Table: t,
		}}}, nil
	})
	b.change(mux, deadPath+"/resubmit", owners, door.ScopeAdmin, func(q *request) (string, string, error) {
		out, err := b.Manage.Resubmit(q.Context(), &adminv1.ResubmitRequest{Event: q.field("event")})
		n := int(out.GetDeliveries())
		return deadPath, words.Count(q.v.Language, "%d delivery of %s is queued again.",
			"%d deliveries of %s are queued again.", n, n, q.field("event")), err
	})
}

// again asks before a delivery that may have had its effect.
func (q *request) again(d *adminv1.Delivery) string {
	if d.GetUncertain() {
		return q.say("An earlier attempt may have succeeded: it may arrive twice. Deliver it again?")
	}
	return ""
}

// preview returns the text of a payload.
func preview(payload []byte) string {
	var p map[string]any
	if json.Unmarshal(payload, &p) == nil {
		for _, field := range []string{"text", "prompt", "message", "reason", "detail"} {
			if s, ok := p[field].(string); ok && s != "" {
				return shorten(s, 120)
			}
		}
	}
	return shorten(strings.ToValidUTF8(string(payload), "\uFFFD"), 120)
}
