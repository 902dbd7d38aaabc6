package offline

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
)

// phrases is what the model says in one language.
type phrases struct {
	language   grammar.Language
	reminder   string // before the text of one
	note       string
	hello      string
	help       string
	unknown    string
	welcome    string
	cannotTalk string

	noReminders string
	weekdays    [7]string
	months      [12]string
}

func in(l grammar.Language) phrases {
	if l == grammar.Russian {
		return russian
	}
	return english
}

// words are the phrases for a text that is no sentence of a user.
func words(text string) phrases {
	return in(grammar.Parse(text, time.Unix(0, 0).UTC()).Language)
}

func (w phrases) ru() bool { return w.language == grammar.Russian }

func (w phrases) pick(en, ru string) string {
	if w.ru() {
		return ru
	}
	return en
}

const (
	whatEN = `I am the offline model of Switchboard: a small fixed grammar, not a language model, because none is configured. Set OPENAI_API_KEY, in the environment or in secrets.env, to have one answer (OPENAI_BASE_URL and OPENAI_MODEL choose another server or model).`
	canEN  = `Until then I understand, for example:
- in 5 minutes remind me in Telegram to turn off the kettle
- remind me tomorrow at 9 to call home
- every Monday at 10:00 remind me of the meeting
- say hi to me in Telegram
- send "the text" to Telegram
- list reminders / cancel the reminder about the kettle
- remember that the kettle is in the kitchen / what do you know about the kettle? / forget the kettle
- list channels`
	whatRU = `Я офлайн-модель Switchboard: небольшая строгая грамматика, а не языковая модель, потому что никакая не настроена. Задайте OPENAI_API_KEY в окружении или в secrets.env, и отвечать будет она (OPENAI_BASE_URL и OPENAI_MODEL выбирают другой сервер или модель).`
	canRU  = `А пока я понимаю, например:
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
	language:    grammar.English,
	reminder:    "Reminder: ",
	note:        "Note: ",
	hello:       "Hello! " + whatEN + "\n\n" + canEN,
	help:        whatEN + "\n\n" + canEN,
	unknown:     "I did not understand that, so I did nothing. " + whatEN + "\n\n" + canEN,
	welcome:     "You are welcome.",
	cannotTalk:  whatEN + " I cannot answer other agents.",
	noReminders: "There are no reminders.",
	weekdays:    [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"},
	months:      [12]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
}

var russian = phrases{
	language:    grammar.Russian,
	reminder:    "Напоминание: ",
	note:        "Примечание: ",
	hello:       "Здравствуйте! " + whatRU + "\n\n" + canRU,
	help:        whatRU + "\n\n" + canRU,
	unknown:     "Я этого не понимаю и ничего не сделал. " + whatRU + "\n\n" + canRU,
	welcome:     "Пожалуйста.",
	cannotTalk:  whatRU + " Другим агентам я отвечать не умею.",
	noReminders: "Напоминаний нет.",
	weekdays:    [7]string{"вс", "пн", "вт", "ср", "чт", "пт", "сб"},
	months:      [12]string{"января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября", "декабря"},
}

func (w phrases) noTool(tool string) string {
	return fmt.Sprintf(w.pick("I cannot do that here: the tool %s is not available to me.", "Здесь я этого не могу: инструмент %s мне недоступен."), tool)
}

func (w phrases) failed(reason string) string {
	return fmt.Sprintf(w.pick("That did not work: %s", "Не получилось: %s"), strings.TrimSpace(reason))
}

func (w phrases) done(result string) string {
	return fmt.Sprintf(w.pick("Done: %s", "Готово: %s"), strings.TrimSpace(result))
}

func (w phrases) undone(task string) string {
	return fmt.Sprintf(w.pick("There is a task that I cannot do, because no language model is configured (set OPENAI_API_KEY): %s",
		"Есть задача, которую я не могу выполнить: языковая модель не настроена (задайте OPENAI_API_KEY): %s"), strings.TrimSpace(task))
}

func (w phrases) noChannel(said string, known []channel) string {
	return fmt.Sprintf(w.pick("There is no channel “%s”, so I did nothing. ", "Канала «%s» нет, ничего не сделано. "), said) + w.channelList(known)
}

func (w phrases) whichChannel(said string, found []channel) string {
	return fmt.Sprintf(w.pick("Several channels are called that (%s). Name the id: ", "Так называются несколько каналов (%s). Назовите id: "), said) + ids(found) + "."
}

func ids(list []channel) string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.ID
	}
	return strings.Join(out, ", ")
}

func (w phrases) channelList(list []channel) string {
	if len(list) == 0 {
		return w.pick("There are no channels.", "Каналов нет.")
	}
	lines := []string{w.pick("The channels:", "Каналы:")}
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

var statesRU = map[string]string{
	"ready": "готов", "unconfigured": "не настроен", "degraded": "работает с ограничениями", "offline": "не в сети",
}

func (w phrases) state(s string) string {
	if ru := statesRU[s]; w.ru() && ru != "" {
		return ru
	}
	return s
}

func (w phrases) sent(where string, one delivery) string {
	if where == "" {
		where = w.pick("all channels", "все каналы")
	}
	switch one.Status {
	case "failed":
		return fmt.Sprintf(w.pick("Not delivered to %s: %s", "Не доставлено в %s: %s"), where, one.Detail)
	case "queued":
		return fmt.Sprintf(w.pick("It is queued for %s and goes out as soon as that channel can deliver it.", "Сообщение поставлено в очередь в %s и уйдёт, как только канал сможет его доставить."), where)
	case "delivered":
		return fmt.Sprintf(w.pick("Done: delivered to %s.", "Готово: доставлено в %s."), where)
	}
	return fmt.Sprintf(w.pick("Done: sent to %s.", "Готово: отправлено в %s."), where)
}

// at is a time for people: with the day, and the zone it is in.
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
func (w phrases) scheduled(made schedule, when, where string) string {
	text := bare(made.Message)
	reminds := text != made.Message
	if where != "" {
		where = fmt.Sprintf(w.pick(" in %s", " в %s"), where)
	}
	repeats := made.Kind == "recurring"
	var format, often string
	if made.Timing != "" {
		often = " " + w.rhythm(made.Timing)
	}
	switch {
	case reminds && repeats:
		format = w.pick("Agreed. I will remind you%[2]s%[4]s, first %[1]s: %[3]s", "Хорошо. Буду напоминать%[2]s%[4]s, первый раз %[1]s: %[3]s")
	case reminds:
		format = w.pick("Agreed. I will remind you%[2]s %[1]s: %[3]s", "Хорошо. Напомню%[2]s %[1]s: %[3]s")
	case repeats:
		format = w.pick("Agreed. I will send this%[2]s%[4]s, first %[1]s: %[3]s", "Хорошо. Буду отправлять%[2]s%[4]s, первый раз %[1]s: %[3]s")
	default:
		format = w.pick("Agreed. I will send this%[2]s %[1]s: %[3]s", "Хорошо. Отправлю%[2]s %[1]s: %[3]s")
	}
	args := []any{when, where, text}
	if repeats {
		args = append(args, often)
	}
	out := fmt.Sprintf(format, args...)
	if made.ID != "" {
		out += " [" + made.ID + "]"
	}
	return out
}

func (w phrases) line(sc schedule, now time.Time) string {
	parts := []string{"- " + sc.ID + ": " + bare(sc.Message)}
	next := ""
	if sc.Kind == "recurring" && sc.Timing != "" {
		parts = append(parts, w.rhythm(sc.Timing))
		next = w.pick("next ", "в следующий раз ")
	}
	if sc.Next != nil {
		parts = append(parts, next+w.at(*sc.Next, now, sc.Timezone))
	}
	if sc.State != "" && sc.State != "active" {
		parts = append(parts, w.scheduleState(sc.State))
	}
	if sc.ChannelID != "" {
		parts = append(parts, sc.ChannelID)
	}
	return strings.Join(parts, ", ")
}

func (w phrases) scheduleState(s string) string {
	if w.ru() && s == "paused" {
		return "приостановлено"
	}
	return s
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
	return w.pick("The reminders:\n", "Напоминания:\n") + w.lines(list, now)
}

func (w phrases) noSuchReminder(name string, list []schedule, now time.Time) string {
	return fmt.Sprintf(w.pick("No reminder fits “%s”. There are:\n", "Напоминания «%s» нет. Есть:\n"), name) + w.lines(list, now)
}

func (w phrases) whichReminder(list []schedule, now time.Time) string {
	return fmt.Sprintf(w.pick("Which one? Say for example “cancel %s”.\n", "Какое? Скажите, например, «отмени %s».\n"), list[0].ID) + w.lines(list, now)
}

func (w phrases) cancelled(name string) string {
	return fmt.Sprintf(w.pick("Cancelled: %s", "Отменено: %s"), name)
}

func (w phrases) tooLate(name string) string {
	return fmt.Sprintf(w.pick("Too late, it has been delivered already: %s", "Поздно, уже доставлено: %s"), name)
}

func (w phrases) moreLeft(n int) string {
	return fmt.Sprintf(w.pick("%d more are left: say it again to cancel them.", "Осталось ещё %d: повторите, чтобы отменить и их."), n)
}
