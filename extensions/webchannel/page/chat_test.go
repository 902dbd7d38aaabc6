package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

var (
	anna = door.Visitor{User: "anna", Name: "Anna", Person: "p1", Role: "owner", Language: "en"}
	ben  = door.Visitor{User: "ben", Name: "Ben", Person: "p2", Role: "member", Language: "ru"}
)

// site is the pages of a chat on a kernel. A request is of the visitor whose user is in its
// header X-User.
type site struct {
	*sdktest.Kernel
	chat *chat.Chat
	url  string
	t    *testing.T
}

func start(t *testing.T) *site {
	t.Helper()
	c := chat.New(time.Now)
	k := sdktest.Start(t, sdk.Extension{
		ID: "web_channel", Channel: c,
		Start: func(_ context.Context, k *sdk.Kernel) error { c.Start(k); return nil },
		Stop:  func(context.Context) error { c.Stop(); return nil },
	}, sdktest.Options{Manifest: "../chat/testdata/web_channel.yaml"})
	mux := http.NewServeMux()
	Register(mux, Options{Chat: c, Files: c, Watch: c.Watch, Log: sdktest.Logger(t)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := door.Visitor{}
		switch r.Header.Get("X-User") {
		case "anna":
			v = anna
		case "ben":
			v = ben
		}
		mux.ServeHTTP(w, r.WithContext(door.With(r.Context(), v)))
	}))
	t.Cleanup(server.Close)
	return &site{k, c, server.URL, t}
}

func (s *site) do(v door.Visitor, method, path string, body io.Reader, kind string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-User", v.User)
	r.Header.Set("Content-Type", kind)
	return s.send(r)
}

func (s *site) send(r *http.Request) *http.Response {
	s.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func (s *site) get(v door.Visitor, path string) (status int, body string, h http.Header) {
	s.t.Helper()
	answer := s.do(v, http.MethodGet, path, nil, "")
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(b), answer.Header
}

// post sends a value as JSON and decodes the answer.
func (s *site) post(v door.Visitor, path string, value, into any) (status int) {
	s.t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		s.t.Fatal(err)
	}
	answer := s.do(v, http.MethodPost, path, bytes.NewReader(b), "application/json")
	if into != nil {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			s.t.Fatal(err)
		}
	}
	return answer.StatusCode
}

func (s *site) answer(send contract.ChannelSend) {
	s.t.Helper()
	send.Kind, send.Conversation = contract.SendReply, anna.User
	s.Kernel.Send(send).MustAck(s.t)
}

// events reads a stream of events; each is its type, id and data.
type events struct {
	t    *testing.T
	from *bufio.Scanner
}

func (s *site) follow(v door.Visitor, path, lastID string) *events {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-User", v.User)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	answer := s.send(r)
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		s.t.Fatalf("%s: %d %s", path, answer.StatusCode, kind)
	}
	return &events{s.t, bufio.NewScanner(answer.Body)}
}

// next returns the next event of a type.
func (e *events) next(kind string) (id, data string) {
	e.t.Helper()
	found := ""
	for e.from.Scan() {
		field, value, _ := strings.Cut(e.from.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			found = value
		case "data":
			if found == kind {
				return id, value
			}
			id, found = "", ""
		}
	}
	e.t.Fatalf("the stream ended before %s: %v", kind, e.from.Err())
	return "", ""
}

func TestTheChatShowsWhatWasSaid(t *testing.T) {
	t.Parallel()
	s := start(t)
	var l lineFrame
	if status := s.post(anna, "/chat/say", said{ID: "m1", Text: "<b>hi</b>\nthere"}, &l); status != http.StatusOK || l.Seq != 1 {
		t.Fatalf("status %d, %+v", status, l)
	}
	s.answer(contract.ChannelSend{Text: "# Well\n\n**hello** <i>x</i>", Actions: []contract.Action{
		{Label: `Yes "now"`, Command: "/approve q7"}}})
	status, body, h := s.get(anna, "/")
	if status != http.StatusOK || h.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %v", status, h)
	}
	mustHave(t, body, `&lt;b&gt;hi&lt;/b&gt;`+"\nthere", "<h3>Well</h3>", "<strong>hello</strong> &lt;i&gt;x&lt;/i&gt;",
		`data-command="/approve q7">Yes &#34;now&#34;</button>`, `data-last="2"`, `href="/trace/`, "Main conversation")
	if _, body, _ = s.get(ben, "/"); strings.Contains(body, "hello") || !strings.Contains(body, "Основная беседа") {
		t.Errorf("another person sees\n%s", body)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	stranger := door.Visitor{User: "x"}
	for _, path := range []string{"/", "/live/chat", "/chat/lines", "/files/" + strings.Repeat("0", 64)} {
		if status, _, _ := s.get(stranger, path); status != http.StatusForbidden {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	for _, path := range []string{"/chat/say", "/chat/read", "/chat/delete", "/files"} {
		if status := s.post(stranger, path, said{ID: "1", Text: "x"}, nil); status != http.StatusForbidden {
			t.Errorf("POST %s: %d", path, status)
		}
	}
	for _, tc := range []struct {
		path, body, kind string
		want             int
	}{
		{"/chat/say", `{"id":"1","text":"x"}`, "text/plain", http.StatusUnprocessableEntity}, // as a foreign page may send it
		{"/chat/say", `{`, "application/json", http.StatusUnprocessableEntity},
		{"/chat/say", `{"id":"1"}`, "application/json", http.StatusUnprocessableEntity},
		{"/chat/say", `{"id":"1","files":["../../etc/passwd"]}`, "application/json", http.StatusNotFound},
		{"/chat/say", `{"id":"1","text":"x","conversation":"\u0000"}`, "application/json", http.StatusUnprocessableEntity},
	} {
		answer := s.do(anna, http.MethodPost, tc.path, strings.NewReader(tc.body), tc.kind)
		if answer.StatusCode != tc.want || answer.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d", tc.path, tc.body, answer.StatusCode)
		}
	}
	if got := s.Received(); len(got) != 0 {
		t.Errorf("received %+v", got)
	}
}

func TestTheStreamBringsEachLineOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.post(anna, "/chat/say", said{ID: "m1", Text: "one"}, nil)
	e := s.follow(anna, "/live/chat?after=0", "")
	id, data := e.next("line")
	mustHave(t, data, `"id":"m1"`, `"seq":1`)
	s.chat.Draft(t.Context(), sdk.Draft{Conversation: "anna", ID: "d1", Text: "*tw"})
	_, data = e.next("draft")
	mustHave(t, data, `"id":"d1"`, "*tw")
	s.answer(contract.ChannelSend{Text: "two", DraftID: "d1"})
	_, data = e.next("line")
	mustHave(t, data, `"seq":2`, `"draft":"d1"`, "two")
	_, data = s.follow(anna, "/live/chat?after=0", id).next("line")
	mustHave(t, data, `"seq":2`)
	_, data = s.follow(anna, "/live/chat?after=1", "").next("line")
	mustHave(t, data, `"seq":2`)
}

func TestTheStreamTellsOfOtherConversations(t *testing.T) {
	t.Parallel()
	s := start(t)
	e := s.follow(anna, "/live/chat?c=x", "")
	e.next("beat")
	s.answer(contract.ChannelSend{Text: "look", Thread: programs + "robot~1"}) // of a program: not told
	s.answer(contract.ChannelSend{Text: "look <here>", Thread: "trip"})
	for {
		_, data := e.next("conversation") // what was said before it watched may be told, too
		if strings.Contains(data, programs) {
			t.Errorf("told %s", data)
		}
		if strings.Contains(data, `"name":"trip","unread":1`) {
			mustHave(t, data, `look \u0026lt;here\u0026gt;`)
			break
		}
	}
	s.post(anna, "/chat/read", map[string]any{"conversation": "trip", "seq": 1}, nil)
	_, data := e.next("conversation")
	mustHave(t, data, `"name":"trip","unread":0`)
	s.post(anna, "/chat/delete", map[string]any{"conversation": "trip"}, nil)
	_, data = e.next("conversation")
	mustHave(t, data, `"deleted":true`)
	if _, body, _ := s.get(anna, "/"); strings.Contains(body, "robot") || !strings.Contains(body, "/?all") {
		t.Error("the conversations of programs are listed, or can't be")
	}
	if _, body, _ := s.get(anna, "/?all"); !strings.Contains(body, "robot") {
		t.Error("the conversations of programs aren't listed")
	}
}

func TestEarlierLinesComeInPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range firstLines + moreLines + 10 {
		s.post(anna, "/chat/say", said{ID: string(rune('a'+i/26)) + string(rune('a'+i%26)), Text: "x"}, nil)
	}
	_, body, _ := s.get(anna, "/")
	mustHave(t, body, `data-first="111"`)
	_, body, _ = s.get(anna, "/chat/lines?before=111")
	var page struct{ Lines []lineFrame }
	if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Lines) != moreLines || page.Lines[0].Seq != 11 {
		t.Errorf("%d lines, %v", len(page.Lines), err)
	}
}

func (s *site) upload(v door.Visitor, name, kind, content string) (blob string) {
	s.t.Helper()
	answer := s.do(v, http.MethodPost, "/files?name="+url.QueryEscape(name), strings.NewReader(content), kind)
	var a struct{ Blob string }
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil || a.Blob == "" {
		s.t.Fatalf("upload %s: %d %v", name, answer.StatusCode, err)
	}
	return a.Blob
}

// What a browser would run is saved, and never shown.
func TestFilesNeverRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, tc := range []struct{ name, claimed, content, kind, how string }{
		{"a.html", "image/png", "<html><script>alert(1)</script>", "application/octet-stream", "attachment"},
		{"a.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`,
			"application/octet-stream", "attachment"},
		{"a.js", "text/javascript", "alert(1)", "application/octet-stream", "attachment"},
		{"a\"\r\nX-Evil: 1.png", "text/html", "\x89PNG\r\n\x1a\n", "image/png", "inline"},
		{"v.webm", "audio/webm", "\x1aE\xdf\xa3\x42\x82\x84webm", "video/webm", "attachment"},
	} {
		blob := s.upload(anna, tc.name, tc.claimed, tc.content)
		status, body, h := s.get(anna, "/files/"+blob)
		if status != http.StatusOK || body != tc.content || h.Get("Content-Type") != tc.kind ||
			!strings.HasPrefix(h.Get("Content-Disposition"), tc.how) || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Content-Security-Policy") != filePolicy || h.Get("X-Evil") != "" {
			t.Errorf("%q: %d %v", tc.name, status, h)
		}
		if status, _, _ := s.get(ben, "/files/"+blob); status != http.StatusNotFound {
			t.Errorf("%q for another person: %d", tc.name, status)
		}
	}
	for _, path := range []string{"/files/..%2f..%2fetc%2fpasswd", "/files/x", "/files/" + strings.Repeat("0", 64)} {
		if status, _, _ := s.get(anna, path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestAPartOfAFileCanBeRead(t *testing.T) {
	t.Parallel()
	s := start(t)
	content := strings.Repeat("0123456789", 20_000)
	blob := s.upload(anna, "long.txt", "text/plain", content)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/files/"+blob, nil)
	r.Header.Set("X-User", "anna")
	r.Header.Set("Range", "bytes=100003-100012")
	answer := s.send(r)
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusPartialContent || string(b) != "3456789012" {
		t.Errorf("%d %q %v", answer.StatusCode, b, err)
	}
}

func TestAMessageHasItsFiles(t *testing.T) {
	t.Parallel()
	s := start(t)
	blob := s.upload(anna, "cat.png", "image/png", "\x89PNG\r\n\x1a\n")
	var l lineFrame
	s.post(anna, "/chat/say", said{ID: "m1", Files: []string{blob}}, &l)
	mustHave(t, l.HTML, `<img src="/files/`+blob+`" alt="cat.png"`)
	if got := s.AwaitReceived(1)[0]; len(got.Attachments) != 1 || got.Attachments[0].Blob != blob {
		t.Errorf("received %+v", got)
	}
}

func TestMarkdownOfModelsIsHarmless(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`<script>alert(1)</script>`:                     "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n",
		`a <img src=x onerror=alert(1)> b`:              "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n",
		`[x](javascript:alert(1))`:                      "<p>x</p>\n",
		`[x](/board/people)`:                            "<p>x</p>\n",
		`[x](data:text/html,<script>alert(1)</script>)`: "<p>x</p>\n",
		`![cat](https://evil.example/x.png)`: `<p><a href="https://evil.example/x.png" rel="nofollow noreferrer noopener" ` +
			`target="_blank">cat</a></p>` + "\n",
		"```html\n<script>\n```":                        "<pre><code>&lt;script&gt;\n</code></pre>\n",
		"- [x] done":                                    "<ul>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\"> done</li>\n</ul>\n",
		"<style>*{display:none}</style>\n\n# Hi":        "<p>&lt;style&gt;*{display:none}&lt;/style&gt;\n</p>\n<h3>Hi</h3>",
		"\"><svg/onload=alert(1)>":                      "<p>&#34;&gt;&lt;svg/onload=alert(1)&gt;</p>\n",
		"[a](https://x.example \"t\" onclick=alert(1))": "<p>[a](<a href=\"https://x.example\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">https://x.example</a> &#34;t&#34; onclick=alert(1))</p>\n",
	} {
		if got := string(Markdown(source)); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", source, got, want)
		}
	}
}
