package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

const (
	maxAlbum = 10 // parts
	// goneTries is how often a file that may be gone is tried.
	goneTries = 3
)

// backlog has the messages that wait for their files, or for the rest of their album, and
// in the same conversations those after them. They are in the store, so the poll goes on
// without them. Conversations do not wait for each other.
type backlog struct {
	*activation
	ctx     context.Context
	presses *presses
	prefix  string // of the keys in the store

	mu      sync.Mutex
	lines   map[string]*line // by conversation
	paused  bool             // earlier messages are held
	running sync.WaitGroup
}

// line is the backlog of one conversation, in order.
type line struct {
	waiting []*pendingMessage
	busy    bool          // deliver runs
	moved   chan struct{} // tells deliver that a message was added
}

func newBacklog(ctx context.Context, a *activation, p *presses) *backlog {
	return &backlog{
		activation: a, ctx: ctx, presses: p, prefix: fmt.Sprintf("waiting/%d/", p.bot), lines: map[string]*line{},
	}
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

func (b *backlog) key(m *pendingMessage) string { return fmt.Sprintf("%s%020d", b.prefix, m.Update) }

// put returns the effect that stores a message.
func (b *backlog) put(m *pendingMessage) sdk.Effect { return sdk.Put(b.key(m), m) }

// holds reports whether messages of a conversation wait.
func (b *backlog) holds(conversation string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[conversation] != nil
}

// hasAlbum reports whether a part of an album waits.
func (b *backlog) hasAlbum(m *pendingMessage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[m.conversation()]
	return l != nil && slices.ContainsFunc(l.waiting, func(other *pendingMessage) bool { return other.Album == m.Album })
}

// add adds stored messages.
func (b *backlog) add(messages []*pendingMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		l := b.lines[m.conversation()]
		if l == nil {
			l = &line{moved: make(chan struct{}, 1)}
			b.lines[m.conversation()] = l
		}
		if slices.ContainsFunc(l.waiting, func(other *pendingMessage) bool { return other.Update == m.Update }) {
			continue // the update was repeated
		}
		m.arrived = time.Now()
		l.waiting = append(l.waiting, m)
		select {
		case l.moved <- struct{}{}:
		default:
		}
		b.start(l)
	}
}

// pause stops delivery after the messages that are being delivered, or lets it go on.
func (b *backlog) pause(paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused == paused {
		return
	}
	b.paused = paused
	for _, l := range b.lines {
		b.start(l)
	}
}

// start runs deliver, unless it runs; mu is held.
func (b *backlog) start(l *line) {
	if !l.busy && !b.paused {
		l.busy = true
		b.running.Go(func() { b.deliver(l) })
	}
}

// deliver publishes the messages of a conversation.
func (b *backlog) deliver(l *line) {
	for {
		b.mu.Lock()
		if b.paused || b.ctx.Err() != nil {
			l.busy = false
			b.mu.Unlock()
			return
		}
		next, wait := l.next(b.set.files.albumQuiet)
		b.mu.Unlock()
		if wait > 0 {
			if !pause.Until(b.ctx, wait, l.moved) {
				return
			}
			continue
		}
		if !b.publish(next) {
			return
		}
		b.mu.Lock()
		if l.waiting = l.waiting[len(next):]; len(l.waiting) == 0 {
			delete(b.lines, next[0].conversation())
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// next returns the next message, or the parts of an album; with wait, they may not be all.
func (l *line) next(quiet time.Duration) (parts []*pendingMessage, wait time.Duration) {
	n, album := 1, l.waiting[0].Album
	if album == "" {
		return l.waiting[:1], 0
	}
	for n < min(len(l.waiting), maxAlbum) && l.waiting[n].Album == album {
		n++
	}
	if n == len(l.waiting) && n < maxAlbum {
		wait = quiet - time.Since(l.waiting[n-1].arrived)
	}
	return l.waiting[:n], wait
}

// publish downloads the files of the parts of a message and publishes it; false: ctx has
// ended.
func (b *backlog) publish(parts []*pendingMessage) bool {
	for n := 1; ; n++ {
		if !b.fetchAll(parts) {
			return false
		}
		message := []*pendingMessage{merge(parts)}
		var removed sdk.Effects
		for _, m := range parts {
			removed = append(removed, sdk.Delete(b.key(m)))
		}
		results, err := b.kernel.Commit(b.ctx, append(b.presses.publish(message), removed...)...)
		if err == nil {
			b.presses.published(b.ctx, message, results)
		}
		if sdk.IsPermanent(err) {
			b.log.Error("store a message; skipping it", "message", parts[0].Dedupe, "error", err)
			_, err = b.kernel.Commit(b.ctx, removed...)
		}
		switch {
		case err == nil:
			return true
		case b.ctx.Err() != nil:
			return false
		case errors.Is(err, contract.ErrNotFound): // it took so long that a file is no longer stored
			forget(parts)
		}
		b.log.Warn("store a message; it is tried again", "message", parts[0].Dedupe, "error", err)
		if !pause.For(b.ctx, pause.Backoff(n)) {
			return false
		}
	}
}

// fetchAll downloads files until each is stored or cannot be had; false: ctx has ended.
func (b *backlog) fetchAll(parts []*pendingMessage) bool {
	var all sync.WaitGroup
	for _, m := range parts {
		if m.unfetched() {
			all.Go(func() { b.fetchPart(m) })
		}
	}
	all.Wait()
	return b.ctx.Err() == nil
}

// fetchPart downloads the file of a message, with retries.
func (b *backlog) fetchPart(m *pendingMessage) {
	for n := 1; ; n++ {
		at, err := b.fetch(b.ctx, m.File, m.Message.Attachments[0])
		switch {
		case err == nil:
			m.stored = &at
			return
		case b.ctx.Err() != nil:
			return
		case isMaybeGone(err) && n < goneTries:
		case isMaybeGone(err):
			at = unreadable(at, gone)
			m.stored = &at
			return
		case !sdk.IsTemporary(err) && time.Since(m.arrived) > b.set.files.giveUp:
			b.log.Warn("a file of a message was not downloaded", "message", m.Dedupe, "error", b.api.redact(err))
			at = unreadable(at, notReceived)
			m.stored = &at
			return
		}
		b.log.Debug("download a file; it is tried again", "message", m.Dedupe, "error", b.api.redact(err))
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
func (b *backlog) fetchNow(ctx context.Context, batch []update) {
	ctx, cancel := context.WithTimeout(ctx, b.set.files.budget)
	defer cancel()
	var all sync.WaitGroup
	for _, one := range batch {
		for _, m := range one.reports {
			if !m.unfetched() || m.Album != "" || b.holds(m.conversation()) {
				continue
			}
			all.Go(func() {
				if at, err := b.fetch(ctx, m.File, m.Message.Attachments[0]); err == nil {
					m.stored = &at
				}
			})
		}
	}
	all.Wait()
}

// forget drops what was downloaded.
func forget(messages []*pendingMessage) {
	for _, m := range messages {
		m.stored = nil
	}
}

// pendingMessage is a message to publish. In Telegram a message has at most one file; those
// of an album are messages of their own.
type pendingMessage struct {
	Update  int64                `json:"update,omitempty"`
	Dedupe  string               `json:"dedupe"`
	Message contract.UserMessage `json:"message"`
	File    remoteFile           `json:"file,omitzero"`
	Album   string               `json:"album,omitempty"` // that it is a part of
	Press   *press               `json:"press,omitempty"` // nil: it was typed

	unaddressed bool                 // a part of an album in a group; another part may be for the bot
	stored      *contract.Attachment // after the download
	arrived     time.Time
}

func (m *pendingMessage) conversation() string {
	return m.Message.ConversationID + "/" + m.Message.ThreadID
}

func (m *pendingMessage) unfetched() bool { return m.File.ID != "" && m.stored == nil }

func (m *pendingMessage) attachments() []contract.Attachment {
	if m.stored != nil {
		return []contract.Attachment{*m.stored}
	}
	return m.Message.Attachments
}

// effect publishes the message.
func (m *pendingMessage) effect() sdk.Effect {
	said := m.Message
	said.Attachments = m.attachments()
	return sdk.Publish(contract.TopicUserMessage, said, sdk.Dedupe(m.Dedupe)).
		Keep(contract.BlobsOf(said.Attachments)...)
}

// merge makes one message of the parts of an album.
func merge(parts []*pendingMessage) *pendingMessage {
	if len(parts) == 1 {
		return parts[0]
	}
	all := &pendingMessage{Dedupe: parts[0].Dedupe, Message: parts[0].Message}
	var texts []string
	all.Message.Attachments = nil
	for _, m := range parts {
		all.Message.Attachments = append(all.Message.Attachments, m.attachments()...)
		if m.Message.Text != "" {
			texts = append(texts, m.Message.Text)
		}
	}
	all.Message.Text = truncateInput(strings.Join(texts, "\n"))
	return all
}
