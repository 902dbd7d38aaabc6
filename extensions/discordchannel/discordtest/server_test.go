package discordtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what the server answers to a request.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func ask(t *testing.T, s *discordtest.Server, method, path, kind, body string) (a answer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bot "+s.Token())
	r.Header.Set("User-Agent", "DiscordBot (x, 1)")
	r.Header.Set("Content-Type", kind)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_ = json.NewDecoder(resp.Body).Decode(&a.body)
	a.status, a.header = resp.StatusCode, resp.Header
	return a
}

func post(t *testing.T, s *discordtest.Server, body string) answer {
	t.Helper()
	return ask(t, s, http.MethodPost, "/channels/"+discordtest.DM("7777")+"/messages", "application/json", body)
}

func TestMessagesAreRefusedAsByDiscord(t *testing.T) {
	t.Parallel()
	s := discordtest.Start(t)
	s.Say("7777", "hello")
	buttons := func(rows, each int) string {
		var all []string
		for i := range rows {
			var row []string
			for j := range each {
				row = append(row, fmt.Sprintf(`{"type":2,"style":1,"label":"x","custom_id":"%d.%d"}`, i, j))
			}
			all = append(all, `{"type":1,"components":[`+strings.Join(row, ",")+`]}`)
		}
		return `{"content":"x","components":[` + strings.Join(all, ",") + `]}`
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		code   float64
	}{
		"a text":           {`{"content":"` + strings.Repeat("ж", 2000) + `"}`, 200, 0},
		"a long text":      {`{"content":"` + strings.Repeat("x", 2001) + `"}`, 400, 50035},
		"nothing":          {`{"content":" "}`, 400, 50006},
		"a long nonce":     {`{"content":"x","nonce":"` + strings.Repeat("1", 26) + `"}`, 400, 50035},
		"buttons":          {buttons(5, 5), 200, 0},
		"too many rows":    {buttons(6, 1), 400, 50035},
		"too many in one":  {buttons(1, 6), 400, 50035},
		"an unknown reply": {`{"content":"x","message_reference":{"message_id":"5"}}`, 400, 50035},
		"a lenient reply":  {`{"content":"x","message_reference":{"message_id":"5","fail_if_not_exists":false}}`, 200, 0},
		"no JSON":          {`{`, 400, 50109},
	} {
		if a := post(t, s, tc.body); a.status != tc.status || tc.code != 0 && a.body["code"] != tc.code {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := ask(t, s, http.MethodPost, "/channels/55555/messages", "", `{"content":"x"}`); a.body["code"] != 10003.0 {
		t.Errorf("an unknown channel: %+v", a)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for i := range 11 {
		part, _ := w.CreateFormFile(fmt.Sprintf("files[%d]", i), "a.txt")
		_, _ = part.Write([]byte("x"))
	}
	_ = w.Close()
	path := "/channels/" + discordtest.DM("7777") + "/messages"
	if a := ask(t, s, http.MethodPost, path, w.FormDataContentType(), form.String()); a.body["code"] != 50035.0 {
		t.Errorf("eleven files: %+v", a)
	}
}

func TestNoncesAreKnownForSomeMinutes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := discordtest.Start(t, discordtest.WithClock(func() time.Time { return now }))
	s.Say("7777", "hello")
	const first, second = `{"content":"one","nonce":"a","enforce_nonce":true}`, `{"content":"two","nonce":"a","enforce_nonce":true}`
	one, two := post(t, s, first), post(t, s, second)
	if one.body["id"] != two.body["id"] || two.body["content"] != "one" || len(s.Messages(discordtest.DM("7777"))) != 1 {
		t.Errorf("%+v and %+v", one, two)
	}
	now = now.Add(6 * time.Minute)
	if three := post(t, s, second); three.body["id"] == one.body["id"] {
		t.Errorf("six minutes later: %+v", three)
	}
}

func TestRatesAreEnforced(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := discordtest.Start(t, discordtest.WithLimits(discordtest.DiscordLimits()),
		discordtest.WithClock(func() time.Time { return now }))
	s.Say("7777", "hello")
	for i := range 5 {
		a := post(t, s, `{"content":"x"}`)
		if a.status != 200 || a.header.Get("X-RateLimit-Remaining") != fmt.Sprint(4-i) || a.header.Get("X-RateLimit-Bucket") == "" {
			t.Errorf("%d: %+v", i, a)
		}
	}
	a := post(t, s, `{"content":"x"}`)
	if a.status != 429 || a.body["retry_after"] != 5.0 || a.body["global"] != false || a.header.Get("Retry-After") != "5" {
		t.Errorf("the sixth: %+v", a)
	}
	now = now.Add(5 * time.Second)
	if a := post(t, s, `{"content":"x"}`); a.status != 200 {
		t.Errorf("later: %+v", a)
	}
	for range 49 {
		ask(t, s, http.MethodGet, "/users/@me", "", "")
	}
	if a := ask(t, s, http.MethodGet, "/users/@me", "", ""); a.status != 429 || a.body["global"] != true {
		t.Errorf("too many of the bot: %+v", a)
	}
}

// client is a connection to the gateway.
type client struct {
	*websocket.Conn
	t *testing.T
}

func connect(t *testing.T, s *discordtest.Server) client {
	t.Helper()
	address := strings.Replace(strings.TrimSuffix(s.URL(), "/api/v10"), "http", "ws", 1) + "/gateway?v=10&encoding=json"
	conn, resp, err := websocket.Dial(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	c := client{conn, t}
	if hello, _ := c.next(); hello["op"] != 10.0 {
		t.Fatalf("begins with %v", hello)
	}
	return c
}

func (c client) send(op int, data any) {
	c.t.Helper()
	if err := wsjson.Write(context.Background(), c.Conn, map[string]any{"op": op, "d": data}); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next payload, or the code that the connection was closed with.
func (c client) next() (payload map[string]any, code int) {
	c.t.Helper()
	if err := wsjson.Read(c.t.Context(), c.Conn, &payload); err != nil {
		return nil, int(websocket.CloseStatus(err))
	}
	return payload, 0
}

func identify(s *discordtest.Server) map[string]any {
	return map[string]any{"token": s.Token(), "intents": 1 << 12, "properties": map[string]any{"os": "x"}}
}

func TestCloseCodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		send func(*discordtest.Server, client)
		want int
	}{
		"before a session": {func(_ *discordtest.Server, c client) { c.send(3, nil) }, 4003},
		"an unknown token": {func(_ *discordtest.Server, c client) {
			c.send(2, map[string]any{"token": "x", "intents": 1, "properties": map[string]any{"os": "x"}})
		}, 4004},
		"two sessions": {func(s *discordtest.Server, c client) { c.send(2, identify(s)); c.send(2, identify(s)) }, 4005},
		"an intent that is off": {func(s *discordtest.Server, c client) {
			s.AllowContent(false)
			d := identify(s)
			d["intents"] = 1 << 15
			c.send(2, d)
		}, 4014},
		"no intents": {func(s *discordtest.Server, c client) {
			d := identify(s)
			delete(d, "intents")
			c.send(2, d)
		}, 4013},
		"too many payloads": {func(_ *discordtest.Server, c client) {
			for range 121 {
				c.send(1, nil)
			}
		}, 4008},
		"an unknown operation": {func(s *discordtest.Server, c client) { c.send(2, identify(s)); c.send(77, nil) }, 4001},
	} {
		s := discordtest.Start(t)
		c := connect(t, s)
		tc.send(s, c)
		code := 0
		for code == 0 {
			_, code = c.next()
		}
		if code != tc.want {
			t.Errorf("%s: closed with %d, want %d", name, code, tc.want)
		}
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	s := discordtest.Start(t)
	c := connect(t, s)
	c.send(2, identify(s))
	ready, _ := c.next()
	data, _ := ready["d"].(map[string]any)
	if ready["t"] != "READY" || ready["s"] != 1.0 {
		t.Fatalf("began with %v", ready)
	}
	s.DropConnections()
	for code := 0; code == 0; {
		_, code = c.next()
	}
	s.Say("7777", "one")
	s.Say("7777", "two")
	c = connect(t, s)
	c.send(6, map[string]any{"token": s.Token(), "session_id": data["session_id"], "seq": 2})
	for i, want := range []string{"MESSAGE_CREATE", "RESUMED"} {
		if e, _ := c.next(); e["t"] != want || e["s"] != float64(3+i) {
			t.Errorf("%d: %v, want %s", i, e, want)
		}
	}
	c = connect(t, s)
	c.send(6, map[string]any{"token": s.Token(), "session_id": "other", "seq": 2})
	if e, _ := c.next(); e["op"] != 9.0 || e["d"] != false {
		t.Errorf("an unknown session: %v", e)
	}
	c = connect(t, s)
	c.send(6, map[string]any{"token": s.Token(), "session_id": data["session_id"], "seq": 99})
	if _, code := c.next(); code != 4007 {
		t.Errorf("a number that was never sent: closed with %d", code)
	}
}
