package grammar

import (
	"fmt"
	"time"
)

// Reason says what kept a sentence from being understood.
type Reason string

// The reasons.
const (
	Unknown       Reason = "unknown"         // no command that is known
	NotUnderstood Reason = "not understood"  // words that are left over
	NoTime        Reason = "no time"         // a reminder for when?
	NoClock       Reason = "no time of day"  // tomorrow, but at what time?
	NoText        Reason = "no text"         // a reminder or message of what?
	NoChannel     Reason = "no channel"      // a message to where?
	NoMonth       Reason = "no month"        // the 25th of which month?
	NoRule        Reason = "no rule"         // "every other day": not expressible
	TwoTimes      Reason = "two times"       // more than one time
	TwoChannels   Reason = "two channels"    // more than one channel
	TwoCommands   Reason = "two commands"    // more than one command
	InnerTime     Reason = "time in text"    // a time in the middle of the text
	InnerChannel  Reason = "channel in text" // where to remind, or what to do?
	Unquoted      Reason = "unquoted"        // where does the text begin and end?
	Recipient     Reason = "recipient"       // a message to somebody else
	Vague         Reason = "vague"           // in a few minutes
	AmPm          Reason = "am or pm"        // at 5: which?
	Midnight      Reason = "midnight"        // of which day?
	AmbiguousDay  Reason = "ambiguous day"   // next Friday, or Friday on a Friday
	AmbiguousDate Reason = "ambiguous date"  // 03/04
	Past          Reason = "past"            // that time has passed
	NoSuchTime    Reason = "no such time"    // 25:00, 30 February, inside a clock change
	Twice         Reason = "twice"           // repeated by a clock change
	NotEveryMonth Reason = "not every month" // the 31st of every month
	TooOften      Reason = "too often"       // less than a minute apart
	TooFar        Reason = "too far"         // more than ten years
	TooLong       Reason = "too long"        // the whole message
)

// Question is why a sentence was not acted on, and what to ask back.
type Question struct {
	Reason   Reason
	Language Language
	// Said and Other quote the words in question.
	Said, Other string
	// Hour and Minute are the time that may be morning or evening.
	Hour, Minute int
	// Time is the moment that does not fit.
	Time time.Time
}

// Text is the question for the person, in their language. Unknown has none of
// its own: what to offer then depends on who is asked.
func (q *Question) Text() string {
	en, ru := q.texts()
	if q.Language == Russian {
		return ru
	}
	return en
}

func (q *Question) texts() (en, ru string) {
	both := func(en, ru string, args ...any) (string, string) {
		return fmt.Sprintf(en, args...), fmt.Sprintf(ru, args...)
	}
	switch q.Reason {
	case Unknown:
		return "I did not understand that.", "Я этого не понимаю."
	case NoTime:
		return `When? For example "in 10 minutes", "tomorrow at 9:00" or "every day at 9:00", at the beginning or at the end of the sentence.`,
			"Когда? Например: «через 10 минут», «завтра в 9:00» или «каждый день в 9:00», в начале или в конце предложения."
	case NoClock:
		return both(`At what time? I read "%s" without an hour.`, "Во сколько? «%s» сказано без времени.", q.Said)
	case NoText:
		return "What is the text? For example: remind me in 10 minutes to call home.", "Какой текст? Например: напомни через 10 минут позвонить домой."
	case NoChannel:
		return `In which channel? For example "in Telegram".`, "В какой канал? Например, «в Telegram»."
	case NoMonth:
		return both(`Which month? I read "%s".`, "Какого месяца? Сказано «%s».", q.Said)
	case NoRule:
		return both(`"%s" is more than I can plan. I know every N minutes or hours, every day, weekdays, days of the week and a day of the month, at one time of day.`,
			"«%s» я спланировать не могу. Умею: каждые N минут или часов, каждый день, по будням, по дням недели и по числам месяца, в одно время дня.", q.Said)
	case TwoTimes:
		return both(`I see two times: "%s" and "%s". If one of them belongs to the text, put the text in quotes.`,
			"Вижу два времени: «%s» и «%s». Если одно из них относится к тексту, возьмите текст в кавычки.", q.Said, q.Other)
	case InnerTime:
		return both(`Does "%s" say when, or is it part of the text? Put the time at the beginning or the end of the sentence, or the text in quotes.`,
			"«%s» — это время или часть текста? Поставьте время в начало или в конец предложения или возьмите текст в кавычки.", q.Said)
	case TwoChannels:
		return both(`I see two channels: "%s" and "%s". Which one? If one of them belongs to the text, put the text in quotes.`,
			"Вижу два канала: «%s» и «%s». Какой из них? Если один относится к тексту, возьмите текст в кавычки.", q.Said, q.Other)
	case InnerChannel:
		return both(`Shall I remind you in %s, or does that belong to the text? Name the channel before the text, or put the text in quotes.`,
			"Напомнить в канале «%s», или это часть текста? Назовите канал перед текстом или возьмите текст в кавычки.", q.Said)
	case TwoCommands:
		return "One thing at a time, please: that looks like two requests.", "По одному, пожалуйста: похоже, здесь две просьбы."
	case Unquoted:
		return `Where does the text begin and end? Put it in quotes (send "text" to Telegram) or behind a colon (write to me in Telegram: text).`,
			"Где начинается и кончается текст? Возьмите его в кавычки (отправь «текст» в Telegram) или напишите после двоеточия (напиши мне в Telegram: текст)."
	case Recipient:
		return both(`I can write only to you, not to "%s".`, "Я могу писать только вам, а не «%s».", q.Said)
	case Vague:
		return both(`How long exactly? "%s" is too vague for me.`, "Сколько именно? «%s» для меня неточно.", q.Said)
	case AmPm:
		return both(`Morning or evening? "%s" can be %s or %s.`, "Утром или вечером? «%s» — это %s или %s.",
			q.Said, clockText(q.Hour%12, q.Minute), clockText(q.Hour%12+12, q.Minute))
	case Midnight:
		return both(`Which night? "%s" begins one day and ends another. Say 00:01 or 23:59 with the day.`,
			"Какая ночь? «%s» — граница двух дней. Скажите 00:01 или 23:59 и день.", q.Said)
	case AmbiguousDay:
		return both(`Which day exactly? "%s" can be two days. Say the date, for example "on 25 December at 10:00".`,
			"Какой именно день? «%s» можно понять двояко. Назовите дату, например «25 декабря в 10:00».", q.Said)
	case AmbiguousDate:
		return both(`Which date? "%s" is read differently in different countries. Say "25 December".`,
			"Какая дата? «%s» в разных странах читают по-разному. Скажите «25 декабря».", q.Said)
	case Past:
		return both(`"%s" has passed already. When shall it be? For example "tomorrow at 9:00".`,
			"«%s» уже прошло. Когда? Например, «завтра в 9:00».", q.Said)
	case NoSuchTime:
		return both(`There is no such time: "%s". When shall it be?`, "Такого времени нет: «%s». Когда?", q.Said)
	case Twice:
		return both(`"%s" comes twice that night, because the clocks change. Say "in N hours", or another time.`,
			"«%s» в эту ночь бывает дважды: переводят часы. Скажите «через N часов» или другое время.", q.Said)
	case NotEveryMonth:
		return both(`Not every month has that day: "%s". Choose a day from 1 to 28.`, "Такое число есть не в каждом месяце: «%s». Выберите день от 1 до 28.", q.Said)
	case TooOften:
		return both(`"%s" is too often: at most once a minute.`, "«%s» — слишком часто: не чаще раза в минуту.", q.Said)
	case TooFar:
		return both(`"%s" is too far ahead: at most ten years.`, "«%s» — слишком далеко: не больше десяти лет.", q.Said)
	case TooLong:
		return "That is too long for me.", "Это для меня слишком длинно."
	default:
		return both(`I understood only a part of that, so I did nothing. I stumbled over "%s".`, "Понятна только часть, поэтому ничего не сделано. Непонятно: «%s».", q.Said)
	}
}

func clockText(h, m int) string { return fmt.Sprintf("%02d:%02d", h, m) }
