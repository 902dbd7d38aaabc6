package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a tab of a real browser. Each error in its console fails the test, except those of
// the network while the test has the kernel down.
type tab struct {
	t   *testing.T
	w   *world
	ctx context.Context

	mu       sync.Mutex
	down     bool
	problems []string
}

// Sizes of a window.
const (
	phoneWidth, phoneHeight     = 360, 740
	desktopWidth, desktopHeight = 1600, 900
)

// needChromium skips a test where there is none.
func needChromium(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed")
	}
}

// chromium starts a browser; its tabs share a profile. A browser that ends before it
// listens, as it sometimes does on a busy machine, is started again.
func (w *world) chromium(more ...chromedp.ExecAllocatorOption) context.Context {
	w.t.Helper()
	needChromium(w.t)
	for n := 1; ; n++ {
		ctx, err := w.startChromium(more...)
		if err == nil {
			return ctx
		}
		if n == 3 {
			w.t.Fatalf("start chromium: %v", err)
		}
		w.t.Logf("start chromium: %v; again", err)
	}
}

func (w *world) startChromium(more ...chromedp.ExecAllocatorOption) (context.Context, error) {
	// Not in the test's own directory: the browser's last processes may still write.
	profile, err := os.MkdirTemp(built, "profile")
	if err != nil {
		return nil, err
	}
	flags := append(append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...),
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience), // by default 20 s, too short on a busy machine
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-quic", true), chromedp.Flag("lang", "en-US"),
	)
	allocator, end := chromedp.NewExecAllocator(w.ctx(), append(flags, more...)...)
	w.t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocator)
	w.t.Cleanup(cancel)
	return ctx, chromedp.Run(ctx)
}

// tab opens a tab of a window's size and logs it in, with more arguments for the command
// that makes the link.
func (w *world) tab(browser context.Context, width, height int64, more ...string) *tab {
	w.t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	w.t.Cleanup(cancel)
	b := &tab{t: w.t, w: w, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	w.t.Cleanup(b.check)
	link, _, _ := strings.Cut(w.must(append([]string{"web", "--no-open"}, more...)...), "\n")
	b.run(log.Enable(), cdpage.BringToFront(), chromedp.EmulateViewport(width, height), chromedp.Navigate(link))
	b.sees("#text")
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && (!b.down || e.Entry.Source != log.SourceNetwork) {
			b.problems = append(b.problems, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.problems = append(b.problems, fmt.Sprintf("console.%s", e.Type))
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Error())
	}
}

// outage tells whether errors of the network are expected.
func (b *tab) outage(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// check fails the test if there were errors. A picture of a test that failed is kept where
// SWITCHBOARD_SCREENSHOTS names a directory.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("the console of the browser has: %s", p)
	}
	if b.t.Failed() {
		b.picture(b.t.Name())
	}
}

// picture keeps a screenshot where SWITCHBOARD_SCREENSHOTS names a directory.
func (b *tab) picture(name string) {
	dir := os.Getenv("SWITCHBOARD_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	if err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot(&png)); err != nil {
		b.t.Logf("take a picture: %v", err)
		return
	}
	name = strings.ReplaceAll(name, "/", "-") + ".png"
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o600); err != nil {
		b.t.Error(err)
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// sees waits until an element is visible.
func (b *tab) sees(selector string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(selector, chromedp.ByQuery))
}

// is evaluates a condition in the page, and waits until it is true.
func (b *tab) is(what, condition string) {
	b.t.Helper()
	if !b.w.waitFor(func() bool {
		var yes bool
		return chromedp.Run(b.ctx, chromedp.Evaluate("Boolean("+condition+")", &yes)) == nil && yes
	}) {
		b.t.Fatalf("in %s there was not: %s; %s", patience, what, b.value(`location + " has " + document.body.innerText`))
	}
}

// value evaluates an expression.
func (b *tab) value(expression string) (text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate("String("+expression+")", &text))
	return text
}

// says types a message and sends it with Enter.
func (b *tab) says(text string) {
	b.t.Helper()
	enter := func(kind input.KeyType) chromedp.Action {
		return input.DispatchKeyEvent(kind).WithKey("Enter").WithCode("Enter").WithWindowsVirtualKeyCode(13)
	}
	b.run(chromedp.SendKeys("#text", text, chromedp.ByQuery), enter(input.KeyDown), enter(input.KeyUp))
}

// lines are the texts of the conversation that are stored, one a line.
func (b *tab) lines() []string {
	b.t.Helper()
	return strings.Split(b.value(`[...document.querySelectorAll("#log .line .text")].map((e) => e.innerText.trim()).join("\n")`), "\n")
}

// shows waits until the conversation is these lines, each once and in order.
func (b *tab) shows(want ...string) {
	b.t.Helper()
	var got []string
	if !b.w.waitFor(func() bool { got = b.lines(); return strings.Join(got, "\n") == strings.Join(want, "\n") }) {
		b.t.Fatalf("the page shows %q, want %q", got, want)
	}
}
