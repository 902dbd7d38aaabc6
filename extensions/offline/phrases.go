package offline

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// phrases are the model's texts in one language.
type phrases struct {
	language    grammar.Language
	reminder    string // before the text of a reminder
	hello       string
	help        string
	unknown     string
	welcome     string
	noAgents    string
	noReminders string
	weekdays    [7]string
	months      [12]string
}

func phrasesIn(l grammar.Language) phrases {
	if l == grammar.Russian {
		return russian
	}
	return english
}

// phrasesFor returns the phrases in the language of a text.
func phrasesFor(text string) phrases {
	return phrasesIn(grammar.Parse(text, time.Unix(0, 0).UTC()).Language)
}

func (w phrases) ru() bool { return w.language == grammar.Russian }

func (w phrases) pick(en, ru string) string {
	if w.ru() {
		return ru
	}
	return en
}

const (
	whatEN = `I'm Switchboard's offline model, not a language model: I only understand a few kinds of sentences. ` +
		`To use a language model, set OPENAI_API_KEY in the environment or in secrets.env ` +
		`(OPENAI_BASE_URL and OPENAI_MODEL select another server or model).`
	canEN = `Until then, you can say, for example:
- in 5 minutes remind me in Telegram to turn off the kettle
- remind me tomorrow at 9 to call home
- every Monday at 10:00 remind me of the meeting
- say hi to me in Telegram
- send "the text" to Telegram
- list reminders / cancel the reminder about the kettle
- remember that the kettle is in the kitchen / what do you know about the kettle? / forget the kettle
- list channels`
	whatRU = `Я офлайн-модель Switchboard, а не языковая модель: я понимаю только несколько видов фраз. ` +
		`Чтобы подключить языковую модель, задайте OPENAI_API_KEY в окружении или в secrets.env ` +
		`(другой сервер или модель: OPENAI_BASE_URL и OPENAI_MODEL).`
	canRU = `А пока можно сказать, например:
- через 5 минут напомни мне в Telegram выключить чайник
- напомни завтра в 9 утра позвонить домой
- каждый понедельник в 10:00 напоминай о встрече
- передай мне привет в Telegram
- отправь «текст» в Telegram
- покажи напоминания / отмени напоминание про чайник
- запомни, что чайник на кухне / что ты помнишь о чайнике? / забудь о чайнике
- покажи каналы`
)

var english = phrases{
	language: grammar.English,
	reminder: "Reminder: ",
	hello:    "Hello! " + whatEN + "\n\n" + canEN,
	help:     whatEN + "\n\n" + canEN,
	unknown: "I didn't understand that, so I changed nothing. I can set reminders, remember things and send messages.\n" +
		"Say “help” for examples. For real conversations, set OPENAI_API_KEY.",
	welcome:     "You're welcome.",
	noAgents:    whatEN + " I can't answer other agents.",
	noReminders: "You have no reminders.",
	weekdays:    [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"},
	months: [12]string{
		"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
	},
}

var russian = phrases{
	language: grammar.Russian,
	reminder: "Напоминание: ",
	hello:    "Здравствуйте! " + whatRU + "\n\n" + canRU,
	help:     whatRU + "\n\n" + canRU,
	unknown: "Я вас не понимаю, поэтому ничего не делаю. Я умею напоминать, запоминать и передавать сообщения.\n" +
		"Скажите «помощь», и я покажу примеры. Для настоящей беседы задайте OPENAI_API_KEY.",
	welcome:     "Пожалуйста!",
	noAgents:    whatRU + " Другим агентам я отвечать не умею.",
	noReminders: "У вас нет напоминаний.",
	weekdays:    [7]string{"вс", "пн", "вт", "ср", "чт", "пт", "сб"},
	months: [12]string{
		"января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября",
		"декабря",
	},
}

func (w phrases) noTool(tool string) string {
	return fmt.Sprintf(w.pick("I can't do that here, because I'm not allowed to use the tool %s.",
		"Здесь я этого не могу: мне недоступен инструмент %s."), tool)
}

func (w phrases) failed(reason string) string {
	return fmt.Sprintf(w.pick("That didn't work: %s", "Не получилось: %s"), strings.TrimSpace(reason))
}

func (w phrases) done(result string) string {
	return fmt.Sprintf(w.pick("Done: %s", "Готово: %s"), strings.TrimSpace(result))
}

func (w phrases) cannotDo(task string) string {
	return fmt.Sprintf(w.pick("I can't do this task without a language model: %s\n\nTo use one, set OPENAI_API_KEY.",
		"Эту задачу нельзя выполнить без языковой модели: %s\n\nЧтобы подключить её, задайте OPENAI_API_KEY."),
		strings.TrimSpace(task))
}

func (w phrases) noChannel(name string, known []channel) string {
	return fmt.Sprintf(w.pick("There's no channel “%s”, so I changed nothing. ",
		"Канала «%s» нет, поэтому ничего не сделано. "), name) + w.channelList(known)
}

func (w phrases) whichChannel(name string, found []channel) string {
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	return fmt.Sprintf(w.pick("Several channels are called “%s”. Please use one of the ids: %s.",
		"Есть несколько каналов «%s». Назовите один из id: %s."), name, strings.Join(ids, ", "))
}

func (w phrases) channelList(list []channel) string {
	if len(list) == 0 {
		return w.pick("You have no channels.", "У вас нет каналов.")
	}
	lines := []string{w.pick("Your channels:", "Ваши каналы:")}
	for _, c := range list {
		line := "- " + c.title() + " (" + c.ID + ")"
		if r := c.readiness(); r != "" {
			line += ": " + w.state(r)
		}
		if c.Detail != "" {
			line += ", " + c.Detail
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// states are the states of channels, in English and in Russian.
var states = map[string][2]string{
	"ready":        {"ready", "готов"},
	"unconfigured": {"not set up", "не настроен"},
	"degraded":     {"partly working", "работает с ограничениями"},
	"offline":      {"offline", "не в сети"},
}

func (w phrases) state(s string) string {
	if names, ok := states[s]; ok {
		return w.pick(names[0], names[1])
	}
	return s
}

func (w phrases) sent(name string, one delivery) string {
	where := w.pick("to ", "в ") + name
	if name == "" {
		where = w.pick("to all channels", "во все каналы")
	}
	switch one.Status {
	case "failed":
		return fmt.Sprintf(w.pick("I couldn't send it %s: %s", "Не удалось отправить %s: %s"), where, one.Detail)
	case "queued":
		return fmt.Sprintf(w.pick("I'll send it %s as soon as the channel is available.",
			"Отправлю %s, как только канал будет доступен."), where)
	case "delivered":
		return fmt.Sprintf(w.pick("Delivered %s.", "Доставлено %s."), where)
	}
	return fmt.Sprintf(w.pick("Sent %s.", "Отправлено %s."), where)
}

// at formats a time for people, with its day and zone.
func (w phrases) at(t, now time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		loc = now.Location()
	}
	t, now = t.In(loc), now.In(loc)
	clock := t.Format("15:04")
	if t.Second() != 0 {
		clock = t.Format("15:04:05")
	}
	day := ""
	switch daysBetween(now, t) {
	case 0:
		day = w.pick("today", "сегодня")
	case 1:
		day = w.pick("tomorrow", "завтра")
	default:
		day = fmt.Sprintf("%s %d %s", w.weekdays[t.Weekday()], t.Day(), w.months[t.Month()-1])
		if t.Year() != now.Year() {
			day += fmt.Sprintf(" %d", t.Year())
		}
	}
	return day + w.pick(" at ", " в ") + clock + " (" + loc.String() + ")"
}

func daysBetween(a, b time.Time) int {
	day := func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	}
	return int(day(b).Sub(day(a)) / (24 * time.Hour))
}

// scheduled confirms a reminder.
func (w phrases) scheduled(made schedule, when, channel string) string {
	text := withoutPrefix(made.Message)
	reminds := text != made.Message
	where := ""
	switch {
	case channel == "":
	case reminds:
		where = w.pick(" in ", " в ") + channel
	default:
		where = w.pick(" to ", " в ") + channel
	}
	repeats := made.Kind == "recurring"
	if repeats {
		if made.Timing != "" {
			where += " " + w.recurrence(made.Timing)
		}
		when = w.pick(", first ", ", первый раз ") + when
	} else {
		when = " " + when
	}
	promise := w.pick("OK, I'll send this", "Хорошо, отправлю")
	switch {
	case reminds && repeats:
		promise = w.pick("OK, I'll remind you", "Хорошо, буду напоминать")
	case reminds:
		promise = w.pick("OK, I'll remind you", "Хорошо, напомню")
	case repeats:
		promise = w.pick("OK, I'll send this", "Хорошо, буду отправлять")
	}
	out := promise + where + when + ": " + text
	if made.ID != "" {
		out += " [" + made.ID + "]"
	}
	return out
}

func (w phrases) line(sc schedule, now time.Time) string {
	parts := []string{"- " + sc.ID + ": " + withoutPrefix(sc.Message)}
	next := ""
	if sc.Kind == "recurring" && sc.Timing != "" {
		parts = append(parts, w.recurrence(sc.Timing))
		next = w.pick("next ", "в следующий раз ")
	}
	if sc.Next != nil {
		parts = append(parts, next+w.at(*sc.Next, now, sc.Timezone))
	}
	if sc.State == "paused" {
		parts = append(parts, w.pick("paused", "приостановлено"))
	}
	if sc.ChannelID != "" {
		parts = append(parts, sc.ChannelID)
	}
	return strings.Join(parts, ", ")
}

func (w phrases) lines(list []schedule, now time.Time) string {
	out := make([]string, len(list))
	for i, sc := range list {
		out[i] = w.line(sc, now)
	}
	return strings.Join(out, "\n")
}

func (w phrases) reminderList(list []schedule, now time.Time) string {
	if len(list) == 0 {
		return w.noReminders
	}
	return w.pick("Your reminders:\n", "Ваши напоминания:\n") + w.lines(list, now)
}

func (w phrases) noSuchReminder(name string, list []schedule, now time.Time) string {
	return fmt.Sprintf(w.pick("I couldn't find a reminder “%s”. Your reminders:\n",
		"Напоминание «%s» не найдено. Ваши напоминания:\n"), name) + w.lines(list, now)
}

func (w phrases) whichReminder(list []schedule, now time.Time) string {
	return fmt.Sprintf(w.pick("Which one? For example, say “cancel %s”.\n",
		"Какое именно? Скажите, например, «отмени %s».\n"), list[0].ID) + w.lines(list, now)
}

func (w phrases) cancelled(name string) string {
	return fmt.Sprintf(w.pick("Cancelled: %s", "Отменено: %s"), name)
}

func (w phrases) tooLate(name string) string {
	return fmt.Sprintf(w.pick("It's too late to cancel this, it was already sent: %s",
		"Отменить уже нельзя, напоминание отправлено: %s"), name)
}

func (w phrases) moreLeft(n int) string {
	return fmt.Sprintf(w.pick("%d more to go. Say it again to cancel them too.",
		"Осталось ещё %d. Повторите, чтобы отменить и их."), n)
}

// notesRU are the notes of the scheduler and of memory in Russian.
var notesRU = []struct {
	note *pattern.Pattern
	text string
}{
	{pattern.New(`^times are in UTC`),
		"время указано по UTC. Чтобы изменить часовой пояс, задайте timezone в config.yaml"},
	{pattern.New(`^channel (\S+) is not ready`), "канал %s сейчас не готов, сообщения подождут"},
	{pattern.New(`^channel (\S+) is not set up`), "канал %s ещё не настроен, туда пока ничего нельзя отправить"},
	{pattern.New(`^the clocks skip (\S+)`),
		"в этот день переводят часы, и времени %s не будет. Сработает позже, как только это возможно"},
	{pattern.New(`^the clocks show (\S+) twice`),
		"в этот день переводят часы, и время %s будет дважды. Сработает в первый раз"},
}

// note is a note about a result.
func (w phrases) note(text string) string {
	if !w.ru() {
		return "Note: " + text
	}
	for _, n := range notesRU {
		if m := n.note.FindStringSubmatch(text); len(m) == 2 {
			return "Примечание: " + fmt.Sprintf(n.text, m[1])
		} else if m != nil {
			return "Примечание: " + n.text
		}
	}
	return "Примечание: " + text
}
