package slackchannel

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

const (
	maxNames = 4096
	nameAge  = time.Hour
)

// names looks up people, conversations and messages, and remembers them for an hour. What
// cannot be found in time has its id as its name.
type names struct {
	api *api
	bot string

	mu            sync.Mutex
	people        remembered[person]
	conversations remembered[string]
	messages      remembered[earlier]
}

type person struct{ name, language string }

// earlier is a message that another one refers to.
type earlier struct{ user, name, text, thread string }

func newNames(a *api, bot string) *names {
	return &names{api: a, bot: bot, people: remembered[person]{}, conversations: remembered[string]{},
		messages: remembered[earlier]{}}
}

// remembered are values with the time of their look-up.
type remembered[V any] map[string]struct {
	value V
	at    time.Time
}

// recall returns a value, or looks it up; mu guards the map.
func recall[V any](mu *sync.Mutex, all remembered[V], key string, lookUp func() (V, error)) (V, bool) {
	mu.Lock()
	known, ok := all[key]
	mu.Unlock()
	if ok && time.Since(known.at) < nameAge {
		return known.value, true
	}
	v, err := lookUp()
	if err != nil {
		return known.value, ok
	}
	mu.Lock()
	defer mu.Unlock()
	if len(all) >= maxNames {
		clear(all)
	}
	known.value, known.at = v, time.Now()
	all[key] = known
	return v, true
}

// person returns the name and the language of a person.
func (n *names) person(ctx context.Context, id string) person {
	p, ok := recall(&n.mu, n.people, id, func() (person, error) {
		u, err := n.api.GetUserInfoContext(ctx, id, slack.GetUserInfoOptionIncludeLocale(true))
		if err != nil {
			return person{}, err
		}
		return person{name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Name, id), language: languageOf(u.Locale)}, nil
	})
	if !ok {
		return person{name: id}
	}
	return p
}

// conversation returns the name of a channel.
func (n *names) conversation(ctx context.Context, id string) string {
	name, _ := recall(&n.mu, n.conversations, id, func() (string, error) {
		c, err := n.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
		if err != nil {
			return "", err
		}
		if c.Name == "" || c.IsMpIM {
			return c.Name, nil
		}
		return "#" + c.Name, nil
	})
	return name
}

// message returns a message of a conversation; false: it is not known.
func (n *names) message(ctx context.Context, channel, ts string) (earlier, bool) {
	return recall(&n.mu, n.messages, channel+"/"+ts, func() (earlier, error) {
		found, _, _, err := n.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: channel, Timestamp: ts, Limit: 1, Inclusive: true,
		})
		if err != nil {
			return earlier{}, err
		}
		for _, m := range found {
			if m.Timestamp != ts {
				continue
			}
			e := earlier{user: m.User, text: n.readable(ctx, m.Text)}
			if m.ThreadTimestamp != ts {
				e.thread = m.ThreadTimestamp
			}
			if m.User != n.bot {
				e.name = n.person(ctx, m.User).name
			}
			return e, nil
		}
		return earlier{}, errNoMessage
	})
}
