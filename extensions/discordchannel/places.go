package discordchannel

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// place is a channel in which somebody talked to the assistant. It is stored, because
// what a lost session missed is read from the histories of these channels.
type place struct {
	ID     string `json:"id"`
	Server bool   `json:"server,omitempty"` // not a private chat
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"` // the channel of a thread
	// ParentName is the name of that channel.
	ParentName string `json:"parent_name,omitempty"`
	At         int64  `json:"at"` // the day of its last message that was noted, in Unix seconds
}

// conversation returns the conversation of a place, and its thread.
func (p *place) conversation() (conversation, thread string) {
	if p.Parent != "" {
		return p.Parent, p.ID
	}
	return p.ID, ""
}

// group returns the name of the group, as shown to people.
func (p *place) group() string {
	switch {
	case p.ParentName != "":
		return "#" + p.ParentName
	case p.Name != "":
		return "#" + p.Name
	}
	return ""
}

const (
	// placeAge is how long a place without messages is known.
	placeAge = 30 * 24 * time.Hour
	// placeNoted is how often its last message is noted.
	placeNoted = 24 * time.Hour
)

const placePrefix = "place/"

// places are the known channels.
type places struct {
	*activation

	mu   sync.Mutex
	byID map[string]*place
	old  map[string]bool // renamed since they were looked up
	seen map[string]bool // channels of servers, stored or not
}

func newPlaces(a *activation) *places {
	return &places{activation: a, byID: map[string]*place{}, old: map[string]bool{}, seen: map[string]bool{}}
}

// load reads the known channels of an earlier process.
func (p *places) load(ctx context.Context) error {
	var gone []sdk.Effect
	err := p.kernel.Scan(ctx, placePrefix, func(v sdk.Value) error {
		one := &place{}
		if err := v.Decode(one); err != nil || one.ID == "" || time.Since(time.Unix(one.At, 0)) > placeAge {
			gone = append(gone, sdk.Delete(v.Key))
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.byID[one.ID] = one
		return nil
	})
	if err == nil && len(gone) > 0 {
		_, err = p.kernel.Commit(ctx, gone...)
	}
	return err
}

// all returns the known channels.
func (p *places) all() []*place {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*place, 0, len(p.byID))
	for _, one := range p.byID {
		list = append(list, one)
	}
	return list
}

// server reports whether a channel is known to be one of a server.
func (p *places) server(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.byID[id]
	return p.seen[id] || one != nil && one.Server
}

// put returns the effects that store a place whose message is being stored, if they are
// due.
func (p *places) put(one *place) sdk.Effects {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byID[one.ID]; known != nil && *known == *one &&
		time.Since(time.Unix(known.At, 0)) < placeNoted {
		return nil
	}
	noted := *one
	noted.At = time.Now().Unix()
	return sdk.Effects{sdk.Put(placePrefix+one.ID, noted)}
}

// keep remembers a place that is stored.
func (p *places) keep(one *place) {
	if one == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byID[one.ID]; known == nil || *known != *one || time.Since(time.Unix(known.At, 0)) >= placeNoted {
		noted := *one
		noted.At = time.Now().Unix()
		p.byID[one.ID] = &noted
		delete(p.seen, one.ID)
	}
}

// changed has a channel looked up again at its next message.
func (p *places) changed(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID[id] != nil {
		p.old[id] = true
	}
}

// forget removes a channel that the bot can't see any more.
func (p *places) forget(ctx context.Context, id string) {
	p.mu.Lock()
	delete(p.byID, id)
	p.mu.Unlock()
	if _, err := p.kernel.Commit(ctx, sdk.Delete(placePrefix+id)); err != nil && ctx.Err() == nil {
		p.log.Warn("forget a channel", "channel", id, "error", err)
	}
}

// lookup returns the place of a channel. It asks Discord about one of a server that is
// not known yet, and fails only when ctx ends.
func (p *places) lookup(ctx context.Context, id string, server bool) (*place, error) {
	p.mu.Lock()
	known, old := p.byID[id], p.old[id]
	if server && known == nil {
		p.seen[id] = true
	}
	p.mu.Unlock()
	if known != nil && !old {
		copied := *known
		return &copied, nil
	}
	one := &place{ID: id, Server: server}
	if known != nil {
		one.At = known.At
	}
	if !server {
		return one, nil
	}
	channel, err := p.fetch(ctx, id)
	if err != nil || channel == nil {
		return one, err
	}
	one.Name = channel.Name
	if channel.Type >= firstThread && channel.Type <= lastThread && channel.ParentID != "" {
		one.Parent = channel.ParentID
		parent, err := p.fetch(ctx, channel.ParentID)
		if err != nil {
			return one, err
		}
		if parent != nil {
			one.ParentName = parent.Name
		}
	}
	p.mu.Lock()
	delete(p.old, id)
	p.mu.Unlock()
	return one, nil
}

// fetch asks Discord about a channel, with retries; nil: the bot can't see it.
func (p *places) fetch(ctx context.Context, id string) (*guildChannel, error) {
	for n := 1; ; n++ {
		channel := &guildChannel{}
		err := p.api.do(ctx, request{method: http.MethodGet, path: "/channels/" + id}, channel)
		if err == nil {
			return channel, nil
		}
		kind, after := classify(err)
		switch kind {
		case refused:
			return nil, nil //nolint:nilnil // there is none
		case badTokenKind:
			return nil, err
		case limited:
		default:
			after = pause.Backoff(n)
		}
		p.log.Debug("look up a channel", "channel", id, "error", p.api.redact(err))
		if !pause.For(ctx, after) {
			return nil, ctx.Err()
		}
	}
}

// target is the channel of a message to send: a thread, or a conversation.
type target string

// parseTarget parses a conversation and a thread.
func parseTarget(conversation, thread string) (target, error) {
	id := conversation
	if thread != "" {
		id = thread
	}
	if !isID(conversation) || !isID(id) {
		return "", fmt.Errorf("%q is not the id of a Discord channel", strings.TrimSuffix(conversation+"/"+thread, "/"))
	}
	return target(id), nil
}

// isID reports whether a text is an id of Discord.
func isID(s string) bool {
	if s == "" || len(s) > 20 {
		return false
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}
