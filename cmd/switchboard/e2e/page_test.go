package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/internal/loopback"
)

// page is the web channel of a world.
type page struct {
	w    *world
	base string // its URL
	host string
}

// withPage enables the web channel on a free port.
func withPage(t *testing.T, w *world, more string) *page {
	t.Helper()
	port, err := loopback.Take()
	if err != nil {
		t.Fatal(err)
	}
	port.Release()
	w.config(fmt.Sprintf("extensions: {web_channel: {config: {listen: %q}}}\n%s", port.Addr, more))
	return &page{w: w, base: "http://" + port.Addr, host: port.Addr}
}

// link is a link of `switchboard web`.
func (p *page) link(args ...string) string {
	p.w.t.Helper()
	first, _, _ := strings.Cut(p.w.must(append([]string{"web", "--no-open"}, args...)...), "\n")
	return first
}

// browser is a browser in which a person is logged in.
type browser struct {
	*http.Client
	p *page
}

func (p *page) open(args ...string) *browser {
	p.w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.w.t.Fatal(err)
	}
	b := &browser{Client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, p: p}
	if status, body := b.get(strings.TrimPrefix(p.link(args...), p.base)); status != http.StatusSeeOther {
		p.w.t.Fatalf("the link answers %d %s", status, body)
	}
	return b
}

// get requests a path and returns the status and the body.
func (b *browser) get(path string, header ...string) (status int, body string) {
	b.p.w.t.Helper()
	return b.do(http.MethodGet, path, "", header...)
}

func (b *browser) do(method, path, sent string, header ...string) (status int, body string) {
	b.p.w.t.Helper()
	q, err := http.NewRequestWithContext(b.p.w.ctx(), method, b.p.base+path, strings.NewReader(sent))
	if err != nil {
		b.p.w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			q.Host = header[i+1]
			continue
		}
		q.Header.Set(header[i], header[i+1])
	}
	answer, err := b.Do(q)
	if err != nil {
		b.p.w.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		b.p.w.t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

// A link logs one browser in, once, and the login outlives the kernel.
func TestThePageLetsInWhoHasALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := withPage(t, w, "")
	w.start()
	link := p.link()
	owner := &browser{Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, p: p}
	owner.Jar, _ = cookiejar.New(nil)
	path := strings.TrimPrefix(link, p.base)
	if status, _ := owner.get(path); status != http.StatusSeeOther {
		t.Fatalf("the link answers %d", status)
	}
	thief := &browser{Client: &http.Client{CheckRedirect: owner.CheckRedirect}, p: p}
	if status, body := thief.get(path); status != http.StatusForbidden || !strings.Contains(body, "used already") {
		t.Errorf("a stolen link answers %d %s", status, body)
	}
	if status, body := thief.get("/board"); status != http.StatusUnauthorized {
		t.Errorf("without a login the board answers %d %s", status, body)
	}
	if status, body := owner.get("/"); status != http.StatusOK || !strings.Contains(body, "<html") {
		t.Errorf("the page answers %d %.300s", status, body)
	}
	w.crash()
	w.start()
	w.must("web", "--no-open") // it is up
	if status, _ := owner.get("/"); status != http.StatusOK {
		t.Errorf("after the kernel was killed, the page answers %d", status)
	}

	terminal := w.attach()
	text := terminal.ask("/web")
	found := regexp.MustCompile(regexp.QuoteMeta(p.base) + `/enter\?code=[A-Z2-7]+`).FindString(text)
	if found == "" {
		t.Fatalf("/web answers %q", text)
	}
	if status, _ := thief.get(strings.TrimPrefix(found, p.base)); status != http.StatusSeeOther {
		t.Errorf("the link of /web answers %d", status)
	}
}

// The first command that needs the page enables it, and its output is what it is later.
func TestACommandEnablesThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withPage(t, w, "")
	w.config(strings.Replace(w.text("config.yaml"), "{config:", "{enabled: false, config:", 1))
	w.start()
	var made struct{ Token string }
	out := w.must("tokens", "create", "laptop", "--scope", "read", "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Token == "" {
		t.Errorf("the first token is %q: %v", out, err)
	}
}

// Tokens are made, listed without their secrets, and end at once.
func TestTokensOfPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := withPage(t, w, "")
	w.start()
	var made struct{ Name, Token, URL string }
	if err := json.Unmarshal([]byte(w.must("tokens", "create", "laptop", "--scope", "all", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	if made.Token == "" || made.URL != p.base {
		t.Fatalf("made %+v", made)
	}
	program := &browser{Client: &http.Client{}, p: p}
	bearer := "Bearer " + made.Token
	if status, body := program.get("/v1/models", "Authorization", bearer); status != http.StatusOK {
		t.Errorf("a token gets %d %s", status, body)
	}
	// With a link it would be everything that its person may be, not what its scopes say.
	for path, sent := range map[string]string{
		"/api/v1/messages":     `{"text": "/web", "wait": 60}`,
		"/v1/chat/completions": `{"model": "orchestrator", "messages": [{"role": "user", "content": "/web"}]}`,
	} {
		status, body := program.do(http.MethodPost, path, sent, "Authorization", bearer, "Content-Type", "application/json")
		if status != http.StatusOK || strings.Contains(body, "/enter?code=") || !strings.Contains(body, "gives no links to itself") {
			t.Errorf("a token that says /web to %s gets %d %s", path, status, body)
		}
	}
	if list := w.must("tokens", "list"); !strings.Contains(list, "laptop") || strings.Contains(list, made.Token) {
		t.Errorf("the list is %s", list)
	}
	if _, stderr, code := w.cli("tokens", "create", "laptop", "--scope", "all"); code == 0 {
		t.Error("two tokens have one name")
	} else {
		contains(t, "the second one", stderr, "revoke it first")
	}
	if _, stderr, code := w.cli("tokens", "create", "x", "--scope", "everything"); code == 0 {
		t.Error("a scope that there isn't was accepted")
	} else {
		contains(t, "the scope", stderr, "no scope")
	}
	w.crash()
	w.start()
	w.must("tokens", "revoke", "laptop")
	if status, _ := program.get("/v1/models", "Authorization", bearer); status != http.StatusUnauthorized {
		t.Errorf("a revoked token gets %d", status)
	}
	for _, name := range []string{"switchboard.db", "switchboard.db-wal"} {
		if data, err := os.ReadFile(w.file(name)); err != nil || bytes.Contains(data, []byte(made.Token)) {
			t.Errorf("%s has the token in clear", name)
		}
	}
}

// What a page of another site, a name that an attacker points here, or a program without a
// login can send gets nothing, on any path.
func TestThePageRefusesWhatIsForeign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := withPage(t, w, "")
	w.start()
	owner := p.open()
	paths := []string{"/", "/board", "/board/extensions", "/live/chat", "/live/board", "/files/x", "/api/v1/sessions",
		"/api/v1/events", "/v1/models", "/metrics", "/openapi.json", "/trace/e1", "/search?q=a", "/nothing"}
	for _, path := range paths {
		for name, c := range map[string]struct {
			header []string
			status int
		}{
			"DNS rebinding":          {[]string{"Host", "evil.example" + p.host[strings.LastIndex(p.host, ":"):]}, 421},
			"a script elsewhere":     {[]string{"Origin", "https://evil.example"}, 403},
			"another port":           {[]string{"Origin", "http://127.0.0.1:1"}, 403},
			"a frame":                {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
			"a script without a say": {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if status, body := owner.do(method, path, "", c.header...); status != c.status {
					t.Errorf("%s, %s %s: %d %.200s", name, method, path, status, body)
				}
			}
		}
	}
	for _, path := range []string{"/static/../../../etc/passwd", "/static/x/..%2f..%2fgo.mod", "/files/..%2f..%2fsecrets.env",
		"//etc/passwd", "/board/../../secrets.env"} {
		if status, body := owner.get(path); status == http.StatusOK || strings.Contains(body, "root:") {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
}
