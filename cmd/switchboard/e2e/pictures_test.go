package e2e

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// Makes the pictures of docs/images:
//
//	SWITCHBOARD_SCREENSHOTS=$PWD/docs/images go test ./cmd/switchboard/e2e -run TestPicturesOfTheDocs
func TestPicturesOfTheDocs(t *testing.T) {
	t.Parallel()
	if os.Getenv("SWITCHBOARD_SCREENSHOTS") == "" {
		t.Skip("SWITCHBOARD_SCREENSHOTS names no directory")
	}
	w := chatting(t)
	w.model.Queue(
		openaitest.Say("Good morning! Today you have two things:\n\n- **10:00** dentist\n- **18:30** dinner with Clara\n\n"+
			"Shall I remind you half an hour before each?"),
		openaitest.CallTool("schedule_once", map[string]any{"message": "dentist", "delay_seconds": 9000}),
		openaitest.Say("Done: I'll remind you before both."),
	)
	b := w.tab(w.chromium(), 1000, 640)
	b.says("What is on today?")
	b.is("the answer", `document.querySelectorAll("#log .line").length === 2 && !document.querySelector("#drafts .line")`)
	b.says("Yes, please.")
	b.is("the second answer", `document.querySelectorAll("#log .line").length === 4`)
	b.picture("page-chat")
	trace := b.value(`[...document.querySelectorAll("#log a[href^='/trace/']")].pop()?.pathname || ""`)
	for _, s := range [][]string{{"stretch", "--every", "2h"}, {"water the plants", "--cron", "0 19 * * 2,5"},
		{"call Grandma", "--in", "26h"}} {
		w.must(append([]string{"schedules", "add"}, s...)...)
	}
	w.must("memory", "add", "Clara doesn't eat nuts")
	base := b.value(`location.origin`)
	for name, path := range map[string]string{"page-now": "/board", "page-schedules": "/board/schedules",
		"page-trace": trace} {
		b.run(chromedp.Navigate(base+path), chromedp.WaitReady("main", chromedp.ByQuery))
		b.picture(name)
	}
	b.run(chromedp.EmulateViewport(360, 640), chromedp.Navigate(base+"/"))
	b.is("the chat", `document.querySelectorAll("#log .line").length >= 4`)
	b.picture("page-phone")
}
