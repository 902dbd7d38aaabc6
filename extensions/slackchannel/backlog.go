package slackchannel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/attachment"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// downloadsAtOnce bounds concurrent downloads.
const downloadsAtOnce = 8

// pendingMessage is a message to publish.
type pendingMessage struct {
	TS      string               `json:"ts,omitempty"`
	Dedupe  string               `json:"dedupe"`
	Message contract.UserMessage `json:"message"`
	Files   []remoteFile         `json:"files,omitempty"` // to download
	Press   *press               `json:"press,omitempty"` // nil: it was typed

	arrived time.Time
	stored  map[int]contract.Attachment // after the download, by index
}

func (m *pendingMessage) conversation() string {
	return m.Message.ConversationID + "/" + m.Message.ThreadID
}

// effect publishes the message.
func (m *pendingMessage) effect() sdk.Effect {
	said := m.Message
	said.Attachments = append([]contract.Attachment(nil), said.Attachments...)
	for i, a := range m.stored {
		said.Attachments[i] = a
	}
	return sdk.Publish(contract.TopicUserMessage, said, sdk.Dedupe(m.Dedupe)).
		Keep(contract.BlobsOf(said.Attachments)...)
}

// backlog has the messages that wait for their files, and in the same conversations those
// after them. They are in the store, so Slack has its acknowledgement. Conversations do
// not wait for each other.
type backlog struct {
	*activation
	ctx       context.Context
	presses   *presses
	prefix    string // of the keys in the store
	downloads chan struct{}
	running   *sync.WaitGroup

	mu    sync.Mutex
	lines map[string]*line // by conversation
}

// line is the backlog of one conversation, in order. A goroutine delivers it.
type line struct{ waiting []*pendingMessage }

func newBacklog(ctx context.Context, a *activation, team string, p *presses) *backlog {
	return &backlog{
		activation: a, ctx: ctx, presses: p, prefix: "waiting/" + team + "/", running: p.running,
		downloads: make(chan struct{}, downloadsAtOnce), lines: map[string]*line{},
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

// key orders messages by their times, which have the same number of digits.
func (b *backlog) key(m *pendingMessage) string { return b.prefix + m.TS + "/" + m.Dedupe }

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
		c := m.conversation()
		l := b.lines[c]
		if l == nil {
			l = &line{}
			b.lines[c] = l
			b.running.Go(func() { b.deliver(c, l) })
		}
		m.arrived = time.Now()
		l.waiting = append(l.waiting, m)
	}
}

// deliver publishes the messages of a conversation.
func (b *backlog) deliver(conversation string, l *line) {
	for {
		b.mu.Lock()
		next := l.waiting[0]
		b.mu.Unlock()
		if !b.publish(next) {
			return
		}
		b.mu.Lock()
		if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
			delete(b.lines, conversation)
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
		effects := b.presses.publish(m)
		results, err := b.kernel.Commit(b.ctx, append(effects, sdk.Delete(b.key(m)))...)
		if err == nil {
			b.presses.published(b.ctx, m, results[len(effects)-1])
		}
		if sdk.IsPermanent(err) {
			b.log.Error("store a message; skipping it", "message", m.Dedupe, "error", err)
			_, err = b.kernel.Commit(b.ctx, sdk.Delete(b.key(m)))
		}
		switch {
		case err == nil:
			return true
		case b.ctx.Err() != nil:
			return false
		case errors.Is(err, contract.ErrNotFound): // it took so long that a file is no longer stored
			m.stored = nil
		}
		b.log.Warn("store a message; it is tried again", "message", m.Dedupe, "error", err)
		if !pause.For(b.ctx, pause.Backoff(n)) {
			return false
		}
	}
}

// fetchAll downloads files until each is stored or cannot be had; false: ctx has ended.
func (b *backlog) fetchAll(m *pendingMessage) bool {
	if m.stored == nil {
		m.stored = map[int]contract.Attachment{}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, f := range m.Files {
		if _, ok := m.stored[f.Attachment]; ok || f.Attachment >= len(m.Message.Attachments) {
			continue
		}
		all.Go(func() {
			if got, ok := b.fetchFile(m, f); ok {
				mu.Lock()
				defer mu.Unlock()
				m.stored[f.Attachment] = got
			}
		})
	}
	all.Wait()
	return b.ctx.Err() == nil
}

// fetchFile downloads a file of a message, with retries; false: ctx has ended.
func (b *backlog) fetchFile(m *pendingMessage, f remoteFile) (contract.Attachment, bool) {
	a := m.Message.Attachments[f.Attachment]
	for n := 1; ; n++ {
		got, err := b.fetch(b.ctx, f, a)
		kind, wait := failureKind(0), time.Duration(0)
		if err != nil {
			kind, wait = classify(err)
		}
		switch {
		case err == nil:
			return got, true
		case b.ctx.Err() != nil:
			return a, false
		case errors.Is(err, contract.ErrTooLarge):
			b.log.Warn("a file is not stored", "error", err)
			return without(a, tooLarge), true
		case isGone(err):
			b.log.Warn("a file of a message cannot be downloaded", "error", b.api.redact(err))
			return without(a, gone), true
		case !sdk.IsTemporary(err) && time.Since(m.arrived) > b.set.times.giveUp:
			b.log.Warn("a file of a message was not downloaded", "message", m.Dedupe, "error", b.api.redact(err))
			return without(a, notReceived), true
		case errors.Is(err, errNoAccess):
			b.log.Warn("a file of a message was not downloaded: the app lacks the scope files:read", "message", m.Dedupe)
			return without(a, notReceived), true
		}
		b.log.Debug("download a file; it is tried again", "message", m.Dedupe, "error", b.api.redact(err))
		if kind != limited {
			wait = pause.Backoff(n)
		}
		if !pause.For(b.ctx, wait) {
			return a, false
		}
	}
}

// isSignInPage reports whether a download led to Slack's page to sign in.
func isSignInPage(err error) bool { return strings.Contains(err.Error(), "sign-in page") }

var (
	errStalled  = errors.New("the download made no progress")
	errNoAccess = errors.New("the page to sign in came instead of the file")
)

// isGone reports whether Slack will never give a file.
func isGone(err error) bool {
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok {
		return status.Code == http.StatusNotFound || status.Code == http.StatusGone
	}
	switch codeOf(err) {
	case "file_not_found", "file_deleted":
		return true
	}
	return false
}

// fetch downloads and stores the file of an attachment.
func (b *backlog) fetch(ctx context.Context, f remoteFile, a contract.Attachment) (contract.Attachment, error) {
	select {
	case b.downloads <- struct{}{}:
		defer func() { <-b.downloads }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(b.set.times.stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	if f.URL == "" {
		info, _, _, err := b.api.GetFileInfoContext(ctx, f.ID, 0, 0)
		if err != nil {
			return a, err
		}
		f.URL = info.URLPrivateDownload
	}
	from, to := io.Pipe()
	var download sync.WaitGroup
	download.Go(func() {
		err := b.api.files.GetFileContext(ctx, f.URL, progress{to, func() { stalled.Reset(b.set.times.stall) }})
		to.CloseWithError(transferError(err))
	})
	got, err := attachment.Store(ctx, b.kernel, a, from)
	_ = from.CloseWithError(err)
	download.Wait()
	if err != nil && context.Cause(ctx) != nil {
		return a, &httpcall.Error{Err: context.Cause(ctx)}
	}
	return got, err
}

// transferError is the error of a download; nil at its end.
func transferError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[slack.StatusCodeError](err); ok {
		return err
	}
	if _, limited := errors.AsType[*slack.RateLimitedError](err); limited {
		return err
	}
	if isSignInPage(err) {
		return errNoAccess
	}
	return &httpcall.Error{Err: err}
}

// progress is where a download goes.
type progress struct {
	io.Writer
	made func()
}

func (p progress) Write(b []byte) (int, error) {
	p.made()
	return p.Writer.Write(b)
}
