package agent

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxPromptAge is how long a turn uses the same system prompt.
const maxPromptAge = time.Minute

// systemCache caches the system prompts of one second: under load many turns need
// the same one.
type systemCache struct {
	mu     sync.Mutex
	second int64
	texts  map[promptKey]string
}

// promptKey identifies a system prompt. Tools and channels are replaced, never
// changed, so their addresses identify them.
type promptKey struct {
	zone     string
	persona  string
	channel  Channel
	group    bool
	tools    *toolset
	channels *Channel
}

// get returns the prompt of a key and renders it if necessary, usually once per
// second.
func (c *systemCache) get(second int64, key promptKey, render func() (string, error)) (string, error) {
	c.mu.Lock()
	if c.second != second {
		c.second, c.texts = second, map[promptKey]string{}
	}
	text, known := c.texts[key]
	c.mu.Unlock()
	if known {
		return text, nil
	}
	text, err := render()
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second == second {
		c.texts[key] = text
	}
	return text, nil
}

// compose renders the system prompt if it is older than maxPromptAge.
func (t *turn) compose() error {
	now := time.Now()
	if t.system != "" && now.Sub(t.systemAt) < maxPromptAge {
		return nil
	}
	scene := t.scene(now)
	key := promptKey{
		zone: scene.Zone, persona: scene.Instructions, channel: scene.Channel, group: scene.Group,
		tools: t.tools.toolset,
	}
	if len(t.channels) > 0 {
		key.channels = &t.channels[0]
	}
	system, err := t.a.systems.get(now.Unix(), key, func() (string, error) { return t.a.prompts.System(scene) })
	if err != nil {
		return fmt.Errorf("render the system prompt of %s: %w", t.a.name, err)
	}
	t.system, t.systemAt = strings.TrimSpace(system), now
	return nil
}

func (t *turn) scene(now time.Time) Scene {
	s := Scene{
		Name: t.a.name, Instructions: t.a.persona, Group: t.context.GetGroup(), Channels: t.channels,
		Now: now.In(t.zone), Zone: t.zone.String(), tools: t.tools.toolset,
	}
	if t.persona != nil {
		s.Instructions = *t.persona
	}
	id := t.context.GetChannel()
	if id == "" {
		return s
	}
	s.Channel = Channel{ID: id, Name: t.context.GetChannelName()}
	for _, c := range t.channels {
		if c.ID == id {
			s.Channel = c
		}
	}
	if s.Channel.Name == "" {
		s.Channel.Name = id
	}
	return s
}
