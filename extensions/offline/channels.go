package offline

import (
	"encoding/json"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// channel is one entry of list_channels.
type channel struct {
	ID        string `json:"id"`
	ChannelID string `json:"channel_id"`
	Name      string `json:"name"`
	Readiness any    `json:"readiness"`
	Status    string `json:"status"`
	Detail    string `json:"detail"`
}

// readiness is the state of the channel in one word, "" if unknown.
func (c channel) readiness() string {
	switch r := c.Readiness.(type) {
	case string:
		return r
	case map[string]any:
		if s, ok := r["state"].(string); ok {
			return s
		}
	}
	return c.Status
}

func (c channel) title() string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}

// channelLine matches an entry of a list for people: id (Name).
var channelLine = pattern.New(`([a-z][a-z0-9_]*) \(([^)]+)\)`)

// readChannels reads the result of list_channels: an array of objects, an object
// with such an array, or lines of text.
func readChannels(result string) []channel {
	var list []channel
	raw := []byte(strings.TrimSpace(result))
	if json.Unmarshal(raw, &list) != nil {
		var object struct {
			Channels []channel `json:"channels"`
		}
		if json.Unmarshal(raw, &object) == nil {
			list = object.Channels
		} else {
			for _, m := range channelLine.FindAllStringSubmatch(result, -1) {
				list = append(list, channel{ID: m[1], Name: m[2]})
			}
		}
	}
	known := list[:0]
	for _, c := range list {
		if c.ID == "" {
			c.ID = c.ChannelID
		}
		if c.ID != "" {
			known = append(known, c)
		}
	}
	return known
}

// known returns the channels that list_channels has returned in this turn.
func (d dialog) known() []channel {
	s, ok := d.last(listChannels)
	if !ok || s.failed {
		return nil
	}
	return readChannels(s.result)
}

func (d dialog) channelNames() []string {
	var names []string
	for _, c := range d.known() {
		names = append(names, c.ID, c.Name)
	}
	return names
}

// titleOf returns the name of a channel for people.
func (d dialog) titleOf(id string) string {
	for _, c := range d.known() {
		if c.ID == id {
			return c.title()
		}
	}
	return id
}

// find finds the channel that the person named. If done is set, it returns the
// reply to give first: a call of list_channels, or the reason that there is not
// one such channel.
func (d dialog) find(w phrases, said string) (id string, instead reply, done bool) {
	s, ok := d.last(listChannels)
	switch {
	case !ok:
		return "", d.call(w, listChannels, struct{}{}), true
	case s.failed:
		return "", say(w.failed(s.result)), true
	}
	var found []channel
	all := readChannels(s.result)
	for _, c := range all {
		if c.ID == said {
			return c.ID, reply{}, false
		}
		if grammar.SameChannel(said, c.ID, c.Name) {
			found = append(found, c)
		}
	}
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	switch len(found) {
	case 1:
		return found[0].ID, reply{}, false
	case 0:
		return "", say(w.text("no_channel_called", said) + " " + w.channelList(all)), true
	}
	return "", say(w.text("which_channel", said, strings.Join(ids, ", "))), true
}

// channels lists the channels.
func (d dialog) channels(w phrases) reply {
	s, ok := d.last(listChannels)
	switch {
	case !ok:
		return d.call(w, listChannels, struct{}{})
	case s.failed:
		return say(w.failed(s.result))
	}
	return say(w.channelList(readChannels(s.result)))
}

// send sends a message now.
func (d dialog) send(w phrases, i grammar.Intent) reply {
	if i.All {
		return d.call(w, sendToAll, map[string]any{"text": i.Text})
	}
	id, instead, done := d.find(w, i.Channel)
	if done {
		return instead
	}
	return d.call(w, sendToChannel, map[string]any{"channel_id": id, "text": i.Text})
}

// delivery is the result of sending to one channel.
type delivery struct {
	Status    string `json:"status"` // delivered, queued, failed
	ChannelID string `json:"channel_id"`
	Detail    string `json:"detail"`
}

// deliveries reads the result of a sending tool: one delivery, or several under
// "sent". From a result in another form it reads only the status.
func deliveries(result string) []delivery {
	var object struct {
		delivery
		Sent []delivery `json:"sent"`
	}
	if json.Unmarshal([]byte(result), &object) == nil {
		if len(object.Sent) > 0 {
			return object.Sent
		}
		if object.Status != "" {
			return []delivery{object.delivery}
		}
	}
	return []delivery{{Status: status(result)}}
}

// sent reports the result of a send for each channel.
func (d dialog) sent(w phrases, s step) string {
	var arguments struct {
		ChannelID string `json:"channel_id"`
	}
	_ = json.Unmarshal(s.arguments, &arguments) // written by this package; may lack a channel
	all := deliveries(s.result)
	if s.failed && all[0].ChannelID == "" {
		return w.failed(s.result)
	}
	lines := make([]string, len(all))
	for i, one := range all {
		if one.ChannelID == "" {
			one.ChannelID = arguments.ChannelID
		}
		lines[i] = w.sent(d.titleOf(one.ChannelID), one)
	}
	return strings.Join(lines, "\n")
}

// status returns the status in a tool's result, "" if it has none.
func status(result string) string {
	var object struct {
		Status string `json:"status"`
	}
	if json.Unmarshal([]byte(result), &object) == nil && object.Status != "" {
		return object.Status
	}
	lower := strings.ToLower(result)
	for _, word := range []string{"queued", "delivered"} {
		if strings.Contains(lower, word) {
			return word
		}
	}
	return ""
}
