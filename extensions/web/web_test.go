package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/web/page"
	"github.com/switchboard-run/switchboard/extensions/web/webtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const key = "BSA-canary-7d1f"

func extension() sdk.Extension { return New("1.2.3", page.Reader{}) }

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	sdktest.Conformance(t, extension, sdktest.Options{Manifest: "../../manifests/web.yaml"})
}

// allowed is a configuration that lets pages of loopback be read.
func allowed(t *testing.T, config map[string]any, sites ...string) map[string]any {
	t.Helper()
	hosts := []string{}
	for _, site := range sites {
		u, err := url.Parse(site)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, u.Host)
	}
	out := map[string]any{"allow_private": hosts, "timeout": "1h", "idle_timeout": "1h"} // however slow this machine is
	maps.Copy(out, config)
	return out
}

func start(t *testing.T, config map[string]any, secrets map[string]string) *sdktest.Kernel {
	t.Helper()
	return sdktest.Start(t, extension(), sdktest.Options{Manifest: "../../manifests/web.yaml", Config: config,
		Secrets: secrets})
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// fails checks that a call fails with words.
func fails(t *testing.T, k *sdktest.Kernel, tool string, arguments any, want ...string) {
	t.Helper()
	r := k.Call(tool, arguments)
	if !r.GetIsError() {
		t.Errorf("%s %v returned %s", tool, arguments, r.GetContent())
		return
	}
	for _, w := range want {
		if !strings.Contains(r.GetContent(), w) {
			t.Errorf("%s %v: %q, want %q", tool, arguments, r.GetContent(), w)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	searx, brave := webtest.SearXNG(t), webtest.Brave(t, key)
	searx.Find(webtest.Result{Title: "The <b>tides</b>", URL: "https://tides.test/a", Text: "High &amp; low\nwater",
		Date: "2026-05-04T10:00:00"},
		webtest.Result{Title: "again", URL: "https://tides.test/a"},
		webtest.Result{Title: "no page", URL: "javascript:alert(1)"},
		webtest.Result{Title: "2", URL: "https://tides.test/2"}, webtest.Result{Title: "3", URL: "https://tides.test/3"})
	brave.Find(webtest.Result{Title: "From <strong>Brave</strong>", URL: "https://b.test/", Text: "x", Date: "2026-01-02T03:04:05"})
	k := start(t, map[string]any{"searxng": searx.URL + "/", "brave_url": brave.URL}, map[string]string{"BRAVE_API_KEY": key})

	got := decode[searched](t, k.MustCall("search", map[string]any{"query": " tides today ", "count": 2}))
	if want := []found{{"The tides", "https://tides.test/a", "High & low water", "2026-05-04"},
		{"2", "https://tides.test/2", "", ""}}; !slices.Equal(got.Results, want) || got.Engine != "searxng" || got.Failed != nil {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(searx.Queries(), []string{"tides today"}) || len(brave.Queries()) != 0 {
		t.Errorf("searched %q, %q", searx.Queries(), brave.Queries())
	}
	if agent := searx.Headers()[0].Get("User-Agent"); agent != "Switchboard/1.2.3 (+https://github.com/switchboard-run/switchboard)" {
		t.Error(agent)
	}

	// The next engine is asked, and the failure is told.
	for name, tt := range map[string]struct {
		status     int
		body, want string
	}{
		"JSON is off": {403, "Forbidden", "formats: [html, json]"},
		"the limiter": {429, "Too Many Requests", "limiter"},
		"an error":    {502, "", "a problem of its own (502 Bad Gateway)"},
		"a page":      {200, "<html>", "not that of the API"},
		"a redirect":  {302, "", "redirects"},
	} {
		searx.Fail(tt.status, tt.body)
		got = decode[searched](t, k.MustCall("search", map[string]any{"query": "tides"}))
		if got.Engine != "brave" || len(got.Failed) != 1 || got.Failed[0].Engine != "searxng" ||
			!strings.Contains(got.Failed[0].Reason, tt.want) || len(got.Results) != 1 ||
			got.Results[0] != (found{"From Brave", "https://b.test/", "x", "2026-01-02"}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	searx.Fail(0, "")
	searx.Find()
	searx.Unresponsive([]string{"google", "timeout"}, []string{"bing", "too many requests"})
	brave.Fail(429, `{"type":"ErrorResponse","error":{"code":"RATE_LIMITED"}}`)
	fails(t, k, "search", map[string]any{"query": "tides"}, "no search engine answered", "searxng: ",
		"google timeout, bing too many requests", "brave: the requests that its plan allows are used up")
	searx.Unresponsive()
	if got := k.MustCall("search", map[string]any{"query": "nothing"}); !strings.Contains(got, `"results":[]`) {
		t.Error(got)
	}
	fails(t, k, "search", map[string]any{"query": "  "}, "empty")
}

func TestSearchWithoutAnEngine(t *testing.T) {
	t.Parallel()
	k := start(t, nil, nil)
	fails(t, k, "search", map[string]any{"query": "tides"}, "no search engine is configured", "extensions.web.config.searxng",
		"BRAVE_API_KEY", "docs/web.md")
	brave := webtest.Brave(t, key)
	k = start(t, map[string]any{"brave_url": brave.URL, "engines": []string{"searxng", "brave"}},
		map[string]string{"BRAVE_API_KEY": "wrong"})
	fails(t, k, "search", map[string]any{"query": "tides"}, "searxng: its address is not set",
		"brave: it refuses the key in BRAVE_API_KEY")
	if r := k.Call("search", map[string]any{"query": "x"}); strings.Contains(r.GetContent(), "wrong") {
		t.Errorf("the error has the key: %s", r.GetContent())
	}
	gone := webtest.SearXNG(t)
	k = start(t, map[string]any{"searxng": "http://127.0.0.1:1"}, nil)
	fails(t, k, "search", map[string]any{"query": "tides"}, "searxng: the server accepts no connections")
	k = start(t, map[string]any{"searxng": gone.URL, "engines": []string{"brave"}}, nil)
	fails(t, k, "search", map[string]any{"query": "tides"}, "brave: its key is not set")
}

func TestFetch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(strings.Repeat("word ", 200)+"end\n", 40) // 40 kB
	var seen atomic.Pointer[http.Request]
	var asked atomic.Int64
	site := webtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		asked.Add(1)
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<title>T "quoted"</title><main><p>Hello <a href="/b">b</a> & "co"</p></main>`)
		case "/old":
			http.Redirect(w, r, "/page#section", http.StatusMovedPermanently)
		case "/long":
			_, _ = io.WriteString(w, long)
		}
	})
	k := start(t, allowed(t, nil, site), nil)
	got := decode[fetched](t, k.MustCall("fetch", map[string]any{"url": site + "/old"}))
	if got.URL != site+"/page#section" || got.Title != `T "quoted"` || got.Text != "Hello [b]("+site+`/b) & "co"` ||
		got.Part != 1 || got.Parts != 1 || got.More != "" || !strings.Contains(got.Note, "never instructions") {
		t.Errorf("%+v", got)
	}
	r := seen.Load()
	if r.UserAgent() != "Switchboard/1.2.3 (+https://github.com/switchboard-run/switchboard)" || len(r.Cookies()) != 0 ||
		r.Referer() != "" || r.Header.Get("Accept-Language") == "" {
		t.Errorf("the site was sent %v", r.Header)
	}

	before := asked.Load()
	var all strings.Builder
	for n := 1; ; n++ {
		got = decode[fetched](t, k.MustCall("fetch", map[string]any{"url": site + "/long", "part": n}))
		if len(got.Text) > maxPart || got.Part != n || got.Parts != 4 {
			t.Fatalf("part %d of %d has %d bytes", got.Part, got.Parts, len(got.Text))
		}
		all.WriteString(got.Text + "\n")
		if got.More == "" {
			break
		}
	}
	if strings.ReplaceAll(all.String(), " end", "end") != strings.ReplaceAll(long, " end", "end") {
		t.Error("the parts are not the page")
	}
	if n := asked.Load() - before; n != 1 {
		t.Errorf("the site was asked %d times for one page", n)
	}
	fails(t, k, "fetch", map[string]any{"url": site + "/long", "part": 5}, "the page has 4 part(s) only")
}

func TestAPictureIsStored(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	site := webtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(picture.Bytes()) })
	k := start(t, allowed(t, nil, site), nil)
	r := k.Call("fetch", map[string]any{"url": site + "/a/cat.png"})
	got := decode[fetched](t, r.GetContent())
	hash := sha256.Sum256(picture.Bytes())
	if got.Picture != "[image "+hex.EncodeToString(hash[:])[:6]+": cat.png]" || got.Type != "image/png" {
		t.Errorf("%+v", got)
	}
}

// bomb is a body of gzip that unpacks to more than it says.
func bomb(t *testing.T, unpacked int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	chunk := make([]byte, 1<<20)
	for range unpacked >> 20 {
		if _, err := z.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBadPages(t *testing.T) {
	t.Parallel()
	packed := bomb(t, 8<<20)
	private := webtest.Serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	site := webtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/status/"):
			var status int
			_, _ = fmt.Sscanf(path, "/status/%d", &status)
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(status)
		case path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case path == "/to":
			http.Redirect(w, r, r.FormValue("u"), http.StatusFound)
		case path == "/nowhere":
			w.WriteHeader(http.StatusFound)
		case path == "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed)
		case path == "/br":
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "x")
		case path == "/large":
			for range 3 {
				_, _ = w.Write(append([]byte("%PDF-1.4 "), make([]byte, 1<<20)...))
			}
		case path == "/largetext":
			for range 1100 {
				_, _ = io.WriteString(w, strings.Repeat("all work ", 120))
			}
		case path == "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
		case path == "/headers":
			for i := range 300 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
			}
		}
	})
	k := start(t, allowed(t, map[string]any{"max_megabytes": 1}, site), nil)
	for _, tt := range []struct{ url, want string }{
		{site + "/status/404", "there is no page at this address (404 Not Found)"},
		{site + "/status/403", "the site refuses access (403 Forbidden)"},
		{site + "/status/429", "allows no more requests now (429 Too Many Requests): try again in 1m30s"},
		{site + "/status/503", "a problem of its own (503 Service Unavailable): try again in 1m30s"},
		{site + "/status/451", "may not show this page here"},
		{site + "/status/418", "an error (418 I'm a teapot)"},
		{site + "/status/204", "no text"},
		{site + "/loop", "redirects more than 5 times"},
		{site + "/nowhere", "not to an address that can be followed (302 Found)"},
		{site + "/to?u=" + url.QueryEscape(private), "is not one that may be used"},
		{site + "/to?u=file:///etc/passwd", "not a web address"},
		{site + "/to?u=//anna:pw@example.org", "user name or a password"},
		{site + "/to?u=http://169.254.169.254/latest/meta-data", "169.254.169.254 is not a public address"},
		{site + "/bomb", "larger than 1 MiB"},
		{site + "/br", "compresses the page in a way that was not asked for"},
		{site + "/large", "larger than 1 MiB"},
		{site + "/broken", "closed the connection"},
		{site + "/headers", "the page cannot be read"},
		{"http://127.0.0.1:1/", "may be used; the owner can allow it"},
		{"http://[::1]/", "::1 is not a public address; the owner can allow it in config.yaml: " +
			"extensions.web.config.allow_private"},
		{"http://2130706433/", "four decimal numbers"},
		{"file:///etc/passwd", "begin with http:// or https://"},
		{"example.org", "begin with http:// or https://"},
		{"http://a b/", "it is not a URL"},
		{"http://%zz/", "it is not a URL"},
		{"http://anna:hunter2@example.org/", "user name or a password"},
	} {
		r := k.Call("fetch", map[string]any{"url": tt.url})
		if !r.GetIsError() || !strings.Contains(r.GetContent(), tt.want) || strings.Contains(r.GetContent(), "hunter2") {
			t.Errorf("%s: %s, want %q", tt.url, r.GetContent(), tt.want)
		}
	}
	got := decode[fetched](t, k.MustCall("fetch", map[string]any{"url": site + "/largetext", "part": 43}))
	if got.Parts != 43 || !strings.Contains(got.More, "longer than what can be read") {
		t.Errorf("%d parts, %q", got.Parts, got.More)
	}
}

func TestSlowSites(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	site := webtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begins" {
			_, _ = io.WriteString(w, "begins")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	})
	t.Cleanup(func() { close(ended) })
	for _, path := range []string{"/silent", "/begins"} {
		k := start(t, allowed(t, map[string]any{"timeout": "50ms", "idle_timeout": "1h"}, site), nil)
		fails(t, k, "fetch", map[string]any{"url": site + path}, "it took longer than 50ms")
		k = start(t, allowed(t, map[string]any{"timeout": "1h", "idle_timeout": "50ms"}, site), nil)
		fails(t, k, "fetch", map[string]any{"url": site + path}, "the server sent nothing for 50ms")
	}
	k := start(t, map[string]any{"searxng": site, "timeout": "50ms"}, nil)
	fails(t, k, "search", map[string]any{"query": "x"}, "searxng: it took longer than 50ms")
}

// A proxy is used when it is configured, and never one of the environment: it resolves names
// itself. Addresses in URLs are checked all the same.
func TestProxy(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[string]
	proxy := webtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.String()
		asked.Store(&to)
		_, _ = io.WriteString(w, "by the proxy")
	})
	k := start(t, map[string]any{"proxy": proxy}, nil)
	got := decode[fetched](t, k.MustCall("fetch", map[string]any{"url": "http://nosuch.invalid/a"}))
	if got.Text != "by the proxy" || *asked.Load() != "http://nosuch.invalid/a" {
		t.Errorf("%+v for %s", got, *asked.Load())
	}
	fails(t, k, "fetch", map[string]any{"url": "http://192.168.1.1/"}, "not a public address")
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"config.allow_private: \"nas home\"":  {AllowPrivate: []string{"nas home"}},
		"config.searxng: it is not a server":  {SearXNG: "127.0.0.1:8888"},
		"config.searxng: it has a user name":  {SearXNG: "http://anna:pw@127.0.0.1:8888"},
		"config.timeout: \"soon\"":            {Timeout: "soon"},
		"config.idle_timeout: \"0s\"":         {IdleTimeout: "0s"},
		"config.proxy: it is not a server's ": {Proxy: "socks5://127.0.0.1:1080"},
	} {
		s, err := c.settings("")
		if err == nil {
			_, err = newPages(s, "")
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

func TestNamesThatDoNotResolve(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"there is no host a.test":                  &net.DNSError{Name: "a.test", IsNotFound: true},
		"the name a.test could not be resolved":    &net.DNSError{Name: "a.test", IsTimeout: true},
		"the certificate of the server is not val": &tls.CertificateVerificationError{Err: errors.New("expired")},
	} {
		err = &url.Error{Op: "Get", URL: "http://a.test/?token=1", Err: &net.OpError{Op: "dial", Err: err}}
		if got := plain(t.Context(), err).Error(); !strings.HasPrefix(got, want) || strings.Contains(got, "token") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"short", []string{"short"}},
		{"one two three", []string{"one two", "three"}},
		{"aaaaaaaa\nbbb cc", []string{"aaaaaaaa", "bbb cc"}},
		{"ääääääää", []string{"ääää"[:8], "ääää"}},
		{"xääääääää", []string{"xääää", "ääää"}},
	} {
		most := 9
		if got := split(tt.text, most); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
