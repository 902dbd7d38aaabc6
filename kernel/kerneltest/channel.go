package kerneltest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Channel is a channel that the test plays. A person's private conversation has
// the person's name as its address.
type Channel struct {
	*Extension
	ID string

	messages int
	receipts int
}

// Channel returns a channel that is ready and admits nobody.
func (w *World) Channel(id string) *Channel {
	w.T.Helper()
	c := &Channel{ID: id}
	c.Extension = w.Extension(
		bus.Actor{ID: id, Publish: []string{contract.TopicUserMessage}, Channel: true},
		bus.Subscription{
			Pattern:    contract.TopicChannelSend + id,
			Ordered:    true,
			AckWait:    time.Minute,
			MaxDeliver: 3,
			MaxAge:     7 * 24 * time.Hour,
		},
	)
	w.Know(func(s *directory.Snapshot) {
		s.Channels = append(
			s.Channels,
			directory.Channel{ID: id, Name: strings.ToUpper(id[:1]) + id[1:], State: contract.StateActive, Readiness: ready()},
		)
	})
	return c
}

func ready() *extensionv1.Readiness {
	return &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY}
}

// Dedupes has the platform drop repetitions for a while.
func (c *Channel) Dedupes(d time.Duration) {
	c.w.T.Helper()
	c.subscribes(func(s *bus.Subscription) { s.Dedupe = d })
}

// Holds has sends that people may see twice die instead.
func (c *Channel) Holds() {
	c.w.T.Helper()
	c.subscribes(func(s *bus.Subscription) { s.Hold = true })
}

func (c *Channel) subscribes(change func(*bus.Subscription)) {
	c.w.T.Helper()
	subs := c.w.subscribed[c.ID]
	change(&subs[0])
	if err := c.w.Bus.Subscribe(c.ID, subs); err != nil {
		c.w.T.Fatal(err)
	}
}

// Change changes what the kernel knows of the channel.
func (c *Channel) Change(change func(*directory.Channel)) {
	c.w.Know(func(s *directory.Snapshot) {
		i := slices.IndexFunc(s.Channels, func(x directory.Channel) bool { return x.ID == c.ID })
		change(&s.Channels[i])
	})
	c.w.Settle()
}

// Admits admits people by name; "*" is everyone.
func (c *Channel) Admits(people ...string) {
	c.Change(func(d *directory.Channel) { d.AllowFrom = people })
}

// Becomes changes the readiness.
func (c *Channel) Becomes(state extensionv1.Readiness_State, detail string) {
	c.Change(func(d *directory.Channel) { d.Readiness = &extensionv1.Readiness{State: state, Detail: detail} })
}

// GoesOffline makes the channel unable to send for a while.
func (c *Channel) GoesOffline() {
	c.Becomes(extensionv1.Readiness_STATE_OFFLINE, "the network is down")
}

// IsUnconfigured takes the channel's set-up away.
func (c *Channel) IsUnconfigured() {
	c.Becomes(extensionv1.Readiness_STATE_UNCONFIGURED, "set TOKEN in the environment")
}

// IsBack makes the channel ready.
func (c *Channel) IsBack() { c.Becomes(extensionv1.Readiness_STATE_READY, "") }

// Says reports a private message of a person and returns its id.
func (c *Channel) Says(person, text string) (message string) {
	c.w.T.Helper()
	return c.Reports(contract.UserMessage{UserID: person, UserName: person, ConversationID: person, Text: text})
}

// Reports reports any message.
func (c *Channel) Reports(m contract.UserMessage) (message string) {
	c.w.T.Helper()
	if m.MessageID == "" {
		c.messages++
		m.MessageID = fmt.Sprintf("m%d", c.messages)
	}
	c.Must("", Publish(contract.TopicUserMessage, m))
	return m.MessageID
}

// Edits reports that a person has changed an earlier message.
func (c *Channel) Edits(person, message, text string) {
	c.w.T.Helper()
	c.Reports(
		contract.UserMessage{
			UserID:         person,
			UserName:       person,
			ConversationID: person,
			Text:           text,
			MessageID:      message,
			Edited:         true,
		},
	)
}

// Sends takes everything that the channel has to send, in order, and confirms
// each.
func (c *Channel) Sends() (all []contract.ChannelSend) {
	c.w.T.Helper()
	for d := c.Next(); d != nil; d = c.Next() {
		all = append(all, c.Confirms(d))
	}
	return all
}

// Confirms acknowledges a send with a receipt. What names no conversation is
// shown to the owner.
func (c *Channel) Confirms(d *busv1.Delivery) contract.ChannelSend {
	c.w.T.Helper()
	m := Decode[contract.ChannelSend](c.w.T, d.GetEvent())
	c.receipts++
	address := m.Conversation
	if address == "" {
		address = m.Owner
	}
	c.Acks(d, Receipt(fmt.Sprintf("r%d", c.receipts), address, m.Thread))
	return m
}

// Receipt is the effect that says what the platform said.
func Receipt(id, conversation, thread string) *busv1.Effect {
	return &busv1.Effect{
		Kind: &busv1.Effect_Receipt{Receipt: &busv1.Receipt{ProviderId: id, Conversation: conversation, Thread: thread}},
	}
}

// Shows confirms everything that the channel has to send and compares it: each
// is "address: text", with "address/thread" in a thread.
func (c *Channel) Shows(want ...string) {
	c.w.T.Helper()
	got := []string{}
	for _, m := range c.Sends() {
		address := m.Conversation
		if m.Thread != "" {
			address += "/" + m.Thread
		}
		got = append(got, address+": "+m.Text)
	}
	if !slices.Equal(got, want) {
		c.w.T.Fatalf("%s shows\n\t%s\nwant\n\t%s", c.ID, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// ShowsOne confirms everything that the channel has to send, which is one text
// with all the words in it, and returns it.
func (c *Channel) ShowsOne(words ...string) contract.ChannelSend {
	c.w.T.Helper()
	all := c.Sends()
	if len(all) != 1 {
		c.w.T.Fatalf("%s shows %d texts, want one: %+v", c.ID, len(all), all)
	}
	for _, word := range words {
		if !strings.Contains(all[0].Text, word) {
			c.w.T.Fatalf("%s shows %q, want %q in it", c.ID, all[0].Text, word)
		}
	}
	return all[0]
}

// IsSilent says that the channel has nothing to send.
func (c *Channel) IsSilent() {
	c.w.T.Helper()
	c.Shows()
}
