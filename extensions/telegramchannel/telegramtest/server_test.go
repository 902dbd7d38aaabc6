package telegramtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

type m map[string]any

// try calls a method as JSON; the error is the transport's.
func try(ctx context.Context, s *telegramtest.Server, token, method string, params m) (reply, error) {
	body, _ := json.Marshal(params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/bot"+token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var r reply
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

func call(t *testing.T, s *telegramtest.Server, method string, params m) reply {
	t.Helper()
	r, err := try(t.Context(), s, s.Token(), method, params)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

func updateIDs(t *testing.T, r reply) []int64 {
	t.Helper()
	var list []struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(r.Result, &list); err != nil {
		t.Fatalf("updates: %v in %+v", err, r)
	}
	ids := []int64{}
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}

func TestSendMessageRules(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	s.Say(7, "hi")
	s.Block(8)
	s.AddChat(telegramtest.Chat{ID: -1001, Forum: true, Type: telegramtest.Supergroup}, 5)
	s.Migrate(-20, -1_000_000_000_020)
	for name, tc := range map[string]struct {
		params m
		code   int
		text   string
	}{
		"plain":           {m{"chat_id": 7, "text": "ok"}, 0, ""},
		"chat id as text": {m{"chat_id": "7", "text": "ok"}, 0, ""},
		"no chat":         {m{"text": "x"}, 400, "Bad Request: chat_id is empty"},
		"unknown chat":    {m{"chat_id": 99, "text": "x"}, 400, "Bad Request: chat not found"},
		"blocked":         {m{"chat_id": 8, "text": "x"}, 403, "Forbidden: bot was blocked by the user"},
		"migrated": {m{"chat_id": -20, "text": "x"}, 400,
			"Bad Request: group chat was upgraded to a supergroup chat"},
		"empty":      {m{"chat_id": 7, "text": " \n "}, 400, "Bad Request: message text is empty"},
		"4096 units": {m{"chat_id": 7, "text": strings.Repeat("😀", 2048)}, 0, ""},
		"4097 units": {m{"chat_id": 7, "text": strings.Repeat("😀", 2048) + "x"}, 400,
			"Bad Request: message is too long"},
		"long only as HTML": {m{"chat_id": 7, "text": "<b>" + strings.Repeat("x", 4096) + "</b>", "parse_mode": "HTML"}, 0,
			""},
		"topic": {m{"chat_id": -1001, "text": "x", "message_thread_id": 5}, 0, ""},
		"unknown topic": {m{"chat_id": -1001, "text": "x", "message_thread_id": 6}, 400,
			"Bad Request: message thread not found"},
		"reply to nothing": {m{"chat_id": 7, "text": "x", "reply_parameters": m{"message_id": 999}}, 400,
			"Bad Request: message to be replied not found"},
		"lenient reply": {m{"chat_id": 7, "text": "x",
			"reply_parameters": m{"message_id": 999, "allow_sending_without_reply": true}}, 0, ""},
		"other parse mode": {m{"chat_id": 7, "text": "x", "parse_mode": "RTF"}, 400, "Bad Request: unsupported parse_mode"},
		"bad HTML": {m{"chat_id": 7, "text": "<b>x", "parse_mode": "HTML"}, 400,
			`Bad Request: can't parse entities: Can't find end tag corresponding to start tag "b"`},
		"bad MarkdownV2": {m{"chat_id": 7, "text": "1.", "parse_mode": "MarkdownV2"}, 400,
			`Bad Request: can't parse entities: Character '.' is reserved and must be escaped with the preceding '\'`},
		"entity in a pair": {m{"chat_id": 7, "text": "😀x", "entities": []m{{"type": "bold", "offset": 1, "length": 1}}},
			400, "Bad Request: entity begins in a middle of a UTF-16 symbol at offset 1"},
		"entity outside": {m{"chat_id": 7, "text": "x", "entities": []m{{"type": "bold", "offset": 0, "length": 2}}},
			400, "Bad Request: entity ends after the end of the text at 1"},
		"overlapping": {m{"chat_id": 7, "text": "abc",
			"entities": []m{{"type": "bold", "offset": 0, "length": 2}, {"type": "italic", "offset": 1, "length": 2}}}, 400,
			"Bad Request: entities bold and italic overlap at offset 1"},
		"code inside bold": {m{"chat_id": 7, "text": "abc",
			"entities": []m{{"type": "bold", "offset": 0, "length": 3}, {"type": "code", "offset": 1, "length": 1}}}, 400,
			"Bad Request: entity code can't be inside of bold at offset 1"},
		"code inside quote": {m{"chat_id": 7, "text": "abc",
			"entities": []m{{"type": "blockquote", "offset": 0, "length": 3}, {"type": "code", "offset": 1, "length": 1}}}, 0,
			""},
		"link without a url": {m{"chat_id": 7, "text": "abc",
			"entities": []m{{"type": "text_link", "offset": 0, "length": 3}}}, 400,
			`Bad Request: can't parse MessageEntity: Field "url" must be of type String`},
	} {
		r := call(t, s, "sendMessage", tc.params)
		if r.ErrorCode != tc.code || r.Description != tc.text || r.OK != (tc.code == 0) {
			t.Errorf("%s: got %d %q, want %d %q", name, r.ErrorCode, r.Description, tc.code, tc.text)
		}
	}
	if got := call(t, s, "sendMessage", m{"chat_id": -20, "text": "x"}).Parameters.MigrateTo; got != -1_000_000_000_020 {
		t.Errorf("migrate_to_chat_id = %d", got)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	mine := s.Say(7, "hi").Message
	var sent struct {
		ID int `json:"message_id"`
	}
	if err := json.Unmarshal(call(t, s, "sendMessage", m{"chat_id": 7, "text": "one"}).Result, &sent); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		id   int
		text string
		want string
	}{
		{sent.ID, "two", ""},
		{sent.ID, "two", "Bad Request: message is not modified"},
		{mine, "x", "Bad Request: message can't be edited"},
		{999, "x", "Bad Request: message to edit not found"},
	} {
		r := call(t, s, "editMessageText", m{"chat_id": 7, "message_id": tc.id, "text": tc.text})
		if r.OK != (tc.want == "") || !strings.HasPrefix(r.Description, tc.want) {
			t.Errorf("edit %d to %q: %+v", tc.id, tc.text, r)
		}
	}
	got, err := s.WaitEdit(t.Context(), 7, 1)
	if err != nil || got.Text != "two" || got.Edits != 1 {
		t.Errorf("after the edit: %+v, %v", got, err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	theirs := s.Inject(telegramtest.Incoming{Chat: telegramtest.Chat{ID: -5, Type: telegramtest.Group},
		Text: "hi"}).Message
	for range 2 {
		call(t, s, "sendMessage", m{"chat_id": -5, "text": "mine"})
	}
	first := s.Messages(-5)[0].ID
	for _, tc := range []struct {
		id   int
		want string
	}{
		{first, ""},
		{first, "Bad Request: message to delete not found"},
		{theirs, "Bad Request: message can't be deleted"},
	} {
		if r := call(t, s, "deleteMessage", m{"chat_id": -5, "message_id": tc.id}); r.OK != (tc.want == "") ||
			r.Description != tc.want {
			t.Errorf("delete %d: %+v", tc.id, r)
		}
	}
	if left, gone := s.Messages(-5), s.Deleted(-5); len(left) != 1 || left[0].ID == first || len(gone) != 1 ||
		gone[0].ID != first {
		t.Errorf("left are %+v, deleted %+v", left, gone)
	}
	if r := call(t, s, "editMessageText",
		m{"chat_id": -5, "message_id": first, "text": "x"}); r.Description != "Bad Request: message to edit not found" {
		t.Errorf("edit of a deleted message: %+v", r)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	old := s.Token()
	for token, code := range map[string]int{old: 0, "1:AAwrong-token": 401, "nonsense": 404} {
		r, err := try(t.Context(), s, token, "getMe", nil)
		if err != nil || r.ErrorCode != code {
			t.Errorf("getMe with %q: %+v, %v; want %d", token, r, err, code)
		}
	}
	id := s.Bot().ID
	s.Revoke("100001:AAnew-token")
	if r, _ := try(t.Context(), s, old, "getMe", nil); r.ErrorCode != 401 {
		t.Errorf("a revoked token answers %+v", r)
	}
	if r := call(t, s, "getMe", nil); !r.OK || s.Bot().ID != id {
		t.Errorf("the new token answers %+v as bot %d", r, s.Bot().ID)
	}
	s.Say(7, "for the first bot")
	s.SwitchBot("200002:AAother-bot", "other_bot")
	if got := s.PendingUpdates(); len(got) != 0 || s.Bot().ID != 200002 {
		t.Errorf("the other bot %d has updates %v", s.Bot().ID, got)
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	a, b := s.Say(7, "a").Update, s.Say(8, "b").Update
	if got := updateIDs(t, call(t, s, "getUpdates", nil)); !slices.Equal(got, []int64{a, b}) {
		t.Fatalf("first: %v", got)
	}
	if got := updateIDs(t, call(t, s, "getUpdates", m{"limit": 1})); !slices.Equal(got, []int64{a}) {
		t.Fatalf("unconfirmed, limit 1: %v", got)
	}
	if got := updateIDs(t, call(t, s, "getUpdates", m{"offset": b})); !slices.Equal(got, []int64{b}) {
		t.Fatalf("offset confirms a: %v", got)
	}
	if err := s.WaitConfirmed(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := updateIDs(t,
		call(t, s, "getUpdates", m{"offset": b + 1, "allowed_updates": []string{"message"}})); len(got) != 0 {
		t.Fatalf("all confirmed: %v", got)
	}
	s.Inject(telegramtest.Incoming{From: telegramtest.User{ID: 7}, Text: "edited", Edits: 1})
	twice := s.InjectTwice(telegramtest.Incoming{From: telegramtest.User{ID: 7}, Text: "again"}).Update
	if got := updateIDs(t, call(t, s, "getUpdates", nil)); !slices.Equal(got, []int64{twice, twice}) {
		t.Fatalf("edits not allowed, duplicate given: %v", got)
	}
	batch := s.InjectBatch(true, telegramtest.Incoming{Text: "1"}, telegramtest.Incoming{Text: "2"})
	if got := updateIDs(t, call(t, s, "getUpdates", m{"offset": twice + 1})); !slices.Equal(got,
		[]int64{batch[1].Update, batch[0].Update}) {
		t.Fatalf("reversed batch: %v", got)
	}
}

func TestLongPollAndConflict(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	poll := func() <-chan reply {
		done := make(chan reply, 1)
		n := s.Calls("getUpdates")
		go func() {
			r, _ := try(t.Context(), s, s.Token(), "getUpdates", m{"timeout": 50})
			done <- r
		}()
		if err := s.WaitCalls(t.Context(), "getUpdates", n+1); err != nil {
			t.Error(err)
		}
		return done
	}
	first := poll()
	second := poll()
	// Whichever reached the bot later survives; a message goes to exactly one.
	var ended, left reply
	select {
	case ended = <-first:
		s.Say(7, "hi")
		left = <-second
	case ended = <-second:
		s.Say(7, "hi")
		left = <-first
	}
	if ended.ErrorCode != 409 || !strings.HasPrefix(ended.Description, "Conflict: terminated by other getUpdates") {
		t.Errorf("the earlier poll got %+v", ended)
	}
	if got := updateIDs(t, left); len(got) != 1 {
		t.Errorf("the later poll got %v", got)
	}
	s.Webhook("https://example.com/hook")
	if r := call(t, s, "getUpdates", nil); r.ErrorCode != 409 || !strings.Contains(r.Description, "webhook") {
		t.Errorf("with a webhook: %+v", r)
	}
	call(t, s, "deleteWebhook", nil)
	if r := call(t, s, "getUpdates", nil); !r.OK {
		t.Errorf("after deleteWebhook: %+v", r)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	var clock telegramtest.Clock
	s := telegramtest.Start(t, telegramtest.WithClock(clock.Now), telegramtest.WithLimits(telegramtest.TelegramLimits()))
	s.Say(7, "hi")
	s.Say(8, "hi")
	send := func(chat int64) reply { return call(t, s, "sendMessage", m{"chat_id": chat, "text": "x"}) }
	for range 3 {
		if r := send(7); !r.OK {
			t.Fatalf("within the burst: %+v", r)
		}
	}
	r := send(7)
	if r.ErrorCode != 429 || r.Parameters.RetryAfter != 1 || r.Description != "Too Many Requests: retry after 1" {
		t.Errorf("over the burst: %+v", r)
	}
	if r := send(8); !r.OK {
		t.Errorf("another chat is held as well: %+v", r)
	}
	clock.Advance(time.Second)
	if r := send(7); !r.OK {
		t.Errorf("after retry_after: %+v", r)
	}
	s.AddChat(telegramtest.Chat{ID: -5, Type: telegramtest.Group})
	for i := range 21 {
		clock.Advance(time.Millisecond)
		if r := send(-5); r.OK != (i < 20) {
			t.Fatalf("message %d to the group: %+v", i+1, r)
		}
	}
	clock.Advance(40 * time.Second)
	if r := send(-5); r.ErrorCode != 429 || r.Parameters.RetryAfter != 20 {
		t.Errorf("message 21 of the minute: %+v", r)
	}
	clock.Advance(time.Minute)
	edit := func(chat int64, i int) reply {
		return call(t, s, "editMessageText", m{"chat_id": chat, "message_id": s.Messages(chat)[0].ID, "text": fmt.Sprint(i)})
	}
	for i := range 4 {
		if r := edit(7, i); r.OK != (i < 3) || !r.OK && r.ErrorCode != 429 {
			t.Errorf("edit %d of a private chat: %+v", i+1, r)
		}
	}
	for i := range 21 {
		clock.Advance(2 * time.Second)
		if r := edit(-5, i); r.OK != (i < 20) || !r.OK && r.ErrorCode != 429 {
			t.Errorf("edit %d of a group: %+v", i+1, r)
		}
	}
	clock.Advance(time.Minute)
	passed := 0
	for chat := int64(100); chat < 140; chat++ {
		s.Say(chat, "hi")
		if send(chat).OK {
			passed++
		}
	}
	if passed != 30 {
		t.Errorf("%d of 40 messages at once passed, want 30", passed)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	s.Say(7, "hi")
	send := func() (reply, error) {
		return try(t.Context(), s, s.Token(), "sendMessage", m{"chat_id": 7, "text": "x"})
	}
	s.FailStatus("sendMessage", 2, 502)
	for range 2 {
		if r, err := send(); err != nil || r.ErrorCode != 502 {
			t.Errorf("scripted 502: %+v, %v", r, err)
		}
	}
	s.Fail("sendMessage", 1, telegramtest.Fault{Status: 429, RetryAfter: 35})
	if r, _ := send(); r.Parameters.RetryAfter != 35 {
		t.Errorf("scripted 429: %+v", r)
	}
	for _, tc := range []struct {
		at   telegramtest.Break
		sent int
	}{{telegramtest.BreakBefore, 0}, {telegramtest.BreakAfter, 1}, {telegramtest.BreakInsideAnswer, 2}} {
		s.Fail("sendMessage", 1, telegramtest.Fault{Break: tc.at})
		if r, err := send(); err == nil {
			t.Errorf("break %d: answered %+v", tc.at, r)
		}
		if got := len(s.Messages(7)); got != tc.sent {
			t.Errorf("break %d: %d messages, want %d", tc.at, got, tc.sent)
		}
	}
	s.Fail("sendMessage", 1, telegramtest.Fault{Hang: true})
	var wg sync.WaitGroup
	wg.Go(func() {
		if r, err := send(); err == nil {
			t.Errorf("a released call answered %+v", r)
		}
	})
	if _, err := s.WaitRefused(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	s.Release()
	wg.Wait()
	s.Fail("sendMessage", 1, telegramtest.Fault{Chat: 8, Status: 500})
	if r, err := send(); err != nil || !r.OK {
		t.Errorf("a fault of another chat hit: %+v, %v", r, err)
	}
}

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	pending := s.Say(7, "hi").Update
	url := s.URL()
	s.Down()
	if _, err := try(t.Context(), s, s.Token(), "getMe", nil); err == nil {
		t.Error("answers while down")
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if s.URL() != url {
		t.Errorf("back on %s, was %s", s.URL(), url)
	}
	if got := updateIDs(t, call(t, s, "getUpdates", nil)); !slices.Equal(got, []int64{pending}) {
		t.Errorf("updates after the pause: %v", got)
	}
}

func TestParseModes(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	s.Say(7, "hi")
	for _, tc := range []struct {
		mode, text, want string
		entities         []telegramtest.Entity
	}{
		{"HTML", `😀<b>a &lt;<i>b</i></b>`, "😀a <b",
			[]telegramtest.Entity{{Type: "bold", Offset: 2, Length: 4}, {Type: "italic", Offset: 5, Length: 1}}},
		{"HTML", `<a href="http://x/?a=1&amp;b=2">l</a>`, "l",
			[]telegramtest.Entity{{Type: "text_link", Length: 1, URL: "http://x/?a=1&b=2"}}},
		{"HTML", `<pre><code class="language-go">x</code></pre>`, "x",
			[]telegramtest.Entity{{Type: "pre", Length: 1, Language: "go"}}},
		{"MarkdownV2", "*b _i_* \\. `c` [l](http://x)", "b i . c l", []telegramtest.Entity{
			{Type: "bold", Length: 3}, {Type: "italic", Offset: 2, Length: 1}, {Type: "code", Offset: 6, Length: 1},
			{Type: "text_link", Offset: 8, Length: 1, URL: "http://x"},
		}},
		{"MarkdownV2", "```go\nx```", "x", []telegramtest.Entity{{Type: "pre", Length: 1, Language: "go"}}},
	} {
		r := call(t, s, "sendMessage", m{"chat_id": 7, "text": tc.text, "parse_mode": tc.mode})
		if !r.OK {
			t.Errorf("%s: %+v", tc.text, r)
			continue
		}
		all := s.Messages(7)
		got := all[len(all)-1]
		if got.Text != tc.want || !slices.Equal(got.Entities, tc.entities) {
			t.Errorf("%s: %q %+v", tc.text, got.Text, got.Entities)
		}
	}
}

func TestIncomingShapes(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	group := telegramtest.Chat{ID: -1_000_000_000_077, Title: "Home", Forum: true}
	s.Inject(telegramtest.Incoming{Chat: group, From: telegramtest.User{ID: 9, FirstName: "Ann"}, Thread: 3,
		Text: "hey @switchboard_test_bot, /stop@switchboard_test_bot now"})
	s.Inject(telegramtest.Incoming{From: telegramtest.User{ID: 9}, Media: "photo", Text: "look"})
	var list []struct {
		Message struct {
			Chat     telegramtest.Chat     `json:"chat"`
			Thread   int                   `json:"message_thread_id"`
			Topic    bool                  `json:"is_topic_message"`
			Entities []telegramtest.Entity `json:"entities"`
			Text     string                `json:"text"`
			Caption  string                `json:"caption"`
			Photo    []any                 `json:"photo"`
		} `json:"message"`
	}
	if err := json.Unmarshal(call(t, s, "getUpdates", nil).Result, &list); err != nil {
		t.Fatal(err)
	}
	topic, photo := list[0].Message, list[1].Message
	want := []telegramtest.Entity{{Type: "mention", Offset: 4, Length: 21}, {Type: "bot_command", Offset: 27, Length: 26}}
	if topic.Chat.Type != "supergroup" || topic.Thread != 3 || !topic.Topic || !slices.Equal(topic.Entities, want) {
		t.Errorf("topic message: %+v", topic)
	}
	if photo.Text != "" || photo.Caption != "look" || len(photo.Photo) != 2 || photo.Chat.Type != "private" {
		t.Errorf("photo: %+v", photo)
	}
}
