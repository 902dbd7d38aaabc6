package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// chatting is a world with a model and the page.
func chatting(t *testing.T) *world {
	t.Helper()
	needChromium(t)
	w := newWorld(t, withModel)
	withPage(t, w, "")
	w.start()
	return w
}

func TestTheChatInABrowser(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]int64{
		"phone": {phoneWidth, phoneHeight}, "desktop": {desktopWidth, desktopHeight},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := chatting(t)
			b := w.tab(w.chromium(), size[0], size[1])
			steps := make(chan struct{}, 4)
			w.model.Queue(openaitest.Answer{
				Text: "Here you are:\n\n```go\nfmt.Println(1)\n```\n\n<img src=x onerror=alert(1)> **done**", Pieces: 4, Steps: steps,
			})
			b.says("code, please")
			steps <- struct{}{}
			steps <- struct{}{}
			b.is("a draft", `document.querySelector("#drafts .text")?.innerText.includes("Here you")`)
			close(steps)
			b.is("the answer instead of its draft", `document.querySelectorAll("#log .line").length === 2 &&
				!document.querySelector("#drafts .line") && document.querySelector("#log strong")?.innerText === "done"`)
			if got := b.value(`document.querySelectorAll("#log img").length`); got != "0" {
				t.Error("raw HTML of a model became an element")
			}
			b.run(cdpbrowser.SetPermission(&cdpbrowser.PermissionDescriptor{Name: "clipboard-write"}, cdpbrowser.PermissionSettingGranted),
				chromedp.Click(".copy", chromedp.ByQuery))
			b.is("a note that it is copied", `document.querySelector("#toasts .ok")`)
			b.says("/help")
			b.is("the commands", `document.querySelector("#log .line:last-child .text")?.innerText.includes("/new")`)
			if got := b.value(`document.documentElement.scrollWidth <= innerWidth`); got != "true" {
				t.Error("the page is wider than the window")
			}
			b.picture("chat-" + name)
		})
	}
}

// Each message arrives once, and each answer, while the kernel and all its processes are
// killed again and again.
func TestChattingWhileTheKernelIsKilled(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		text := r.Messages[len(r.Messages)-1].Content.Text
		return openaitest.Say("re " + text[strings.LastIndex(text, "message "):])
	})
	b := w.tab(w.chromium(), desktopWidth, desktopHeight)
	var want []string
	for i := range 4 {
		text := fmt.Sprint("message ", i)
		b.outage(true)
		switch i % 2 {
		case 0: // it is down while the person writes
			w.crash()
			b.says(text)
			b.is("the message that waits", `document.querySelector("#pending .line")`)
			w.start()
		case 1: // it ends as the message is sent
			b.says(text)
			w.restart()
		}
		want = append(want, text)
		b.is("the answer", fmt.Sprintf(`[...document.querySelectorAll("#log .line:not(.mine) .text")].some((e) =>
			e.innerText.includes(%q))`, text))
		b.is("nothing that waits", `!document.querySelector("#pending .line") && document.getElementById("state").hidden`)
		b.outage(false)
	}
	check := func() {
		t.Helper()
		var mine []string
		seen := map[string]int{}
		for _, l := range b.lines() {
			if strings.HasPrefix(l, "message ") {
				mine = append(mine, l)
			} else {
				seen[l]++
			}
		}
		if fmt.Sprint(mine) != fmt.Sprint(want) {
			t.Errorf("of the person there is %q, want %q", mine, want)
		}
		for text, n := range seen {
			if n > 1 {
				t.Errorf("%q is there %d times", text, n)
			}
		}
	}
	check()
	before, page := strings.Join(b.lines(), "\n"), b.value("location.origin")
	w.eventually("the page of the last kernel", func() bool {
		r, err := http.Get(page + "/healthz") //nolint:noctx // a look at a server of this machine
		if err != nil {
			return false
		}
		return r.Body.Close() == nil
	})
	b.run(chromedp.Reload())
	b.sees("#text")
	b.shows(strings.Split(before, "\n")...)
	check()
}

func TestWhatWasTypedAndWhatWaitsOutliveAReload(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	b := w.tab(w.chromium(), desktopWidth, desktopHeight)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("got it") })
	b.says("first")
	b.shows("first", "got it")
	b.run(chromedp.Navigate("about:blank"), chromedp.NavigateBack())
	b.sees("#text")
	b.outage(true)
	b.run(network.Enable(), network.SetBlockedURLs().WithURLPatterns([]*network.BlockPattern{{URLPattern: "*://*:*/chat/say", Block: true}}))
	b.says("second")
	b.is("the message that waits", `document.querySelector("#pending .line")`)
	b.run(chromedp.SendKeys("#text", "half a sent", chromedp.ByQuery),
		network.SetBlockedURLs().WithURLPatterns(nil), chromedp.Reload())
	b.sees("#text")
	b.shows("first", "got it", "second", "got it")
	b.is("what was typed", `document.getElementById("text").value === "half a sent"`)
	b.outage(false)
}

// Two tabs see the same, and a conversation that changes elsewhere is told of.
func TestSeveralConversations(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		return openaitest.Say("re " + r.Messages[len(r.Messages)-1].Content.Text)
	})
	chromium := w.chromium()
	main, trip := w.tab(chromium, desktopWidth, desktopHeight), w.tab(chromium, desktopWidth, desktopHeight)
	main.says("in the main one")
	main.shows("in the main one", "re in the main one")
	trip.shows("in the main one", "re in the main one")
	trip.run(chromedp.Click("#new", chromedp.ByQuery))
	trip.is("an empty conversation", `new URLSearchParams(location.search).get("c") && document.querySelector("#log").childElementCount === 0`)
	trip.sees("#text")
	trip.says("plan a trip")
	trip.shows("plan a trip", "re plan a trip")
	main.is("the other conversation with what is unread", `[...document.querySelectorAll("#list li")].some((e) =>
		e.querySelector(".label").innerText === "plan a trip")`)
	if got := main.lines(); len(got) != 2 {
		t.Errorf("the main conversation has %q", got)
	}
	trip.run(chromedp.Evaluate(`window.confirm = () => true; document.getElementById("delete").click()`, nil))
	trip.is("the main conversation", `location.search === "" && document.querySelectorAll("#log .line").length === 2`)
	main.is("one conversation", `document.querySelectorAll("#list li").length === 1`)
}

// A button says its command, once, and is gone in all tabs.
func TestButtonsInABrowser(t *testing.T) {
	t.Parallel()
	needChromium(t)
	w := newWorld(t, withModel)
	withPage(t, w, "agents: {default: chief}\napprove: [lab/*]\n")
	w.dropIn("chief", "", chief)
	w.probe("lab", "tools", "provides: {tools: true}")
	w.start()
	w.state(w.control(), "lab", "active")
	w.release()
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if m := r.Messages[len(r.Messages)-1]; m.Role == "user" {
			return openaitest.CallTool("lab__slow", `{"n": 1}`)
		}
		return openaitest.Say("It is done.")
	})
	chromium := w.chromium()
	b, other := w.tab(chromium, phoneWidth, phoneHeight), w.tab(chromium, desktopWidth, desktopHeight)
	b.says("do it")
	other.sees(".actions button")
	b.sees(".actions button")
	b.picture("buttons-phone")
	b.run(chromedp.Click(".actions button", chromedp.ByQuery)) // Yes
	b.is("that it is done", `document.querySelector("#log .line:last-child .text")?.innerText === "It is done."`)
	for _, one := range []*tab{b, other} {
		one.is("no buttons", `!document.querySelector(".actions")`)
	}
	b.run(chromedp.Reload())
	b.is("no buttons after a reload", `document.querySelector("#log .line") && !document.querySelector(".actions")`)
}

// Files go by button, by paste and by drag, and voice by a (false) microphone.
func TestFilesInABrowser(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("seen") })
	chromium := w.chromium(chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", true))
	b := w.tab(chromium, desktopWidth, desktopHeight)
	picture := w.file("cat.png")
	if err := os.WriteFile(picture, pngOf(64, 48), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write("<script>alert(1)</script>", 0o600, "page.html")
	b.run(chromedp.SetUploadFiles("#file", []string{picture, w.file("page.html")}, chromedp.ByQuery))
	uploaded := func(n int) {
		t.Helper()
		b.is("uploaded files", fmt.Sprintf(`document.querySelectorAll("#attached li").length === %d &&
			!document.getElementById("send").disabled`, n))
	}
	uploaded(2)
	transfer := func(event, name string) string {
		return fmt.Sprintf(`{const data = new DataTransfer(); data.items.add(new File(["from %[1]s"], %[2]q, {type: "text/plain"}));
			document.dispatchEvent(new %[3]s(%[1]q, {%[4]s: data, bubbles: true, cancelable: true}))}`, event, name,
			map[string]string{"paste": "ClipboardEvent", "drop": "DragEvent"}[event],
			map[string]string{"paste": "clipboardData", "drop": "dataTransfer"}[event])
	}
	b.run(chromedp.Evaluate(transfer("paste", "pasted.txt"), nil), chromedp.Evaluate(transfer("drop", "dropped.txt"), nil))
	uploaded(4)
	b.says("look")
	b.is("the files", `document.querySelectorAll("#log .file").length === 3`)
	b.is("the picture", `document.querySelector("#log img")?.naturalWidth === 64`)
	b.picture("files")
	b.is("the answer", `document.querySelector("#log .line:last-child .text")?.innerText === "seen"`)
	if got := b.value(`[...document.querySelectorAll("#log .file")].map((e) => e.download).sort().join()`); got !=
		"dropped.txt,page.html,pasted.txt" {
		t.Errorf("the files are %s", got)
	}
	b.run(chromedp.Click("#voice", chromedp.ByQuery))
	b.is("that it records", `document.getElementById("voice").getAttribute("aria-pressed") === "true" &&
		/0:0[1-9]/.test(document.getElementById("clock").innerText)`)
	b.run(chromedp.Click("#voice", chromedp.ByQuery))
	b.is("the recording", `document.querySelector("#log .mine audio")`)
	b.run(chromedp.Evaluate(`document.querySelector("#log .mine audio").play()`, nil,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
			return p.WithAwaitPromise(true).WithUserGesture(true)
		}))
}

// What arrives while nobody looks is notified, and counted in the title.
func TestNotificationsInABrowser(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	steps := make(chan struct{})
	w.model.Queue(openaitest.Answer{Text: "Here it is.", Pieces: 1, Steps: steps})
	b := w.tab(w.chromium(), desktopWidth, desktopHeight)
	b.run(chromedp.Evaluate(`window.told = []; window.Notification = class { constructor(title, o) { told.push(title + ": " + o.body); }
		static permission = "granted"; };
		Object.defineProperty(document, "hidden", {get: () => window.away ?? false})`, nil))
	b.says("later, please")
	b.shows("later, please")
	b.run(chromedp.Evaluate(`window.away = true`, nil))
	close(steps)
	b.is("the notification", `told.join() === "New message from Main conversation: Here it is."`)
	b.is("the title", `document.title.startsWith("(1) ")`)
	b.run(chromedp.Evaluate(`window.away = false; document.dispatchEvent(new Event("visibilitychange"))`, nil))
	b.is("the title", `!document.title.startsWith("(")`)
}

// All that one needs is reached by keyboard, and has a name for a screen reader; a narrow window has no
// scroll bar at its bottom; the page asks for nothing from elsewhere, and is small.
func TestThePageIsUsable(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	b := w.tab(w.chromium(), phoneWidth, phoneHeight)
	for _, scheme := range []string{"light", "dark"} {
		b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}}))
		b.picture("empty-phone-" + scheme)
	}
	if got := b.value(`[...document.querySelectorAll("button, a, input, textarea, select, summary")].filter((e) =>
		!e.hidden && !e.ariaHidden && !(e.ariaLabel || e.innerText?.trim() || e.textContent?.trim() || e.labels?.length ||
		e.placeholder)).map((e) => e.outerHTML).join("; ")`); got != "" {
		t.Errorf("without a name: %s", got)
	}
	for _, landmark := range []string{"header", "nav[aria-label]", "main", "[role=log]", "[role=status]", "[role=search]"} {
		if got := b.value(fmt.Sprintf(`document.querySelectorAll(%q).length`, landmark)); got == "0" {
			t.Errorf("there is no %s", landmark)
		}
	}
	if got := b.value(`performance.getEntriesByType("resource").filter((e) => !e.name.startsWith(location.origin)).length`); got != "0" {
		t.Errorf("%s requests to elsewhere", got)
	}
	size, err := strconv.Atoi(b.value(`performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
		.reduce((sum, e) => sum + e.decodedBodySize, 0)`))
	if err != nil || size > 150_000 || size < 10_000 {
		t.Errorf("the page has %d bytes, %v", size, err)
	}
	t.Logf("%d bytes; first paint after %s ms", size, b.value(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime`))
	b.run(chromedp.Click("#menu", chromedp.ByQuery))
	b.is("the navigation", `getComputedStyle(document.getElementById("navigation")).visibility === "visible"`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.is("no navigation", `getComputedStyle(document.getElementById("navigation")).visibility === "hidden" &&
		document.activeElement.id === "menu"`)
}

// A form of a page is no request of a foreign site.
func TestAFormInABrowserGetsIn(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	b := w.tab(w.chromium(), desktopWidth, desktopHeight)
	b.outage(true) // a refusal is an error in the console
	b.run(chromedp.Evaluate(`{const f = document.createElement("form"); f.method = "post"; f.action = "/chat/read";
		document.body.append(f); f.submit()}`, nil))
	b.is("the answer of the page", `location.pathname === "/chat/read" && document.body.innerText.includes("reload the page")`)
}

// pngOf is a picture.
func pngOf(width, height int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)))
	return b.Bytes()
}
