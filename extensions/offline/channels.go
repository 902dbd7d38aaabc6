package offline

import (
	"encoding/json"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
)

// channel is one entry of list_channels.
type channel struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Readiness string `json:"readiness"`
	Detail    string `json:"detail"`
}

func (c channel) title() string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}

// readChannels reads the result of list_channels.
func readChannels(result string) []channel {
	var list struct {
		Channels []channel `json:"channels"`
	}
	_ = json.Unmarshal([]byte(result), &list) // a result in another form has no channels
	return list.Channels
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
	s, instead, done := d.ask(w, listChannels, struct{}{})
	if done {
		return "", instead, true
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
	s, instead, done := d.ask(w, listChannels, struct{}{})
	if done {
		return instead
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

// deliveries reads the result of a sending tool: one delivery, or several.
func deliveries(result string) []delivery {
	var object struct {
		delivery
		Sent []delivery `json:"sent"`
	}
	if json.Unmarshal([]byte(result), &object) == nil && len(object.Sent) > 0 {
		return object.Sent
	}
	return []delivery{object.delivery}
}

// sent reports the result of a send for each channel.
func (d dialog) sent(w phrases, s step) string {
	var arguments struct {
		ChannelID string `json:"channel_id"`
	}
	_ = json.Unmarshal(s.arguments, &arguments) // written by this package; may lack a channel
	all := deliveries(s.result)
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
func status(result string) string { return deliveries(result)[0].Status }
