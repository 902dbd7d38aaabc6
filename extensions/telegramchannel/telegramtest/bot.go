package telegramtest

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Command is one entry of a bot's command menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// bot is one bot: its identity, menu and queue of updates.
type bot struct {
	user User

	mu        sync.Mutex
	queue     []update
	nextID    int64
	confirmed int64 // highest offset of a getUpdates call
	allowed   []string
	wake      chan struct{}        // closed, and replaced, when the queue grows
	polling   chan struct{}        // closed when another getUpdates begins
	commands  map[string][]Command // by language; the others see those of ""
	webhook   string
}

type update struct {
	id     int64
	kind   string
	body   json.RawMessage
	forced bool // returned once, for any offset
}

// ask holds the parameters of a getUpdates call.
type ask struct {
	offset  int64
	limit   int
	timeout time.Duration
	allowed []string
}

func newBot(token, username string) *bot {
	head, _, _ := strings.Cut(token, ":")
	id, _ := strconv.ParseInt(head, 10, 64)
	return &bot{
		user:   User{ID: id, IsBot: true, FirstName: "Switchboard", Username: username},
		nextID: 500_000_000 + id%1000*1_000_000,
		wake:   make(chan struct{}),
	}
}

func (b *bot) me() any {
	return struct {
		User
		CanJoinGroups bool `json:"can_join_groups"`
		CanReadAll    bool `json:"can_read_all_group_messages"`
		Inline        bool `json:"supports_inline_queries"`
	}{User: b.user, CanJoinGroups: true}
}

// add queues an update of the kind (message, edited_message, ...) and returns its id.
func (b *bot) add(kind string, content any) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nextID++
	id := b.nextID
	if len(b.allowed) > 0 && !slices.Contains(b.allowed, kind) {
		return id
	}
	b.push(update{id: id, kind: kind, body: encodeUpdate(id, kind, content)})
	return id
}

func encodeUpdate(id int64, kind string, content any) json.RawMessage {
	body, err := json.Marshal(map[string]any{"update_id": id, kind: content})
	if err != nil {
		panic("telegramtest: update does not encode: " + err.Error())
	}
	return body
}

// push appends to the queue. The caller holds mu.
func (b *bot) push(u update) {
	b.queue = append(b.queue, u)
	close(b.wake)
	b.wake = make(chan struct{})
}

// poll waits for updates; confirmed is called once the offset has taken effect.
func (b *bot) poll(ctx context.Context, a ask, confirmed func()) ([]json.RawMessage, *apiError) {
	mine := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.webhook != "" {
		return nil, conflict("can't use getUpdates method while webhook is active; " +
			"use deleteWebhook to delete the webhook first")
	}
	if b.polling != nil {
		close(b.polling)
	}
	b.polling = mine
	defer func() {
		if b.polling == mine {
			b.polling = nil
		}
	}()
	if a.allowed != nil {
		b.allowed = a.allowed
	}
	b.confirm(a.offset)
	confirmed()
	timer := time.NewTimer(a.timeout)
	defer timer.Stop()
	for waiting := a.timeout > 0; ; {
		if got := b.take(a.limit); len(got) > 0 || !waiting {
			return got, nil
		}
		wake := b.wake
		b.mu.Unlock()
		select {
		case <-wake:
		case <-timer.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-mine:
			b.mu.Lock()
			return nil, conflict("terminated by other getUpdates request; make sure that only one bot instance is running")
		}
		b.mu.Lock()
		if ctx.Err() != nil {
			return nil, conflict("the poll was abandoned")
		}
	}
}

// confirm removes the updates that an offset confirms. The caller holds mu.
func (b *bot) confirm(offset int64) {
	switch {
	case offset > 0:
		b.confirmed = max(b.confirmed, offset)
		b.queue = slices.DeleteFunc(b.queue, func(u update) bool { return u.id < offset && !u.forced })
	case offset < 0:
		b.queue = b.queue[max(0, len(b.queue)+int(offset)):]
	}
}

// take copies up to limit updates; forced ones leave the queue. The caller holds mu.
func (b *bot) take(limit int) []json.RawMessage {
	got := make([]json.RawMessage, 0, min(limit, len(b.queue)))
	forced := false
	for _, u := range b.queue[:min(limit, len(b.queue))] {
		got = append(got, u.body)
		forced = forced || u.forced
	}
	if forced {
		n := 0
		b.queue = slices.DeleteFunc(b.queue, func(u update) bool { n++; return n <= limit && u.forced })
	}
	return got
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (b *bot) setCommands(p params) (any, *apiError) {
	var list []Command
	if err := p.json("commands", &list); err != nil {
		return nil, badRequest("can't parse commands list JSON object")
	}
	if len(list) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range list {
		switch n := utf16Len(c.Description); {
		case !commandName.MatchString(c.Command):
			return nil, badRequest("BOT_COMMAND_INVALID")
		case n < 1 || n > 256:
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	b.mu.Lock()
	if b.commands == nil {
		b.commands = map[string][]Command{}
	}
	b.commands[p["language_code"]] = list
	b.mu.Unlock()
	return true, nil
}

func (b *bot) myCommands(language string) []Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, ok := b.commands[language]
	if !ok {
		list = b.commands[""]
	}
	return append([]Command{}, list...)
}

func (b *bot) setWebhook(url string) (any, *apiError) {
	if url != "" && !strings.HasPrefix(url, "https://") {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.webhook = url
	if url != "" && b.polling != nil {
		close(b.polling)
		b.polling = nil
	}
	return true, nil
}

func (b *bot) webhookInfo() any {
	b.mu.Lock()
	defer b.mu.Unlock()
	return map[string]any{"url": b.webhook, "has_custom_certificate": false, "pending_update_count": len(b.queue)}
}

// pending returns the ids of unconfirmed updates, ascending.
func (b *bot) pending() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]int64, 0, len(b.queue))
	for _, u := range b.queue {
		ids = append(ids, u.id)
	}
	slices.SortFunc(ids, cmp.Compare[int64])
	return ids
}
