package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// keeper is the agent of a shop: nothing but a manifest.
const keeper = `api: 1
id: keeper
name: Keeper
version: 1.0.0
agent:
  model: default
  instructions: You keep the shop.
  uses_tools: [core/*, shop/*, tasks/delegate_task]
` + backAtOnce

// backAtOnce lets an extension fall as often as a test likes.
const backAtOnce = "restart: {backoff: 20ms, max_backoff: 20ms, max: 1000}\n"

// shop is a home where people write in Telegram, each message with a token of
// its own, and where every turn takes several rounds of tools: some that may be
// repeated, some that must not be, and a message to a second channel. It sees
// what the model is asked, and what reaches whom.
type shop struct {
	*world
	plan func(token string) [][]openaitest.Call // the rounds of a turn

	mu     sync.Mutex
	wrong  []string // about what the model was asked
	before func(order)

	leeway leeway
	then   []string  // where the next kernels crash
	anew   bool      // the running kernel is one of them
	below  []process // the extensions of the running one
}

// leeway is what a crash excuses.
type leeway struct {
	telegram bool // a reply may come with a mark: one was being sent
	shop     bool // likewise a message through the shop
	unknown  bool // the outcome of a call may be unknown: one was running
	often    bool // it happened more than once
}

func (l *leeway) add(more leeway) {
	l.often = l.often || l.telegram || l.shop
	l.telegram, l.shop, l.unknown = l.telegram || more.telegram, l.shop || more.shop, l.unknown || more.unknown
}

// rounds are those of an ordinary turn.
func rounds(token string) [][]openaitest.Call {
	return [][]openaitest.Call{
		{work("peek", token, 0, "")},
		{work("act", token, 1, ""), work("act", token, 2, "")},
		{openaitest.NewCall(sendTool, map[string]string{"channel_id": "shop", "text": "News of " + token})},
	}
}

// work is a call of a tool of the shop. It is the nth of its message, and goes
// on until the shop has the file hold, if that is named.
func work(tool, token string, n int, hold string) openaitest.Call {
	arguments := map[string]string{"n": fmt.Sprint(token, n)}
	if hold != "" {
		arguments["hold"] = hold
	}
	return openaitest.NewCall("shop__"+tool, arguments)
}

func newShop(t *testing.T, config string, telegram ...telegramtest.Option) *shop {
	t.Helper()
	s := &shop{world: newWorld(t, strangers(telegram...), withModel), plan: rounds}
	s.config(`agents: {default: keeper, enabled: [keeper]}
channels: {telegram_channel: {allow_from: ["*"]}}
extensions: {scheduler: {enabled: false}, offline: {enabled: false}, memory: {enabled: false}, heartbeat: {enabled: false}}
` + config)
	s.dropIn("keeper", "", keeper)
	s.probe("shop", "shop",
		"provides: {tools: true, channel: {max_length: 0}}\npermissions: {publish: [shop.did]}\n"+backAtOnce)
	s.env["SWITCHBOARD_CRASH_OFTEN"] = "1"
	s.model.Handle(s.answer)
	return s
}

// open starts the shop and waits until all of it is there.
func (s *shop) open() {
	s.t.Helper()
	s.start()
	s.telegramReady()
}

// order is a turn as a model sees it.
type order struct {
	tokens  []string          // of its messages
	asked   int               // answers so far
	calls   map[string]string // arguments by id
	results map[string]string // by the arguments of their call, without those skipped
}

// orders are the turns of a request that have no final text yet, the running
// one last.
func orders(r openaitest.Request) []*order {
	var open []*order
	for _, m := range r.Messages[1:] {
		var top *order
		if len(open) > 0 {
			top = open[len(open)-1]
		}
		switch found := token.FindAllString(m.Content.Text, -1); {
		case m.Role == "user" && strings.HasPrefix(m.Content.Text, "[note"):
		case m.Role == "user" && len(found) > 0 && top != nil && top.asked == 0:
			top.tokens = append(top.tokens, found...)
		case m.Role == "user" && len(found) > 0:
			open = append(open, &order{tokens: found, calls: map[string]string{}, results: map[string]string{}})
		case m.Role == "assistant" && top != nil && len(m.ToolCalls) == 0:
			open = open[:len(open)-1]
		case m.Role == "assistant" && top != nil:
			top.asked++
			for _, c := range m.ToolCalls {
				top.calls[c.ID] = *c.Function.Arguments
			}
		case m.Role == "tool" && top != nil:
			if arguments := top.calls[m.ToolCallID]; arguments != "" && !strings.Contains(m.Content.Text, contract.SkippedCall) {
				top.results[arguments] = m.Content.Text
			}
		}
	}
	return open
}

// answer is the model: it goes through the rounds of the running turn, skips
// none, repeats none, and then says which messages it has read.
func (s *shop) answer(r openaitest.Request) openaitest.Answer {
	open := orders(r)
	if len(open) == 0 {
		s.note("the model is asked though nothing is left to answer:\n%s", transcript(r))
		return openaitest.Fail(400, "nothing to answer")
	}
	now := *open[len(open)-1]
	if stored, err := s.answersOf(now.tokens[0]); err != nil {
		s.note("reading the store: %v", err)
	} else if stored != now.asked {
		s.note("the model is asked for answer %d of the turn of %s, and %d are recorded:\n%s", now.asked+1, now.tokens,
			stored, transcript(r))
	}
	s.heardOnce(r)
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(now)
	}
	for _, round := range s.plan(now.tokens[0]) {
		if left := slices.DeleteFunc(round,
			func(c openaitest.Call) bool { return now.results[c.Arguments] != "" }); len(left) > 0 {
			return openaitest.Answer{Calls: left}
		}
	}
	return openaitest.Say("You said " + strings.Join(now.tokens, " "))
}

// heardOnce checks that no request to the model repeats a message.
func (s *shop) heardOnce(r openaitest.Request) {
	heard := map[string]bool{}
	for _, m := range r.Messages[1:] {
		if m.Role != "user" || strings.HasPrefix(m.Content.Text, "[note") {
			continue
		}
		for _, t := range token.FindAllString(m.Content.Text, -1) {
			if heard[t] {
				s.note("the model is told %s twice:\n%s", t, transcript(r))
			}
			heard[t] = true
		}
	}
}

func (s *shop) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// onRequest has f called with the turn whenever the model is asked, before it
// answers.
func (s *shop) onRequest(f func(order)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// answersOf is how many answers the store has of the turn of a message.
func (s *shop) answersOf(token string) (n int, err error) {
	conn, err := sqlite.OpenConn(s.file("switchboard.db"), sqlite.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	var turn int64
	rows := func(sql string, arg any, each func(session int64, e *busv1.Entry)) error {
		return sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: []any{arg}, ResultFunc: func(row *sqlite.Stmt) error {
			b, e := make([]byte, row.ColumnLen(1)), &busv1.Entry{}
			row.ColumnBytes(1, b)
			if err := proto.Unmarshal(b, e); err != nil {
				return err
			}
			each(row.ColumnInt64(0), e)
			return nil
		}})
	}
	var session int64
	err = rows(`SELECT session, row FROM history WHERE instr(row, ?) > 0`, []byte(token), func(of int64, e *busv1.Entry) {
		if e.GetKind() == contract.EntryInput && e.GetInputKind() == contract.InputUser {
			session, turn = of, e.GetTurn()
		}
	})
	if err != nil || turn == 0 {
		return 0, err
	}
	err = rows(`SELECT session, row FROM history WHERE session = ?`, session, func(_ int64, e *busv1.Entry) {
		if e.GetKind() == contract.EntryAnswer && e.GetTurn() == turn {
			n++
		}
	})
	return n, err
}

// chatOf is where a message was written.
func chatOf(token string) int64 {
	var chat, message int
	if _, err := fmt.Sscanf(token, "<c%dm%d>", &chat, &message); err != nil {
		panic(fmt.Sprintf("%s is no token: %v", token, err))
	}
	return int64(5000 + chat)
}

// write has someone write a message with the token, in its chat.
func (s *shop) write(token string) { s.telegram.Say(chatOf(token), "message "+token) }

// frozen is what the store of a kernel that was killed excuses.
func (s *shop) frozen() leeway {
	s.t.Helper()
	var sending []string
	s.unsettled(func(_ journal.Subscription, d journal.Delivery, e *busv1.Event) {
		if d.State == journal.InFlight {
			sending = append(sending, e.GetTopic())
		}
	})
	return leeway{
		telegram: slices.Contains(sending, contract.TopicChannelSend+"telegram_channel"),
		shop:     slices.Contains(sending, contract.TopicChannelSend+"shop"),
		unknown:  len(s.query(`SELECT id FROM call WHERE state = 1`)) > 0,
	}
}

// answeredAll reports whether each message has a reply in its chat.
func (s *shop) answeredAll(tokens []string) bool {
	for _, token := range tokens {
		if !strings.Contains(strings.Join(s.texts(chatOf(token)), "\n"), token) {
			return false
		}
	}
	return true
}

// survived waits until everything is over, and checks that nothing was lost and
// nothing was done twice: each message was read by the model in a turn whose
// reply reached the chat of the message, once, or once more with a mark if that
// is excused; nothing that must not run twice did, and the model knows of each
// call what became of it.
func (s *shop) survived(tokens ...string) {
	s.t.Helper()
	all := s.waitFor(func() bool { return s.answeredAll(tokens) })
	s.nothingWrong()
	if !all {
		s.t.Fatalf("in %s not all of %q were answered", patience, tokens)
	}
	s.settled()
	if bad := s.query(`SELECT id, inputs, outcome FROM turn WHERE outcome != 'ok'`); len(bad) > 0 {
		s.t.Errorf("turns that did not end well: %q", bad)
	}
	s.repliedOnce(tokens)
	s.didOnce(tokens)
}

// nothingWrong checks what was noted about the requests to the model, and that
// nothing was given up.
func (s *shop) nothingWrong() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wrong := range s.wrong {
		s.t.Error(wrong)
	}
	if dead := s.dead(); len(dead) > 0 {
		s.t.Errorf("dead letters: %q", dead)
	}
}

func (s *shop) repliedOnce(tokens []string) {
	s.t.Helper()
	for _, chat := range s.telegram.Chats() {
		var texts []string
		for _, text := range s.texts(chat) {
			texts = append(texts, text)
			plain, marked := strings.CutPrefix(text, contract.RepeatMark)
			if !strings.HasPrefix(plain, "You said <") || marked && !s.leeway.telegram {
				s.t.Errorf("chat %d reads %q", chat, text)
			}
			for _, other := range token.FindAllString(text, -1) {
				if chatOf(other) != chat {
					s.t.Errorf("chat %d reads of another one: %q", chat, text)
				}
			}
		}
		for _, token := range tokens {
			if chatOf(token) == chat {
				s.once(fmt.Sprintf("the reply to %s in chat %d", token, chat), token, texts)
			}
		}
	}
}

// once checks that one text has the token, and another one at most with a mark.
func (s *shop) once(what, token string, texts []string) {
	s.t.Helper()
	plain, marked := 0, 0
	for _, text := range texts {
		switch n := strings.Count(text, token); {
		case strings.HasPrefix(text, contract.RepeatMark):
			marked += n
		default:
			plain += n
		}
	}
	if plain > 1 || marked > 1 && !s.leeway.often || plain+marked == 0 {
		s.t.Errorf("%s came %d times without a mark and %d times with one: %q", what, plain, marked, texts)
	}
}

// didOnce checks what the tools did, and what the model was told of it.
func (s *shop) didOnce(tokens []string) {
	s.t.Helper()
	runs := map[string]int{}
	for _, line := range s.lines("shop", "calls") {
		runs[line]++
	}
	effects := map[string]int{}
	for _, payload := range s.query(`SELECT payload FROM event WHERE topic = 'shop.did'`) {
		effects[payload]++
	}
	told := map[string]string{} // by arguments
	for _, r := range s.model.Requests() {
		for _, o := range orders(r) {
			for arguments, result := range o.results {
				if was := told[arguments]; was != "" && was != result {
					s.t.Errorf("the model was told of %s %q, and later %q", arguments, was, result)
				}
				told[arguments] = result
			}
		}
	}
	out := s.lines("shop", "out")
	for _, text := range out {
		if news, marked := strings.CutPrefix(text, contract.RepeatMark); !strings.HasPrefix(news, "News of <") ||
			marked && !s.leeway.shop {
			s.t.Errorf("the shop sent %q", text)
		}
	}
	for _, token := range tokens {
		if !s.read(token) {
			continue
		}
		for _, round := range s.plan(token) {
			for _, c := range round {
				switch result := told[c.Arguments]; c.Name {
				case sendTool:
					s.once("the message of the shop about "+token, token, out)
				case "shop__peek":
				default:
					s.did(c, result, runs, effects)
				}
				if told[c.Arguments] == "" {
					s.t.Errorf("the model was never told what became of %s", c.Arguments)
				}
			}
		}
	}
}

// read reports whether a message was the first of a turn: the one whose rounds
// the model goes through.
func (s *shop) read(token string) bool {
	return slices.ContainsFunc(s.model.Requests(), func(r openaitest.Request) bool {
		return slices.ContainsFunc(orders(r), func(o *order) bool { return o.tokens[0] == token })
	})
}

// did checks one call that must not run twice.
func (s *shop) did(c openaitest.Call, result string, runs, effects map[string]int) {
	s.t.Helper()
	var q struct {
		N string `json:"n"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &q); err != nil {
		s.t.Fatal(err)
	}
	payload, _ := json.Marshal(q)
	ran, happened := runs[strings.TrimPrefix(c.Name, "shop__")+" "+q.N], effects[string(payload)]
	known := result == "did "+q.N
	unknown := s.leeway.unknown && strings.Contains(result, "unknown whether")
	switch {
	case !known && !unknown:
		s.t.Errorf("the model was told of %s: %q", c.Arguments, result)
	case ran > 1 || known && (ran != 1 || happened != 1) || unknown && happened != 0:
		s.t.Errorf("%s ran %d times and had its effect %d times; the model was told %q", c.Arguments, ran, happened, result)
	}
}
