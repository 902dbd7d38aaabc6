package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// answerWords has the streamed answer, streamPause is the time between two of its chunks.
const (
	answerWords = 40
	streamPause = 50 * time.Millisecond
)

// browser measures the page in Chromium: when something is painted, and when the first streamed
// word and the reply are there, beside a quick and a streamed answer over Telegram.
func browser(b *bench) error {
	if _, err := exec.LookPath("chromium"); err != nil {
		fmt.Println("skipped: chromium is not installed")
		return nil //nolint:nilerr // the page is not measured then
	}
	shown := []string{"chat, first visit", "chat, again", "board, again"}
	paint := make([][]time.Duration, len(shown))
	var quick, word, reply, overTelegram, telegramWord, telegramReply []time.Duration
	for range b.rounds {
		if err := func() error {
			d, s, err := b.bedWithBoard()
			if err != nil {
				return err
			}
			defer d.close()
			defer s.stop()
			tab, end, err := s.chromium(d)
			if err != nil {
				return err
			}
			defer end()
			for i, at := range []string{"/", "/", "/board"} {
				seen, err := s.painted(tab, at, i == 0, b.scale(50))
				if err != nil {
					return err
				}
				paint[i] = append(paint[i], seen)
			}
			_, seen, err := s.answers(tab, b.scale(100))
			if err != nil {
				return err
			}
			quick = append(quick, seen)
			if _, seen, err = d.answers(false, b.scale(100)); err != nil {
				return err
			}
			overTelegram = append(overTelegram, seen)

			words := strings.Repeat("word ", answerWords)
			d.model.Handle(func(r openaitest.Request) openaitest.Answer {
				return openaitest.Answer{Text: answered + words + r.Last("user"), Pieces: answerWords, Pause: streamPause}
			})
			first, last, err := s.answers(tab, b.scale(20))
			if err != nil {
				return err
			}
			word, reply = append(word, first), append(reply, last)
			if first, last, err = d.answers(true, b.scale(20)); err != nil {
				return err
			}
			telegramWord, telegramReply = append(telegramWord, first), append(telegramReply, last)
			return nil
		}(); err != nil {
			return err
		}
	}
	for i, what := range shown {
		fmt.Printf("first paint of the %s: %s\n", what, spread(paint[i], milliseconds))
	}
	fmt.Printf("message to reply: in the page %s, over Telegram %s\n", spread(quick, milliseconds),
		spread(overTelegram, milliseconds))
	fmt.Printf("an answer that is streamed for %s: first word in the page %s, over Telegram %s; reply %s and %s\n",
		answerWords*streamPause, spread(word, milliseconds), spread(telegramWord, milliseconds), spread(reply, milliseconds),
		spread(telegramReply, milliseconds))
	return nil
}

// chromium starts a browser with a tab in which the owner is logged in.
func (s *site) chromium(d *bed) (tab context.Context, end func(), err error) {
	profile, err := os.MkdirTemp("", "sbc")
	if err != nil {
		return nil, nil, err
	}
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	allocator, endAllocator := chromedp.NewExecAllocator(s.ctx, append(flags, chromedp.ExecPath("chromium"),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-quic", true), chromedp.WindowSize(1280, 800))...)
	tab, endTab := chromedp.NewContext(allocator)
	end = func() {
		endTab()
		endAllocator()
		_ = os.RemoveAll(profile)
	}
	link, err := d.command("web", "--no-open")
	if err == nil {
		first, _, _ := strings.Cut(link, "\n")
		err = chromedp.Run(tab, chromedp.Navigate(first), chromedp.WaitVisible("#text", chromedp.ByID))
	}
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("open the page in chromium: %w", err)
	}
	return tab, end, nil
}

// painted opens a page again and again, and returns the median of the times from the navigation
// to the first paint of content. Empty: without anything in the browser's cache.
func (s *site) painted(tab context.Context, path string, empty bool, n int) (time.Duration, error) {
	var all []time.Duration
	for range n {
		var at string
		err := chromedp.Run(tab, network.Enable(), network.SetCacheDisabled(empty),
			chromedp.Navigate(s.base+path), chromedp.WaitReady("main", chromedp.ByQuery),
			chromedp.Poll(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime.toString()`, &at))
		if err != nil {
			return 0, fmt.Errorf("open %s: %w", path, err)
		}
		took, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return 0, err
		}
		all = append(all, time.Duration(took*float64(time.Millisecond)))
	}
	return median(all), nil
}

// saying sends a message by the form of the chat, and notes when the first word of an answer and
// the whole answer are on the page.
const saying = `new Promise((done) => {
	const text = document.getElementById("text"), log = document.getElementById("log");
	const lines = () => log.querySelectorAll(".line:not(.mine)").length;
	const had = lines(), began = performance.now();
	let first = 0;
	const look = () => {
		const some = document.querySelector("#drafts .text")?.textContent || lines() > had;
		if (!first && some) first = performance.now() - began;
		if (lines() > had) { watch.disconnect(); done(first + " " + (performance.now() - began)); }
	};
	const watch = new MutationObserver(look);
	watch.observe(document.getElementById("scroll"), { childList: true, subtree: true, characterData: true });
	text.value = %q;
	document.getElementById("composer").requestSubmit();
})`

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// answers sends messages in the page, one after the other, and returns the medians of the times
// to the first word and to the reply.
func (s *site) answers(tab context.Context, n int) (first, last time.Duration, err error) {
	if err := chromedp.Run(tab, chromedp.Navigate(s.base+"/"), chromedp.WaitVisible("#text", chromedp.ByID)); err != nil {
		return 0, 0, err
	}
	var firsts, lasts []time.Duration
	for i := range n + 1 {
		var took string
		script := fmt.Sprintf(saying, fmt.Sprint("hello ", i))
		if err := chromedp.Run(tab, chromedp.Evaluate(script, &took, awaited)); err != nil {
			return 0, 0, fmt.Errorf("send in the page: %w", err)
		}
		var word, reply float64
		if _, err := fmt.Sscan(took, &word, &reply); err != nil {
			return 0, 0, err
		}
		if i == 0 {
			continue // it may open the session
		}
		firsts = append(firsts, time.Duration(word*float64(time.Millisecond)))
		lasts = append(lasts, time.Duration(reply*float64(time.Millisecond)))
	}
	return median(firsts), median(lasts), nil
}

// answers is the same over Telegram: in one chat, or each message in another one, because the
// channel shows no draft in a chat in which it has just sent much.
func (d *bed) answers(each bool, n int) (first, last time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var firsts, lasts []time.Duration
	for i := range n {
		chat := int64(2)
		if each {
			chat += int64(i)
		}
		had := len(d.telegram.Messages(chat))
		text := fmt.Sprint("hello ", i)
		newest := func() (m telegramtest.Message) {
			if all := d.telegram.Messages(chat); len(all) > had {
				m = all[len(all)-1]
			}
			return m
		}
		began := time.Now()
		d.say(chat, text)
		if err := d.telegram.Wait(ctx, "a first word", func() bool { return newest().Text != "" }); err != nil {
			return 0, 0, err
		}
		firsts = append(firsts, time.Since(began))
		whole := func() bool { return strings.HasSuffix(newest().Text, text) }
		if err := d.telegram.Wait(ctx, "the answer", whole); err != nil {
			return 0, 0, err
		}
		lasts = append(lasts, time.Since(began))
	}
	for len(d.replies) > 0 {
		<-d.replies
	}
	return median(firsts), median(lasts), nil
}
