package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call makes a call with the bot's token, and returns Slack's error and Retry-After.
func call(t *testing.T, s *Server, token, method string, p url.Values) (answer map[string]any, retryAfter string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+method, strings.NewReader(p.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer, resp.Header.Get("Retry-After")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.AddConversation("C1", Channel, "one")
	s.AddConversation("C2", Channel, "two")
	s.Leave("C2")
	s.AddConversation("C3", Channel, "three")
	s.Archive("C3")
	ts := s.Inject(Incoming{User: "U1", Channel: "C1", Text: "hello"})
	old := s.BotToken()
	many := "[" + strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}]`
	rich := `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"%s"}]}]}]`
	for _, tt := range []struct {
		method string
		p      url.Values
		want   string
	}{
		{"chat.postMessage", url.Values{"channel": {"C9"}, "text": {"x"}}, "channel_not_found"},
		{"chat.postMessage", url.Values{"channel": {"C2"}, "text": {"x"}}, "not_in_channel"},
		{"chat.postMessage", url.Values{"channel": {"C3"}, "text": {"x"}}, "is_archived"},
		{"chat.postMessage", url.Values{"channel": {"C1"}, "text": {" "}}, "no_text"},
		{"chat.postMessage", url.Values{"channel": {"C1"}, "text": {"x"}, "thread_ts": {"1.2"}}, "thread_not_found"},
		{"chat.postMessage", url.Values{"channel": {"C1"}, "text": {"x"}, "blocks": {many}}, "invalid_blocks"},
		{"chat.postMessage", url.Values{"channel": {"C1"}, "text": {"x"}, "blocks": {fmt.Sprintf(rich, "")}}, "invalid_blocks"},
		{
			"chat.postMessage",
			url.Values{"channel": {"C1"}, "text": {"x"}, "blocks": {fmt.Sprintf(rich, strings.Repeat("x", maxBlocksText+1))}},
			"msg_blocks_too_long",
		},
		{"chat.update", url.Values{"channel": {"C1"}, "ts": {ts}, "text": {"x"}}, "cant_update_message"},
		{"chat.delete", url.Values{"channel": {"C1"}, "ts": {"1.2"}}, "message_not_found"},
		{"users.info", url.Values{"user": {"U9"}}, "user_not_found"},
		{"no.such", nil, "unknown_method"},
		{"apps.connections.open", nil, "not_allowed_token_type"},
	} {
		if answer, _ := call(t, s, old, tt.method, tt.p); answer["error"] != tt.want {
			t.Errorf("%s %v: %v, want %s", tt.method, tt.p, answer, tt.want)
		}
	}
	posted, _ := call(t, s, old, "chat.postMessage", url.Values{"channel": {"C1"}, "text": {"x"}})
	long := url.Values{"channel": {"C1"}, "ts": {fmt.Sprint(posted["ts"])}, "text": {strings.Repeat("x", maxEdit+1)}}
	if answer, _ := call(t, s, old, "chat.update", long); answer["error"] != "msg_too_long" {
		t.Errorf("a long edit: %v", answer)
	}
	s.Revoke()
	if answer, _ := call(t, s, old, "auth.test", nil); answer["error"] != "token_revoked" {
		t.Errorf("a revoked token: %v", answer)
	}
	if answer, _ := call(t, s, "xoxb-none", "auth.test", nil); answer["error"] != "invalid_auth" {
		t.Errorf("an unknown token: %v", answer)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	s := Start(t, WithLimits(), WithClock(func() time.Time { return now }))
	s.AddConversation("C1", Channel, "one")
	s.AddConversation("C2", Channel, "two")
	post := func(channel string) (string, string) {
		answer, retry := call(t, s, s.BotToken(), "chat.postMessage", url.Values{"channel": {channel}, "text": {"x"}})
		code, _ := answer["error"].(string)
		return code, retry
	}
	for range tiers["chat.postMessage"].burst {
		if code, _ := post("C1"); code != "" {
			t.Fatalf("refused: %s", code)
		}
	}
	if code, retry := post("C1"); code != "ratelimited" || retry != "1" {
		t.Errorf("beyond the rate: %q, Retry-After %q", code, retry)
	}
	if code, _ := post("C2"); code != "" {
		t.Errorf("another conversation: %s", code)
	}
}

// An envelope that is not acknowledged in time comes again at once.
func TestEnvelopesAreRepeated(t *testing.T) {
	t.Parallel()
	s := Start(t, WithAckTimeout(time.Millisecond))
	opened, _ := call(t, s, s.AppToken(), "apps.connections.open", nil)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), fmt.Sprint(opened["url"]), nil) //nolint:bodyclose // none
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	s.Say("U1", "hello")
	for _, want := range []string{"hello", "events_api 0", "events_api 1"} {
		var frame struct {
			Type    string `json:"type"`
			Attempt int    `json:"retry_attempt"`
		}
		if err := conn.ReadJSON(&frame); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(fmt.Sprint(frame.Type, " ", frame.Attempt)); got != want && frame.Type != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if s.Late() == 0 || s.Repeats() == 0 {
		t.Errorf("%d envelopes were late, %d were repeated", s.Late(), s.Repeats())
	}
}
