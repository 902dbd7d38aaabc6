package discordchannel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// backlog has the messages that wait for their files, and in the same conversations those
// after them. They are in the store, so the position moves on. Conversations do not wait
// for each other.
type backlog struct {
	*activation
	ctx     context.Context
	presses *presses
	prefix  string // of the keys in the store

	mu      sync.Mutex
	lines   map[string]*line // by conversation
	running sync.WaitGroup
}

// line is the backlog of one conversation, in order.
type line struct{ waiting []*pendingMessage }

func newBacklog(ctx context.Context, a *activation, bot string, p *presses) *backlog {
	return &backlog{activation: a, ctx: ctx, presses: p, prefix: "waiting/" + bot + "/", lines: map[string]*line{}}
}

// load reads the backlog of an earlier process.
func (b *backlog) load(ctx context.Context) error {
	var found []*pendingMessage
	err := b.kernel.Scan(ctx, b.prefix, func(v sdk.Value) error {
		m := &pendingMessage{}
		if err := v.Decode(m); err != nil {
			b.log.Error("decode a message that waits for its files; skipping it", "key", v.Key, "error", err)
			return nil
		}
		found = append(found, m)
		return nil
	})
	if err == nil {
		b.add(found)
	}
	return err
}

func (b *backlog) key(m *pendingMessage) string { return fmt.Sprintf("%s%020d", b.prefix, m.Order) }

// put returns the effect that stores a message.
func (b *backlog) put(m *pendingMessage) sdk.Effect { return sdk.Put(b.key(m), m) }

// holds reports whether messages of a conversation wait.
func (b *backlog) holds(conversation string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[conversation] != nil
}

// add adds stored messages.
func (b *backlog) add(messages []*pendingMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		l := b.lines[m.conversation()]
		if l == nil {
			l = &line{}
			b.lines[m.conversation()] = l
			b.running.Go(func() { b.deliver(l) })
		}
		l.waiting = append(l.waiting, m)
	}
}

// deliver publishes the messages of a conversation.
func (b *backlog) deliver(l *line) {
	for {
		b.mu.Lock()
		next := l.waiting[0]
		b.mu.Unlock()
		if b.ctx.Err() != nil || !b.publish(next) {
			return
		}
		b.mu.Lock()
		if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
			delete(b.lines, next.conversation())
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// publish downloads the files of a message and publishes it; false: ctx has ended.
func (b *backlog) publish(m *pendingMessage) bool {
	for n := 1; ; n++ {
		if !b.fetchAll(m) {
			return false
		}
		removed := sdk.Delete(b.key(m))
		effects := b.presses.publish(m)
		results, err := b.kernel.Commit(b.ctx, append(effects, removed)...)
		if err == nil {
			b.presses.settle(b.ctx, m.Press, stateOf(results[len(effects)-1]))
		}
		if sdk.IsPermanent(err) {
			b.log.Error("store a message; skipping it", "message", m.Dedupe, "error", err)
			_, err = b.kernel.Commit(b.ctx, removed)
		}
		switch {
		case err == nil:
			return true
		case b.ctx.Err() != nil:
			return false
		case errors.Is(err, contract.ErrNotFound): // it took so long that a file is no longer stored
			forgetFiles([]*pendingMessage{m})
		}
		b.log.Warn("store a message; it is tried again", "message", m.Dedupe, "error", err)
		if !pause.For(b.ctx, pause.Backoff(n)) {
			return false
		}
	}
}

// fetchAll downloads files until each is stored or cannot be had; false: ctx has ended.
func (b *backlog) fetchAll(m *pendingMessage) bool {
	var all sync.WaitGroup
	for i := range m.Files {
		if m.Files[i].URL != "" && !m.isFetched(i) {
			all.Go(func() { b.fetchPart(m, i) })
		}
	}
	all.Wait()
	return b.ctx.Err() == nil
}

// fetchPart downloads one file of a message, with retries.
func (b *backlog) fetchPart(m *pendingMessage, i int) {
	began := time.Now()
	for n := 1; ; n++ {
		at, err := b.fetch(b.ctx, m.Files[i], m.Message.Attachments[i])
		switch {
		case err == nil:
			m.setFetched(i, at)
			return
		case b.ctx.Err() != nil:
			return
		case sdk.IsTemporary(err): // nothing is wrong at Discord
		case time.Since(began) > b.set.files.giveUp:
			b.log.Warn("a file is given up", "message", m.Dedupe, "error", b.api.redact(err))
			m.setFetched(i, unreadable(at, notReceived))
			return
		}
		b.log.Info("download a file; it is tried again", "message", m.Dedupe, "error", b.api.redact(err))
		kind, wait := classify(err)
		if kind != limited {
			wait = pause.Backoff(n)
		}
		if !pause.For(b.ctx, wait) {
			return
		}
	}
}

// fetchNow downloads the files of new messages, as far as that takes little time. It
// leaves out what must wait anyway.
func (b *backlog) fetchNow(ctx context.Context, batch []*pendingMessage) {
	if !slices.ContainsFunc(batch, (*pendingMessage).unfetched) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.set.files.budget)
	defer cancel()
	var all sync.WaitGroup
	for _, m := range batch {
		for i := range m.Files {
			if m.Files[i].URL == "" || m.isFetched(i) || b.holds(m.conversation()) {
				continue
			}
			all.Go(func() {
				if at, err := b.fetch(ctx, m.Files[i], m.Message.Attachments[i]); err == nil {
					m.setFetched(i, at)
				}
			})
		}
	}
	all.Wait()
}

// forgetFiles drops what was downloaded.
func forgetFiles(messages []*pendingMessage) {
	for _, m := range messages {
		m.fetched = nil
	}
}

// pendingMessage is a message to publish.
type pendingMessage struct {
	Order   int64                `json:"order"`
	Dedupe  string               `json:"dedupe"`
	Message contract.UserMessage `json:"message"`
	Files   []remoteFile         `json:"files,omitempty"` // of its attachments

	Press *press `json:"press,omitempty"`

	place  *place
	also   sdk.Effects       // committed when it is stored
	stored func(storedState) // called then; may be nil

	mu      sync.Mutex
	fetched map[int]*contract.Attachment // after the download
}

func (m *pendingMessage) conversation() string {
	return m.Message.ConversationID + "/" + m.Message.ThreadID
}

func (m *pendingMessage) isFetched(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fetched[i] != nil
}

func (m *pendingMessage) setFetched(i int, at contract.Attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fetched == nil {
		m.fetched = map[int]*contract.Attachment{}
	}
	m.fetched[i] = &at
}

func (m *pendingMessage) unfetched() bool {
	for i, f := range m.Files {
		if f.URL != "" && !m.isFetched(i) {
			return true
		}
	}
	return false
}

// effect publishes the message.
func (m *pendingMessage) effect() sdk.Effect {
	said := m.Message
	said.Attachments = slices.Clone(said.Attachments)
	for i := range said.Attachments {
		if m.isFetched(i) {
			said.Attachments[i] = *m.fetched[i]
		}
	}
	return sdk.Publish(contract.TopicUserMessage, said, sdk.Dedupe(m.Dedupe)).
		Keep(contract.BlobsOf(said.Attachments)...)
}
