package router

import (
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
)

// roomBesideMark is the longest text that fits a channel's limit with a mark, which
// is on a line of its own before Markdown that must begin a line. No language has a
// longer mark than English.
func roomBesideMark(limit int) int {
	if limit < contract.MinChannelLength {
		return limit
	}
	return limit - units(contract.RepeatMark) - 1
}

// marked returns a channel.send whose text begins with the mark of a repetition. It
// fits the limit of the channel.
func (r *MessageRouter) marked(channel string, e *busv1.Event) *busv1.Event {
	limit := 0 // there is none
	if c := r.directory.Current().Channel(channel); c != nil {
		limit = c.MaxLength
	}
	var m contract.ChannelSend
	if json.Unmarshal(e.GetPayload(), &m) != nil || m.Text == "" {
		return e
	}
	m.Text, m.Unmarked = mark(m.Text, limit, m.Language), m.Text
	payload, err := json.Marshal(m)
	if err != nil {
		return e
	}
	e = proto.CloneOf(e)
	e.Payload = payload
	return e
}

func mark(text string, limit int, language string) string {
	sign := words.Say(language, strings.TrimSpace(contract.RepeatMark))
	const more = "\n…"
	if limit > 0 && units(text) > roomBesideMark(limit) { // the limit was lowered after the text was split
		text = Split(text, max(roomBesideMark(limit)-units(more), 1))[0] + more
	}
	if strings.ContainsAny(text[:min(len(text), 1)], "`~#>|*-+=_:0123456789 \t\n") {
		return sign + "\n\n" + text
	}
	return sign + " " + text
}
