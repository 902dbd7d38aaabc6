package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// A chat and a live board stay open, and a reply streams, while the page's process alone is
// killed, and then the kernel: each message and each answer is there once, and both pages go on
// by themselves.
func TestPagesOutliveKillsWhileAReplyStreams(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	browser := w.chromium()
	chat, board := w.tab(browser, desktopWidth, desktopHeight), w.tab(browser, desktopWidth, desktopHeight)
	board.run(chromedp.Navigate(board.value(`location.origin`)+"/board"), chromedp.WaitReady("#live-body", chromedp.ByQuery))
	for _, b := range []*tab{chat, board} {
		b.run(chromedp.Evaluate(`window.same = true`, nil)) // gone with a reload
		b.outage(true)
	}
	client := w.control()
	for i, kills := range []func(){
		func() {
			before := w.extension(client, "web_channel").Pid
			if before == 0 || int(before) == w.kernel.pid() {
				t.Fatalf("the page's process is %d", before)
			}
			if err := syscall.Kill(int(before), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.eventually("another process of the page", func() bool {
				e := w.extension(client, "web_channel")
				return e.State == "active" && e.Pid != before
			})
		},
		w.restart,
	} {
		question, answer := fmt.Sprint("question ", i), fmt.Sprintf("answer %d is long enough for several pieces", i)
		steps := make(chan struct{}, 8)
		w.model.Handle(func(r openaitest.Request) openaitest.Answer {
			if last := r.Messages[len(r.Messages)-1].Content.Text; !strings.Contains(last, question) {
				t.Errorf("the model is asked %q", last)
			}
			return openaitest.Answer{Text: answer, Pieces: 4, Steps: steps}
		})
		chat.says(question)
		steps <- struct{}{}
		steps <- struct{}{}
		chat.is("the reply as it streams", fmt.Sprintf(`document.querySelector("#drafts .text")?.innerText.includes("answer %d")`, i))
		kills()
		close(steps)
		chat.is("the answer", fmt.Sprintf(`document.querySelector("#log .line:last-child .text")?.innerText.includes(%q)`, answer))
		chat.is("no draft, nothing that waits, no complaint", `!document.querySelector("#drafts .line") &&
			!document.querySelector("#pending .line") && document.getElementById("state").hidden`)
		board.is("the message", fmt.Sprintf(`document.querySelector("#live-body").innerText.includes(%q)`, question))
	}
	for _, b := range []*tab{chat, board} {
		b.outage(false)
		if b.value(`window.same`) != "true" {
			t.Error("a page was reloaded")
		}
	}
	chat.shows("question 0", "answer 0 is long enough for several pieces", "question 1", "answer 1 is long enough for several pieces")
	chat.run(chromedp.Reload())
	chat.sees("#text")
	chat.shows("question 0", "answer 0 is long enough for several pieces", "question 1", "answer 1 is long enough for several pieces")
}
