package telegramchannel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
	"github.com/switchboard-run/switchboard/sdk/typing"
)

// wire brings requests to a server without a network, so that time in a bubble
// advances while nothing happens.
type wire struct {
	server *telegramtest.Server

	mu      sync.Mutex
	latency func() time.Duration // before a request arrives, and again before its answer does
	lose    int                  // how many answers to sendMessage get lost
}

func (w *wire) takes(latency func() time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency = latency
}

func (w *wire) CloseIdleConnections() {}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	latency := w.latency
	w.mu.Unlock()
	if !pause.For(r.Context(), latency()) {
		return nil, r.Context().Err()
	}
	arrived := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(string(body)))
	arrived.Header = r.Header
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, arrived)
	if !pause.For(r.Context(), latency()) {
		return nil, r.Context().Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lose > 0 && strings.HasSuffix(r.URL.Path, "/sendMessage") {
		w.lose--
		return nil, errors.New("connection reset")
	}
	return answer.Result(), nil
}

// bench is the channel in a bubble, beside Telegram.
type bench struct {
	t *testing.T
	*telegramtest.Server
	wire   *wire
	kernel *memory
	pace   bool
	c      *channel
	end    func()

	mu   sync.Mutex
	seen []telegramtest.Message // every state of every message
}

// states records the texts of the bot's messages, in order.
func (b *bench) states() []telegramtest.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// inBubble runs a test in a bubble, where the channel does not read updates. The
// server enforces Telegram's limits.
func inBubble(t *testing.T, f func(b *bench)) {
	t.Helper()
	b := &bench{kernel: newMemory(), pace: true}
	b.Server = telegramtest.Start(t, telegramtest.WithLimits(telegramtest.TelegramLimits()),
		telegramtest.OnMessage(func(m telegramtest.Message) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.seen = append(b.seen, m)
		}))
	synctest.Test(t, func(t *testing.T) {
		b.t = t
		b.wire = &wire{server: b.Server, latency: func() time.Duration { return 20 * time.Millisecond }}
		b.start()
		defer func() { b.end() }()
		f(b)
	})
}

// start starts or restarts the channel with only its stored state.
func (b *bench) start() {
	b.t.Helper()
	if b.end != nil {
		b.end()
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &activation{kernel: b.kernel, log: b.kernel.Log(), pace: newPacer(b.pace), done: make(chan struct{})}
	close(a.done)
	var err error
	if a.api, err = newAPI(b.URL(), b.Token(), a.log); err != nil {
		b.t.Fatal(err)
	}
	a.api.transport = b.wire
	a.typing = typing.New(ctx, typingEvery, a.sendTyping)
	if a.drafts, err = newDrafts(ctx, a, b.Token()); err != nil {
		b.t.Fatal(err)
	}
	b.c = &channel{}
	b.c.active.Store(a)
	b.end = func() {
		cancel()
		a.drafts.Stop()
		a.typing.Stop()
	}
}

// story is a model's text, a word at a time.
const story = "Once upon a time there was a small switchboard, and it had many, many lines. " +
	"**Every** line led to somebody who wanted something, mostly `at once`, and so on and so on, until the end."

const perWord = 200 * time.Millisecond

// streams shows the first n words of a text as a draft, one after the other; a
// negative n is all of them.
func (b *bench) streams(d sdk.Draft, text string, n int) {
	b.t.Helper()
	words := strings.SplitAfter(text, " ")
	if n < 0 {
		n = len(words)
	}
	b.c.Draft(b.t.Context(), d)
	for i := range n {
		time.Sleep(perWord)
		d.Text = strings.Join(words[:i+1], "")
		b.c.Draft(b.t.Context(), d)
	}
}

// delivers sends a text and commits the effects of its receipt, as the kernel does.
func (b *bench) delivers(m sdk.Message) sdk.Receipt {
	b.t.Helper()
	r, err := b.c.Send(b.t.Context(), m)
	if err != nil {
		b.t.Fatalf("sending %q: %v", m.Text, err)
	}
	if _, err := b.kernel.Commit(b.t.Context(), r.Effects...); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// only is the one message of a chat.
func (b *bench) only(chat int64) telegramtest.Message {
	b.t.Helper()
	all := b.Messages(chat)
	if len(all) != 1 {
		b.t.Fatalf("in chat %d are %d messages: %+v", chat, len(all), all)
	}
	return all[0]
}

// stored is the keys of the drafts that are on record.
func (b *bench) stored() (keys []string) {
	b.kernel.mu.Lock()
	defer b.kernel.mu.Unlock()
	for key := range b.kernel.values {
		if strings.HasPrefix(key, "draft/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// unrefused fails the test if Telegram had to refuse anything.
func (b *bench) unrefused() {
	b.t.Helper()
	for _, r := range b.Refused() {
		b.t.Errorf("refused: %s in chat %d: %d %s", r.Method, r.Chat, r.Status, r.Description)
	}
}

// repeated is a message whose first sending may have worked.
func repeated(m sdk.Message) sdk.Message {
	m.Unmarked, m.Text, m.Repeat = m.Text, contract.RepeatMark+m.Text, true
	return m
}
