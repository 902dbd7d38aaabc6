package e2e

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// The owner finds and reads what was said where much is stored: with
// SWITCHBOARD_MANY_CHATS set 100,000 messages of 1,000 conversations, otherwise few.
func TestThePageWithManyConversations(t *testing.T) {
	t.Parallel()
	needChromium(t)
	chats, each := 60, 3
	if os.Getenv("SWITCHBOARD_MANY_CHATS") != "" {
		chats, each = 1000, 50
	}
	w := newWorld(t, strangers())
	w.dropIn("echo", "", echoAgent)
	withPage(t, w, "agents: {default: echo, enabled: [echo]}\nchannels: {telegram_channel: {allow_from: [\"*\"]}}\n")
	w.start()
	w.telegramReady()
	id := func(chat int) int64 { return 7_000_000 + int64(chat) }
	for chat := range chats {
		w.telegram.AddChat(telegramtest.Chat{ID: id(chat), Type: telegramtest.Private})
	}
	for n := range each {
		for chat := range chats {
			w.telegram.Say(id(chat), fmt.Sprintf("word%d of chat%d", n, chat))
		}
		w.eventually("the answers", func() bool {
			for chat := range chats {
				if len(w.telegram.Messages(id(chat))) <= n {
					return false
				}
			}
			return true
		})
	}

	b := w.tab(w.chromium(), desktopWidth, desktopHeight)
	base := b.value(`location.origin`)
	opens := func(path, what, condition string) {
		t.Helper()
		began := time.Now()
		b.run(chromedp.Navigate(base+path), chromedp.WaitReady("main", chromedp.ByQuery))
		b.is(what, condition)
		t.Logf("%s in %s", what, time.Since(began).Round(time.Millisecond))
	}
	opens("/board", "the board", `document.querySelector("main h1")`)
	opens("/board/sessions", "the newest conversations", `document.querySelectorAll("main tbody tr").length === 50`)
	opens("/board/sessions?n=5000", "all conversations",
		fmt.Sprintf(`document.querySelectorAll("main tbody tr").length === %d`, chats))
	b.run(chromedp.Click(`//main//tbody//a[contains(., "7000007")]`, chromedp.BySearch))
	b.is("a transcript", fmt.Sprintf(`document.querySelector("main").innerText.includes("word%d of chat7")`, each-1))
	opens("/board/people", "the people", `document.querySelector("main h1")`)
	opens("/board/usage", "the usage", `document.querySelector("main h1")`)
	last := fmt.Sprintf("word%d of chat%d", each/2, chats-1)
	opens("/search?q="+url.QueryEscape(last), "what was searched", fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, last))
	if found := w.must("sessions", "search", last); !strings.Contains(found, last) {
		t.Errorf("the search found %.500s", found)
	}
}
