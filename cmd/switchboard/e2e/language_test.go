package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// russianCode finds the code in what a Russian stranger gets.
var russianCode = regexp.MustCompile(`pairing approve ([A-Z2-9]{8})`)

var (
	// quotes are commands of the machine and of the chat, parameters, and the ids of
	// memories: they are no words.
	quotes = regexp.MustCompile("(?m)`[^`]*`|switchboard (?:pairing approve|events dead|usage|chat)|/[a-z_]+|--[a-z_]+|^[•-] [a-z_]+:|" +
		`\[m[a-z0-9]{6}\]`)
	// latin matches names of things too, which have a digit or a sign in them.
	latin = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_.:/=@|-]*`)
	// name matches what is not a word: ids, settings, zones, placeholders in capitals.
	name = regexp.MustCompile(`[0-9_/=@|]|[a-z]\.[a-z]|^[A-Z]{2,}\.?:?$`)
)

// names are Latin words that Russian texts have.
var names = []string{
	"telegram", "openai", "main", "orchestrator", "default", "off", "echo", "none", "open", "fact", "preference", "yes",
	"no", "fifo", "lifo", "inbox", "announce", "receive", "check", "user", "id", "nosuch", "secrets.env", "config.yaml",
	"assistant", "chat", "offline", "model", "memory", "tasks", "total",
	"answer", "text", "count", "limit", "message", "state", "on", "allow", "refuse", "tools", // parameters
}

// english returns the English words of a text.
func english(text string) (words []string) {
	for _, word := range latin.FindAllString(quotes.ReplaceAllString(text, " "), -1) {
		word = strings.TrimRight(word, ".:-")
		if !name.MatchString(word) && !slices.Contains(names, strings.ToLower(word)) {
			words = append(words, word)
		}
	}
	return words
}

// A Russian person goes through all commands, is paired, approves a call, has models that
// fail and limits that are spent, gives tasks, and is told of what was not delivered. No
// word of it is English.
func TestRussianPersonReadsNoEnglish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers(), withModel)
	w.config("timezone: Europe/Berlin\napprove: [memory/remember]\nmodels: {daily_tokens: {total: 900000}}\n")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		newest, all := "", ""
		for _, m := range r.Messages {
			if m.Role == "user" {
				newest = m.Content.Text
				all += newest
			}
		}
		switch {
		case strings.Contains(all, "дорого"): // a notice may come after it
			return openaitest.Answer{Text: "Готово.", Input: 900_000, Output: 1}
		case strings.Contains(newest, "сломайся"):
			return openaitest.Answer{Status: 401}
		case strings.Contains(newest, "аллергия") && len(r.Results()) == 0:
			return openaitest.CallTool("memory__remember", `{"text": "аллергия на орехи"}`)
		case strings.Contains(newest, "чайник") && len(r.Results()) == 0:
			return openaitest.CallTool("scheduler__schedule_recurring",
				`{"message": "чайник", "cron": "0 8 * * *", "every_days": 2}`)
		case strings.Contains(newest, "чайник"):
			return openaitest.Say("Напомню.")
		}
		return openaitest.Say("Хорошо.")
	})
	w.start()
	w.telegramReady()

	says := func(text string) {
		w.telegram.Inject(telegramtest.Incoming{
			From: telegramtest.User{ID: anna, FirstName: "Анна", Language: "ru"}, Text: text,
		})
	}
	asks := func(text, want string) {
		t.Helper()
		n := len(w.texts(anna))
		says(text)
		if !w.waitFor(func() bool { return strings.Contains(strings.Join(w.texts(anna)[n:], "\n"), want) }) {
			t.Fatalf("%q is answered with %q, want %q", text, w.texts(anna)[n:], want)
		}
	}

	asks("привет", "Мы ещё не знакомы")
	code := russianCode.FindStringSubmatch(w.texts(anna)[0])
	if code == nil {
		t.Fatalf("there is no code in %q", w.texts(anna)[0])
	}
	w.must("pairing", "approve", code[1])
	w.told(anna, 2)

	// An approval, a reminder, a failure.
	asks("у меня аллергия на орехи", "хочет выполнить memory/remember")
	asks("да", "Хорошо.")
	asks("у меня аллергия на орехи", "хочет выполнить")
	asks("/questions", "Открытые вопросы")
	asks("/deny", "отклонено")
	asks("напоминай про чайник", "Напомню.") // "Хорошо." may still answer what was denied
	asks("/schedules", "раз в 2 дн.")
	asks("сломайся", "не принят")

	// Memories and tasks.
	asks("/remember купить молоко kind=open due=2020-01-02", "Записано: купить молоко")
	asks("/memories", "просрочено с чт 02.01.2020")
	asks("/forget nosuch", "нет заметки nosuch")
	asks("/push посчитай до трёх name=a1", "Поставлено в очередь: a1")
	asks("/queue", "В очереди")
	asks("/queue_remove nosuch1", "нет задачи")
	asks("/run 1", "Начато: a1")
	asks("/receive", "a1")
	asks("/push сломайся name=a2", "a2")
	asks("/run", "Начато: a2")
	asks("/receive", "не получилось")
	asks("/run nosuch", "целое число")

	// Every command alone and with a word too many.
	commands := w.telegram.Commands("ru")
	if len(commands) < 20 {
		t.Fatalf("the menu has %v", commands)
	}
	for _, c := range commands {
		if bad := english(c.Description); bad != nil {
			t.Errorf("the menu says %q in English: %q", c.Command, bad)
		}
		for _, text := range []string{"", " nosuch"} {
			n := len(w.texts(anna))
			says("/" + c.Command + text)
			w.eventually("an answer to /"+c.Command+text, func() bool { return len(w.texts(anna)) > n })
			asks("/help "+c.Command, "/"+c.Command)
		}
	}
	asks("/nosuch", "Команды /nosuch нет")

	// What another person could not be sent, and a limit.
	w.telegram.Inject(telegramtest.Incoming{
		From: telegramtest.User{ID: boris, FirstName: "Борис", Language: "ru"}, Text: "привет",
	})
	code = russianCode.FindStringSubmatch(w.told(boris, 1).Text)
	w.must("pairing", "approve", code[1])
	w.told(boris, 2)
	w.telegram.Block(boris)
	w.telegram.Inject(telegramtest.Incoming{
		From: telegramtest.User{ID: boris, FirstName: "Борис", Language: "ru"}, Text: "как дела?",
	})
	w.eventually("the notice", func() bool {
		return strings.Contains(strings.Join(w.texts(anna), "\n"), "Сообщение не доставлено: Борис")
	})
	asks("это дорого", "дневной лимит (900000 токенов) для всех моделей почти исчерпан")
	asks("ещё раз", "исчерпан (models.daily_tokens: {total: 900000}): до полуночи модели не отвечают")
	w.settled()
	for _, text := range w.texts(anna) {
		if bad := english(text); bad != nil {
			t.Errorf("%q is in English in:\n%s", bad, text)
		}
	}
}

// A notice that waits too long for its channel comes to the terminal, in the language of
// the person there.
func TestRussianTerminalGetsWhatAnotherChannelHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.config(`channels: {default: cli_channel, hold: 1s, telegram_channel: {allow_from: ["1001"]}}`)
	w.probe("sender", "bus", "permissions: {publish: [system.user.notify]}")
	w.start()
	w.telegramReady()
	p := w.attach(wire.Frame{Language: "ru_RU"})
	p.ask("/status")
	w.telegram.Down()
	c := w.control()
	w.eventually("the channel to notice", func() bool { return w.extension(c, "telegram_channel").Readiness == "offline" })
	w.request("sender", "in",
		`{"topic": "system.user.notify", "payload": {"text": "Бельё готово.", "channel_id": "telegram_channel"}}`)
	p.hearsLike("[для telegram_channel] Бельё готово.")
	p.say("/status")
	p.hearsLike("не в сети (нет связи с")
}
