package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/internal/loopback"
)

// web compares messages over the page and over OpenAI's API with those over Telegram.
func web(b *bench) error {
	kinds := []struct {
		name string
		make func(reply func(chat int64)) (*way, error)
	}{
		{"Telegram", func(func(int64)) (*way, error) { return nil, nil }}, //nolint:nilnil // a bed has it
		{"page", overPage}, {"OpenAI's API", overOpenAI},
	}
	counts := []int{1, 16, crowdChats}
	p50 := make([][]time.Duration, len(kinds))
	rates := make([][][]float64, len(kinds))
	for range b.rounds {
		for i, kind := range kinds {
			if err := func() error {
				d, err := b.bedOver(kind.make)
				if err != nil {
					return err
				}
				defer d.close()
				seen, err := pace(d, b.scale(500))
				if err != nil {
					return err
				}
				p50[i] = append(p50[i], seen.p50)
				if rates[i] == nil {
					rates[i] = make([][]float64, len(counts))
				}
				if kind.name == "page" { // one person has few conversations open
					return nil
				}
				for n, chats := range counts {
					rate, _, err := crowd(d, chats, max(b.scale(2000), 8*chats))
					if err != nil {
						return err
					}
					rates[i][n] = append(rates[i][n], rate)
				}
				return nil
			}(); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
		}
	}
	for i, kind := range kinds {
		fmt.Printf("%-12s p50 %s, beside Telegram's %s", kind.name, spread(p50[i], milliseconds),
			times(float64(median(p50[i]))/float64(median(p50[0]))))
		for n, chats := range counts {
			if len(rates[i][n]) > 0 {
				fmt.Printf("; %d at once %s, %s", chats, spread(rates[i][n], perSecond),
					times(median(rates[i][n])/median(rates[0][n])))
			}
		}
		fmt.Println()
	}
	return nil
}

// bedOver is a warm bed whose messages come by a way.
func (b *bench) bedOver(way func(reply func(chat int64)) (*way, error)) (d *bed, err error) {
	if d, err = newBed(); err != nil {
		return nil, err
	}
	if d.way, err = way(func(chat int64) { d.replies <- telegramtest.Message{Chat: chat} }); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		d.over, func() error { return d.start(b.binary) }, d.begin, d.warm,
	} {
		if err := step(); err != nil {
			d.close()
			return nil, err
		}
	}
	return d, nil
}

// site is the web channel of a bed.
type site struct {
	http.Client
	base   string
	bearer string
	reply  func(chat int64)
	next   atomic.Int64
	ctx    context.Context //nolint:containedctx // ends with the bed
	stop   context.CancelFunc

	mu   sync.Mutex
	open map[int64]bool // conversations that are followed
}

func newSite(reply func(chat int64)) (*site, *way, error) {
	port, err := loopback.Take()
	if err != nil {
		return nil, nil, err
	}
	s := &site{base: "http://" + port.Addr, reply: reply, open: map[int64]bool{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.Transport = &http.Transport{MaxIdleConnsPerHost: 2 * crowdChats}
	w := &way{channel: "web_channel", end: s.stop, settings: fmt.Sprintf("{config: {listen: %q}}", port.Addr)}
	port.Release()
	return s, w, nil
}

// command runs a command of the binary on the home of a bed, as soon as the kernel answers.
func (d *bed) command(args ...string) (said string, err error) {
	err = until("the kernel did not start", func() bool {
		c := exec.Command(d.kernel.Path, args...)
		c.Env = d.kernel.Env
		out, err := c.Output()
		said = string(out)
		return err == nil
	})
	return said, err
}

// overPage has a browser's requests: each chat is a conversation of the owner that is open.
func overPage(reply func(chat int64)) (*way, error) {
	s, w, err := newSite(reply)
	if err != nil {
		return nil, err
	}
	w.begin = s.login
	w.say = func(chat int64, text string) {
		if err := s.follow(chat); err != nil {
			fmt.Fprintln(os.Stderr, "bench: the page:", err) // no reply comes: the measurement fails
		}
		go s.post("/chat/say", map[string]any{
			"id": fmt.Sprint("b", s.next.Add(1)), "conversation": fmt.Sprint("c", chat), "text": text,
		})
	}
	return w, nil
}

// login follows a link that logs in, as a browser does.
func (s *site) login(d *bed) (err error) {
	if s.Jar, err = cookiejar.New(nil); err != nil {
		return err
	}
	link, err := d.command("web", "--no-open")
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(link, "\n")
	answer, err := s.Get(first)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

// follow opens the conversation of a chat.
func (s *site) follow(chat int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[chat] {
		return nil
	}
	at := fmt.Sprintf("%s/live/chat?c=c%d&after=0", s.base, chat)
	q, err := http.NewRequestWithContext(s.ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := s.Do(q) //nolint:bodyclose // closed by what reads it
	if err != nil {
		return err
	}
	s.open[chat] = true
	go func() {
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		line := false
		for lines.Scan() {
			if event, found := strings.CutPrefix(lines.Text(), "event: "); found {
				line = event == "line"
			} else if line && strings.Contains(lines.Text(), answered) {
				s.reply(chat)
			}
		}
	}()
	return nil
}

// overOpenAI has the requests of a program: each chat is a conversation.
func overOpenAI(reply func(chat int64)) (*way, error) {
	s, w, err := newSite(reply)
	if err != nil {
		return nil, err
	}
	w.begin = func(d *bed) error {
		made, err := d.command("tokens", "create", "bench", "--scope", "all", "--json")
		var token struct{ Token string }
		s.bearer = "Bearer "
		if err = errors.Join(err, json.Unmarshal([]byte(made), &token)); err == nil {
			s.bearer += token.Token
		}
		return err
	}
	w.say = func(chat int64, text string) {
		go func() {
			said := s.post("/v1/chat/completions", map[string]any{
				"model": "orchestrator", "messages": []any{map[string]any{"role": "user", "content": text}},
				"metadata": map[string]any{"conversation": fmt.Sprint("c", chat)},
			})
			if strings.Contains(said, answered) {
				s.reply(chat)
			}
		}()
	}
	return w, nil
}

// post sends a request and returns the answer. After an error no reply comes: the measurement
// fails.
func (s *site) post(path string, body any) string {
	sent, _ := json.Marshal(body)
	q, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.base+path, bytes.NewReader(sent))
	if err != nil {
		return ""
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Origin", s.base)
	if s.bearer != "" {
		q.Header.Set("Authorization", s.bearer)
	}
	answer, err := s.Do(q)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: the web channel:", err)
		return ""
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		fmt.Fprintf(os.Stderr, "bench: %s answers %d %s\n", path, answer.StatusCode, said)
	}
	return string(said)
}
