package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// loop plays the run loop and the tools: it asks the model, runs the calls, and
// asks again until there is a final text.
type loop struct {
	t        *testing.T
	now      time.Time
	without  string // a tool that is not offered
	failing  map[string]string
	answers  map[string]string // results that replace the usual ones
	messages []*extensionv1.Message
	calls    []string // tool and arguments, in order
	next     int
}

const channelsJSON = `{"channels":[
	{"id":"cli_channel","name":"Terminal","readiness":"ready"},
	{"id":"telegram_channel","name":"Telegram","readiness":"ready","max_length":4096},
	{"id":"pigeon","name":"Carrier Pigeon","readiness":"unconfigured","detail":"feed it"}]}`

const schedulesJSON = `{"schedules":[
	{"id":"r1","kind":"once","state":"active","message":"выключить чайник",
		"next":"2025-11-20T17:30:00Z","timezone":"Europe/Berlin"},
	{"id":"r2","kind":"once","state":"active","message":"call mom",
		"next":"2025-11-21T08:00:00Z","timezone":"Europe/Berlin","channel_id":"telegram_channel"},
	{"id":"r3","kind":"recurring","state":"paused","message":"call the office","timing":"every 2 h"},
	{"id":"m1","kind":"recurring","state":"active","message":"consolidate","declared_by":"memory"}],"text":"..."}`

func newLoop(t *testing.T) *loop {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	h := &loop{t: t, now: time.Date(2025, 11, 20, 12, 0, 0, 0, zone), failing: map[string]string{},
		answers: map[string]string{}}
	h.messages = []*extensionv1.Message{{Role: "system", Content: "You are an assistant.\nCurrent time: " +
		h.now.Format(time.RFC3339) + " (Europe/Berlin)"}}
	return h
}

var toolNames = []string{"list_channels", "send_to_channel", "send_to_all_channels",
	"scheduler__schedule_once", "scheduler__schedule_recurring", "scheduler__list_schedules",
	"scheduler__cancel_schedule",
	"memory__remember", "memory__recall", "memory__forget", "memory__list_memories"}

// say has the user say something and returns the final answer.
func (h *loop) say(text string) string {
	h.t.Helper()
	h.messages = append(h.messages, &extensionv1.Message{Role: "user", Content: text})
	for range 8 {
		said := h.ask()
		h.messages = append(h.messages, said)
		if len(said.GetCalls()) == 0 {
			return said.GetContent()
		}
		for _, c := range said.GetCalls() {
			h.messages = append(h.messages, &extensionv1.Message{Role: "tool", CallId: c.GetCallId(),
				Content: h.run(c)})
		}
	}
	h.t.Fatalf("no final answer to %q after %v", text, h.calls)
	return ""
}

// ask asks the model once.
func (h *loop) ask() *extensionv1.Message {
	h.t.Helper()
	r := &sdk.CompleteRequest{Model: Model, Messages: h.messages}
	for _, name := range toolNames {
		if name != h.without {
			r.Tools = append(r.Tools, &extensionv1.Tool{Name: name})
		}
	}
	said := &extensionv1.Message{Role: "assistant"}
	finish := ""
	err := model{now: time.Now}.Complete(h.t.Context(), r, func(d *sdk.Delta) error {
		said.Content += d.GetText()
		if c := d.GetCall(); c != nil {
			h.next++
			said.Calls = append(said.Calls, &busv1.Call{CallId: fmt.Sprint("c", h.next), Name: c.GetName(),
				Arguments: c.GetArguments()})
		}
		finish += d.GetFinish()
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if finish != "stop" && finish != "aside" && (finish != "tool_calls" || len(said.GetCalls()) == 0) {
		h.t.Errorf("finish %q", finish)
	}
	if said.GetContent() == "" && len(said.GetCalls()) == 0 {
		h.t.Error("an empty answer")
	}
	return said
}

func (h *loop) run(c *busv1.Call) string {
	tool := c.GetName()
	if _, bare, ok := strings.Cut(tool, "__"); ok {
		tool = bare
	}
	h.calls = append(h.calls, tool+" "+string(c.GetArguments()))
	if !slices.Contains(toolNames, c.GetName()) {
		h.t.Errorf("an unknown tool is called: %s", c.GetName())
	}
	if why, ok := h.failing[tool]; ok {
		return "error: " + why
	}
	if a, ok := h.answers[tool]; ok {
		return a
	}
	var a struct {
		Message      string
		DelaySeconds float64 `json:"delay_seconds"`
		At           time.Time
		ChannelID    string `json:"channel_id"`
	}
	if err := json.Unmarshal(c.GetArguments(), &a); err != nil {
		h.t.Errorf("arguments of %s: %v", tool, err)
	}
	switch tool {
	case "list_channels":
		return channelsJSON
	case "list_schedules":
		return schedulesJSON
	case "schedule_once", "schedule_recurring":
		next, kind := h.now.Add(time.Duration(a.DelaySeconds*float64(time.Second))), "once"
		if !a.At.IsZero() {
			next = a.At
		}
		if tool == "schedule_recurring" {
			next, kind = h.now.AddDate(0, 0, 5), "recurring"
		}
		b, err := json.Marshal(map[string]any{"status": "scheduled", "id": "r7", "kind": kind, "message": a.Message,
			"next": next.UTC(), "timezone": "Europe/Berlin", "channel_id": a.ChannelID})
		if err != nil {
			h.t.Fatal(err)
		}
		return string(b)
	case "cancel_schedule":
		return `{"status":"cancelled"}`
	}
	return `{"status":"delivered"}`
}

func (h *loop) wantCalls(want ...string) {
	h.t.Helper()
	if !slices.Equal(h.calls, want) {
		h.t.Errorf("calls\n got %s\nwant %s", strings.Join(h.calls, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestConversations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		said   string
		calls  []string
		answer string
	}{
		{"greeting to Telegram", "say hi to me in Telegram",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"telegram_channel","text":"Hi"}`},
			"Delivered to Telegram."},
		{"greeting to Telegram, Russian", "Передай мне привет в Telegram",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"telegram_channel","text":"Привет"}`},
			"Доставлено в Telegram."},
		{"text to Telegram, Russian", "напиши мне в Телеграм: чайник кипит",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"telegram_channel","text":"чайник кипит"}`},
			"Доставлено в Telegram."},
		{"to a channel by its name", "send 'coo' to carrier pigeon",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"pigeon","text":"coo"}`},
			"Delivered to Carrier Pigeon."},
		{"to all", "send 'coo' to all channels", []string{`send_to_all_channels {"text":"coo"}`},
			"Delivered to all channels."},
		{"to an unknown channel", "send 'coo' to Bob", []string{"list_channels {}"},
			"There's no channel “Bob”, so I changed nothing. Your channels:\n- Terminal (cli_channel): ready\n" +
				"- Telegram (telegram_channel): ready\n- Carrier Pigeon (pigeon): not set up, feed it"},
		{"kettle", "in 5 minutes remind me in Telegram to turn off the kettle",
			[]string{"list_channels {}",
				`schedule_once {"channel_id":"telegram_channel","delay_seconds":300,` +
					`"message":"turn off the kettle"}`},
			"OK, I'll remind you in Telegram today at 12:05 (Europe/Berlin): turn off the kettle [r7]"},
		{"kettle, Russian", "Через 5 минут напомни мне в Telegram выключить чайник",
			[]string{"list_channels {}",
				`schedule_once {"channel_id":"telegram_channel","delay_seconds":300,` +
					`"message":"выключить чайник"}`},
			"Хорошо, напомню в Telegram сегодня в 12:05 (Europe/Berlin): выключить чайник [r7]"},
		{"an hour and a half", "remind me to leave in an hour and a half",
			[]string{`schedule_once {"delay_seconds":5400,"message":"leave"}`},
			"OK, I'll remind you today at 13:30 (Europe/Berlin): leave [r7]"},
		{"полтора часа", "напомни через полтора часа выйти",
			[]string{`schedule_once {"delay_seconds":5400,"message":"выйти"}`},
			"Хорошо, напомню сегодня в 13:30 (Europe/Berlin): выйти [r7]"},
		{"tomorrow", "remind me tomorrow at 9 to call mom",
			[]string{`schedule_once {"at":"2025-11-21T09:00:00+01:00","message":"call mom",` +
				`"timezone":"Europe/Berlin"}`},
			"OK, I'll remind you tomorrow at 09:00 (Europe/Berlin): call mom [r7]"},
		{"daily", "напоминай каждый день в 9 пить таблетки",
			[]string{`schedule_recurring {"cron":"0 9 * * *","message":"пить таблетки",` +
				`"timezone":"Europe/Berlin"}`},
			"Хорошо, буду напоминать, первый раз вт 25 ноября в 12:00 (Europe/Berlin): пить таблетки [r7]"},
		{"every 2 hours", "every 2 hours remind me to drink water",
			[]string{`schedule_recurring {"every_seconds":7200,"message":"drink water"}`},
			"OK, I'll remind you, first Tue 25 Nov at 12:00 (Europe/Berlin): drink water [r7]"},
		{"a message later", "in 5 minutes say hi to me in Telegram",
			[]string{"list_channels {}",
				`schedule_once {"channel_id":"telegram_channel","delay_seconds":300,"message":"Hi","payload":{"verbatim":true}}`},
			"OK, I'll send this to Telegram today at 12:05 (Europe/Berlin): Hi [r7]"},
		{"a text that might name a channel", "remind me in 5 minutes to put the milk in the fridge",
			[]string{"list_channels {}",
				`schedule_once {"delay_seconds":300,"message":"put the milk in the fridge"}`},
			"OK, I'll remind you today at 12:05 (Europe/Berlin): put the milk in the fridge [r7]"},
		{"a text that does", "remind me to coo in carrier pigeon in 5 minutes",
			[]string{"list_channels {}",
				`schedule_once {"channel_id":"pigeon","delay_seconds":300,"message":"coo"}`},
			"OK, I'll remind you in Carrier Pigeon today at 12:05 (Europe/Berlin): coo [r7]"},
		{"asked back", "remind me in an hour or so to leave", nil,
			"I didn't understand “or so to”, so I changed nothing."},
		{"past", "remind me today at 11:30 am to leave", nil,
			"“at 11:30 am” has already passed. What time did you mean? For example: “tomorrow at 9:00”."},
		{"list", "what reminders do I have?", []string{`list_schedules {"limit":500}`},
			"Your reminders:\n1. выключить чайник, today at 18:30 (Europe/Berlin) [r1]\n" +
				"2. call mom, tomorrow at 09:00 (Europe/Berlin), telegram_channel [r2]\n" +
				"3. call the office, every 2 hours, paused [r3]"},
		{"cancel by words", "отмени напоминание о чайнике", []string{`list_schedules {"limit":500}`,
			`cancel_schedule {"id":"r1"}`}, "Отменено: выключить чайник [r1]"},
		{"cancel by id", "cancel r2", []string{`list_schedules {"limit":500}`, `cancel_schedule {"id":"r2"}`},
			"Cancelled: call mom [r2]"},
		{"cancel by number", "cancel reminder 2", []string{`list_schedules {"limit":500}`,
			`cancel_schedule {"id":"r2"}`}, "Cancelled: call mom [r2]"},
		{"cancel which", "cancel the reminder about the call", []string{`list_schedules {"limit":500}`},
			"Which one? Say its number.\n1. call mom, tomorrow at 09:00 (Europe/Berlin), telegram_channel [r2]\n" +
				"2. call the office, every 2 hours, paused [r3]"},
		{"cancel what is not there", "cancel the reminder about elephants", []string{`list_schedules {"limit":500}`},
			"I couldn't find a reminder “elephants”. Your reminders:\n" +
				"1. выключить чайник, today at 18:30 (Europe/Berlin) [r1]\n" +
				"2. call mom, tomorrow at 09:00 (Europe/Berlin), telegram_channel [r2]\n" +
				"3. call the office, every 2 hours, paused [r3]"},
		{"cancel all asks", "cancel all reminders", []string{`list_schedules {"limit":500}`},
			"Cancel all 3 reminders? Say “yes” or “no”."},
		{"channels", "какие есть каналы?", []string{"list_channels {}"},
			"Ваши каналы:\n- Terminal (cli_channel): готов\n- Telegram (telegram_channel): готов\n- Carrier Pigeon " +
				"(pigeon): не настроен, feed it"},
		{"in a group", "Alice B: say hi to me in Telegram",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"telegram_channel","text":"Hi"}`},
			"Delivered to Telegram."},
		{"a task with its channel",
			"[task from heartbeat]\n~~~\nPending reminder (channel: telegram_channel): turn off the kettle\n~~~",
			[]string{"list_channels {}",
				`send_to_channel {"channel_id":"telegram_channel","text":"Reminder: turn off the kettle"}`},
			"Delivered to Telegram."},
		{"a task that names its channel",
			"[task from heartbeat]\n~~~\nPending reminder: user asked to be reminded in Telegram about kettle\n~~~",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"telegram_channel","text":"Reminder: kettle"}`},
			"Delivered to Telegram."},
		{"a task that names a channel of its own",
			"[task from heartbeat]\n~~~\nPending reminder: coo in Carrier Pigeon\n~~~",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"pigeon","text":"Reminder: coo"}`},
			"Delivered to Carrier Pigeon."},
		{"a task without a channel", "[task from scheduler]\n~~~\nPending reminder: turn off the kettle\n~~~",
			[]string{"list_channels {}"}, "Reminder: turn off the kettle"},
		{"a task that is a sentence", "[task from scheduler]\n~~~\nпередай мне привет в Telegram\n~~~",
			[]string{"list_channels {}", `send_to_channel {"channel_id":"telegram_channel","text":"Привет"}`},
			"Доставлено в Telegram."},
		{"a task beyond it", "[task from scheduler]\n~~~~\nsummarize ~~~ the news\n~~~~", []string{"list_channels {}"},
			"I can't do this task without a language model: summarize ~~~ the news\n\nTo use one, set OPENAI_API_KEY."},
		{"a notice", "[notice from tasks]\n~~~\nThe report is done.\n~~~", nil, "The report is done."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newLoop(t)
			if got := h.say(tt.said); got != tt.answer {
				t.Errorf("answer\n got %s\nwant %s", got, tt.answer)
			}
			h.wantCalls(tt.calls...)
		})
	}
}

// The help describes the model and how to use a real one, in the person's language.
func TestHelpDescribesTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ said, want string }{
		{"hi", "not a language model"}, {"help", "not a language model"},
		{"what is the capital of France?", "Say “help” for examples"},
		{"what is the capital of France?", "didn't understand"},
		{"привет", "а не языковая модель"}, {"что ты умеешь?", "а не языковая модель"},
		{"столица Франции?", "«помощь»"},
		{"столица Франции?", "не понимаю"},
		{"[message from researcher]\n~~~\nhello there\n~~~", "can't answer other agents"},
	} {
		h := newLoop(t)
		got := h.say(tt.said)
		if !strings.Contains(got, tt.want) || !strings.Contains(got, "OPENAI_API_KEY") {
			t.Errorf("%q is answered with %q", tt.said, got)
		}
		h.wantCalls()
	}
}

func TestToolErrorsAreReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, why, said, want string }{
		{"send_to_channel", "channel telegram_channel is not configured: set TELEGRAM_BOT_TOKEN", "say hi in Telegram",
			"That didn't work: channel telegram_channel is not configured: set TELEGRAM_BOT_TOKEN"},
		{"schedule_once", "channel pigeon is not configured", "напомни через 5 минут в Telegram поесть",
			"Не получилось: channel pigeon is not configured"},
		{"list_channels", "the kernel is stopping", "say hi in Telegram", "That didn't work: the kernel is stopping"},
		{"list_schedules", "the store cannot be read", "list reminders", "That didn't work: the store cannot be read"},
		{"cancel_schedule", "r1 is declared", "отмени r1", "Не получилось: r1 is declared"},
		{"list_channels", "no", "remind me to put the milk in the fridge in 5 minutes",
			"OK, I'll remind you today at 12:05 (Europe/Berlin): put the milk in the fridge [r7]"},
	} {
		t.Run(tt.tool+" "+tt.said, func(t *testing.T) {
			t.Parallel()
			h := newLoop(t)
			h.failing[tt.tool] = tt.why
			if got := h.say(tt.said); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A result in another form is understood or passed on; the model claims nothing
// that the tool did not report.
func TestOtherResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, result, said, want string }{
		{"send_to_channel", `{"status":"queued"}`, "say hi in Telegram",
			"I'll send it to Telegram as soon as the channel is available."},
		{"send_to_channel", `{"status":"failed","channel_id":"telegram_channel","detail":"bot was blocked"}`,
			"say hi in Telegram", "I couldn't send it to Telegram: bot was blocked"},
		{"send_to_channel", `error: {"status":"failed","channel_id":"telegram_channel","detail":"bot was blocked"}`,
			"скажи привет в Telegram", "Не удалось отправить в Telegram: bot was blocked"},
		{"send_to_channel", `sent`, "say hi in Telegram", "Sent to Telegram."},
		{"send_to_all_channels",
			`{"sent":[{"status":"delivered","channel_id":"cli_channel"},{"status":"queued",` +
				`"channel_id":"telegram_channel"}]}`, "send 'x' to all channels",
			"Delivered to cli_channel.\nI'll send it to telegram_channel as soon as the channel is available."},
		{"list_channels", `{"channels":[{"id":"a_telegram","name":"Telegram"},{"id":"b_telegram","name":"Telegram"}]}`,
			"say hi in Telegram",
			"Several channels are called “Telegram”. Please use one of the ids: a_telegram, b_telegram."},
		{"list_channels", `{"channels":[]}`, "list channels", "You have no channels."},
		{"list_schedules", `{"schedules":[]}`, "list reminders", "You have no reminders."},
		{"list_schedules", `{"schedules":[]}`, "отмени все напоминания", "У вас нет напоминаний."},
		{"list_schedules", `nothing I know`, "list reminders", "nothing I know"},
		{"cancel_schedule", `{"status":"too_late"}`, "cancel r2",
			"It's too late to cancel this, it was already sent: call mom [r2]"},
		{"schedule_once", `scheduled as r9`, "remind me in 5 minutes to eat", "Done: scheduled as r9"},
		{"schedule_once", `{"id":"r9","kind":"once","message":"eat","next":"2025-11-20T11:05:00Z",` +
			`"timezone":"UTC","notes":["the time is UTC"]}`,
			"remind me in 5 minutes to eat",
			"OK, I'll remind you today at 11:05 (UTC): eat [r9]\nNote: the time is UTC"},
		{"schedule_once", `{"id":"r9","kind":"once","message":"поесть",
			"next":"2025-11-20T11:05:00Z","timezone":"UTC",
			"notes":["times are in UTC because no timezone is set",
			"channel pigeon is not ready (feed it): messages wait"]}`,
			"напомни через 5 минут поесть", "Хорошо, напомню сегодня в 11:05 (UTC): поесть [r9]\n" +
				"Примечание: время указано по UTC. Чтобы изменить часовой пояс, задайте timezone в config.yaml\n" +
				"Примечание: канал pigeon сейчас не готов, сообщения подождут"},
	} {
		t.Run(tt.tool+" "+tt.result, func(t *testing.T) {
			t.Parallel()
			h := newLoop(t)
			h.answers[tt.tool] = tt.result
			if got := h.say(tt.said); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestToolThatIsNotGranted(t *testing.T) {
	t.Parallel()
	h := newLoop(t)
	h.without = "scheduler__schedule_once"
	if got := h.say("remind me in 5 minutes to eat"); got != "I can't do that here, because I'm not allowed to use "+
		"the tool schedule_once." {
		t.Errorf("got %s", got)
	}
	h.wantCalls()
}

// The answer to a question completes the sentence that was asked about.
func TestAnswersToQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ first, second, call string }{
		{"remind me to call mom", "tomorrow at 9",
			`schedule_once {"at":"2025-11-21T09:00:00+01:00","message":"call mom",` +
				`"timezone":"Europe/Berlin"}`},
		{"remind me tomorrow to call mom", "9:30",
			`schedule_once {"at":"2025-11-21T09:30:00+01:00","message":"call mom",` +
				`"timezone":"Europe/Berlin"}`},
		{"remind me tomorrow at 5 to call mom", "in the evening",
			`schedule_once {"at":"2025-11-21T17:00:00+01:00","message":"call mom",` +
				`"timezone":"Europe/Berlin"}`},
		{"remind me tomorrow at 5 to call mom", "17:00",
			`schedule_once {"at":"2025-11-21T17:00:00+01:00","message":"call mom",` +
				`"timezone":"Europe/Berlin"}`},
		{"напомни завтра в 5 позвонить маме", "вечера",
			`schedule_once {"at":"2025-11-21T17:00:00+01:00","message":"позвонить маме",` +
				`"timezone":"Europe/Berlin"}`},
		{"напомни завтра позвонить маме", "в 9",
			`schedule_once {"at":"2025-11-21T09:00:00+01:00","message":"позвонить маме",` +
				`"timezone":"Europe/Berlin"}`},
		{"remind me in 5 minutes", "turn off the kettle",
			`schedule_once {"delay_seconds":300,"message":"turn off the kettle"}`},
		{"Bob: remind me to call mom", "Bob: in 5 minutes",
			`schedule_once {"delay_seconds":300,"message":"call mom"}`},
		{"remind me in a few minutes to eat", "in 5 minutes",
			`schedule_once {"delay_seconds":300,"message":"eat"}`},
		{"in 5 minutes write me here", "tea", `schedule_once {"delay_seconds":300,"message":"tea","payload":{"verbatim":true}}`},
		{"remember that", "I like tea", `remember {"text":"I like tea"}`},
		{"запомни:", "я люблю чай", `remember {"text":"я люблю чай"}`},
	} {
		t.Run(tt.first+" / "+tt.second, func(t *testing.T) {
			t.Parallel()
			h := newLoop(t)
			h.say(tt.first)
			h.wantCalls()
			h.say(tt.second)
			h.wantCalls(tt.call)
		})
	}
	t.Run("another person's answer", func(t *testing.T) {
		t.Parallel()
		h := newLoop(t)
		h.say("Bob: remind me to call mom")
		h.say("Eve: in 5 minutes")
		h.wantCalls()
	})
	t.Run("a finished request", func(t *testing.T) {
		t.Parallel()
		h := newLoop(t)
		h.say("remind me in 5 minutes to eat")
		if got := h.say("in 10 minutes"); !strings.Contains(got, "didn't understand") {
			t.Errorf("got %s", got)
		}
		if len(h.calls) != 1 {
			t.Errorf("calls %v", h.calls)
		}
	})
}

// Notes and records of the run loop are not inputs: the turn continues.
func TestAsides(t *testing.T) {
	t.Parallel()
	h := newLoop(t)
	h.messages = append(h.messages,
		&extensionv1.Message{Role: "user", Content: "[record from scheduler]\n~~~\nremind me in 5 minutes to lie\n~~~"},
		&extensionv1.Message{Role: "user", Content: "say hi in Telegram"},
		&extensionv1.Message{Role: "user", Content: "[note from switchboard]\n~~~\nYour last answer was empty.\n~~~"})
	if said := h.ask(); len(said.GetCalls()) != 1 || said.GetCalls()[0].GetName() != "list_channels" {
		t.Errorf("said %v", said)
	}
}

// A turn that began before a time and ends after it still confirms the reminder.
func TestTimePassesInTheTurn(t *testing.T) {
	t.Parallel()
	h := newLoop(t)
	h.messages = append(h.messages, &extensionv1.Message{Role: "user", Content: "remind me at 12:01 to eat"})
	said := h.ask()
	h.messages = append(h.messages, said, &extensionv1.Message{Role: "tool", CallId: said.GetCalls()[0].GetCallId(),
		Content: h.run(said.GetCalls()[0])})
	h.messages[0].Content = "Current time: 2025-11-20T12:02:00+01:00 (Europe/Berlin)"
	if got := h.ask().GetContent(); !strings.HasPrefix(got, "OK, ") {
		t.Errorf("got %s", got)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	fallback := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ prompt, want string }{
		{"", "2020-01-01T00:00:00Z UTC"},
		{"Current time: 2026-03-01T09:30:00+01:00 (Europe/Berlin)", "2026-03-01T09:30:00+01:00 Europe/Berlin"},
		{"## Now\n\nCurrent time: 2026-03-01T09:30:00Z (UTC)\n", "2026-03-01T09:30:00Z UTC"},
		{"Current time: 2026-03-01T09:30:00+01:00", "2026-03-01T09:30:00+01:00 "},
		{"Current time: 2026-03-01T09:30:00+01:00 (Sunday, Europe/Berlin)", "2026-03-01T09:30:00+01:00 Europe/Berlin"},
		{"Current time: yesterday (Europe/Berlin)", "2020-01-01T00:00:00Z UTC"},
		{"Current time: 2026-03-01T09:30:00+01:00 (No/Where)", "2026-03-01T09:30:00+01:00 "},
		{"Current time: 2001-01-01T00:00:00Z (UTC)\n" +
			"Current time: 2026-03-01T09:30:00+01:00 (Europe/Berlin)\n\nBe nice",
			"2026-03-01T09:30:00+01:00 Europe/Berlin"},
	} {
		got := clock(tt.prompt, fallback)
		if s := got.Format(time.RFC3339) + " " + got.Location().String(); s != tt.want {
			t.Errorf("%q: %s, want %s", tt.prompt, s, tt.want)
		}
	}
}

func TestOddRequests(t *testing.T) {
	t.Parallel()
	m := model{now: time.Now}
	if err := m.Complete(t.Context(), &sdk.CompleteRequest{Model: "gpt"}, nil); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("another model: %v", err)
	}
	if err := m.Complete(t.Context(), &sdk.CompleteRequest{Purpose: "summary"}, nil); !errors.Is(err,
		contract.ErrInvalid) {
		t.Errorf("not for a person: %v", err)
	}
	for _, r := range []*sdk.CompleteRequest{
		{},
		{Messages: []*extensionv1.Message{{Role: "system"}}},
		{Messages: []*extensionv1.Message{{Role: "assistant",
			Calls: []*busv1.Call{{Name: "x", Arguments: []byte("{")}}}}},
		{Messages: []*extensionv1.Message{{Role: "user", Content: "\xff"},
			{Role: "tool", CallId: "?", Content: "stray"}}},
		{Messages: []*extensionv1.Message{{Role: "user", Content: "[notice from x]\n~~~\n\n~~~"}}},
		{Messages: []*extensionv1.Message{{Role: "user", Content: "list reminders"},
			{Role: "assistant", Calls: []*busv1.Call{{CallId: "1", Name: "list_schedules"}}}}},
	} {
		text := ""
		if err := m.Complete(t.Context(), r,
			func(d *sdk.Delta) error { text += d.GetText(); return nil }); err != nil || text == "" {
			t.Errorf("%v: %q, %v", r, text, err)
		}
	}
	gone := errors.New("the reader is gone")
	if err := m.Complete(t.Context(), &sdk.CompleteRequest{}, func(*sdk.Delta) error { return gone }); !errors.Is(err,
		gone) {
		t.Errorf("got %v", err)
	}
}

// The time is that of the newest preamble, which is not part of the text.
func TestTimeInAPreamble(t *testing.T) {
	t.Parallel()
	told := func(at, text string) *extensionv1.Message {
		return &extensionv1.Message{Role: "user",
			Content: "[now]\n~~~\nCurrent time: " + at + "\nCurrent channel: none\n~~~\n" + text}
	}
	d := readDialog(&sdk.CompleteRequest{Messages: []*extensionv1.Message{
		{Role: "system", Content: "Current time: 2001-01-01T00:00:00Z (UTC)"},
		told("2026-03-01T09:30:00+01:00 (Sunday, Europe/Berlin)", "hello"),
		{Role: "assistant", Content: "Hi."},
		told("2026-03-01T09:45:00+01:00 (Sunday, Europe/Berlin)", "remind me"),
		{Role: "user", Content: "[now]\n~~~\nCurrent time: 2026-03-01T09:52:00+01:00 (Sunday, Europe/Berlin)\n~~~"},
	}}, time.Time{})
	if got := d.now.Format(time.RFC3339) + " " +
		d.now.Location().String(); got != "2026-03-01T09:52:00+01:00 Europe/Berlin" {
		t.Errorf("it is %s", got)
	}
	if len(d.inputs) != 1 || d.inputs[0] != (input{kind: "user", text: "remind me"}) || d.asked() != "hello" {
		t.Errorf("got %v after %q", d.inputs, d.asked())
	}
}

// A reminder is meant by whole words, whatever their endings.
func TestAReminderIsMeantByWholeWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, name string
		means      bool
	}{
		{"pay the insurance", "rent", false},
		{"paint the fence", "pain", false},
		{"order a mill", "milk", false},
		{"fetch the cart", "car", false},
		{"call Peters", "peter", true},
		{"send the invitations", "invitation", true},
		{"feed the ponies", "pony", true},
		{"put out the boxes", "box", true},
		{"take the pills", "the pills", true},
		{"выключить чайник", "чайнике", true},
		{"позвонить маме", "мама", true},
		{"купить молоко", "масло", false},
	} {
		if got := mentions(tt.text, tt.name, sameStem); got != tt.means {
			t.Errorf("%q is meant by %q: %v", tt.text, tt.name, got)
		}
	}
}
