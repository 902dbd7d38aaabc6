package grammar

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Reason says why a sentence was not understood.
type Reason string

// The reasons.
const (
	Unknown       Reason = "unknown"         // not a known command
	NotUnderstood Reason = "not understood"  // some words are left over
	NoTime        Reason = "no time"         // a reminder without a time
	NoClock       Reason = "no time of day"  // a day without a time of day: tomorrow
	NoText        Reason = "no text"         // a reminder without a text
	NoMessage     Reason = "no message"      // a message without a text
	NoFact        Reason = "no fact"         // nothing to remember
	NoChannel     Reason = "no channel"      // a message without a channel
	NoMonth       Reason = "no month"        // a day without a month: the 25th
	NoRule        Reason = "no rule"         // an unsupported repetition: every other day
	TwoTimes      Reason = "two times"       // more than one time
	TwoChannels   Reason = "two channels"    // more than one channel
	TwoCommands   Reason = "two commands"    // more than one command
	InnerTime     Reason = "time in text"    // a time in the middle of the text
	InnerChannel  Reason = "channel in text" // a channel that may be part of the text
	Unquoted      Reason = "unquoted"        // unclear where the message begins and ends
	Recipient     Reason = "recipient"       // a message to another person
	Vague         Reason = "vague"           // in a few minutes
	AmPm          Reason = "am or pm"        // at 5
	Midnight      Reason = "midnight"        // midnight between two days
	AmbiguousDay  Reason = "ambiguous day"   // next Friday, or Friday on a Friday
	AmbiguousDate Reason = "ambiguous date"  // 03/04
	Past          Reason = "past"            // a time that has passed
	NoSuchTime    Reason = "no such time"    // 25:00, 30 February, inside a clock change
	Twice         Reason = "twice"           // repeated by a clock change
	NotEveryMonth Reason = "not every month" // the 31st of every month
	TooOften      Reason = "too often"       // less than a minute apart
	TooFar        Reason = "too far"         // more than ten years ahead
	TooLong       Reason = "too long"        // the whole message
)

// Question says why a sentence was not acted on, and asks for what is missing.
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

// questions are the texts by reason, in English and in Russian. Placeholders:
// {said}, {other}, {phrase} (said, as it is written within a sentence), {am}
// and {pm}.
var questions = map[Reason][2]string{
	Unknown: {"I didn't understand that.", "Я вас не понимаю."},
	NotUnderstood: {
		"I didn't understand “{said}”, so I changed nothing.",
		"Я не понимаю «{said}», поэтому ничего не делаю.",
	},
	NoTime: {
		"When should I remind you? For example: “in 10 minutes”, “tomorrow at 9:00” or “every day at 9:00”.",
		"Когда напомнить? Например: «через 10 минут», «завтра в 9:00» или «каждый день в 9:00».",
	},
	NoClock:   {"What time {phrase}?", "Во сколько {phrase}?"},
	NoText:    {"What should I remind you about?", "О чём напомнить?"},
	NoMessage: {"What should I write?", "Что написать?"},
	NoFact:    {"What should I remember?", "Что запомнить?"},
	NoChannel: {
		"Which channel should I send it to? For example: “in Telegram”.",
		"В какой канал отправить? Например: «в Telegram».",
	},
	NoMonth: {"Which month do you mean by “{said}”?", "Какой месяц вы имеете в виду: «{said}»?"},
	NoRule: {
		"I can't repeat a reminder “{said}”. I can repeat it every N minutes or hours, every day, on weekdays, " +
			"on days of the week, or on a day of the month, at one time of day.",
		"Я не умею напоминать «{said}». Могу каждые N минут или часов, каждый день, по будням, " +
			"по дням недели или по числам месяца, в одно и то же время.",
	},
	TwoTimes: {
		"I found two times: “{said}” and “{other}”. Please say it with one of them. " +
			"If the other is part of the text, put the text in quotes.",
		"Здесь два времени: «{said}» и «{other}». Оставьте одно из них. " +
			"Если второе относится к тексту, возьмите текст в кавычки.",
	},
	InnerTime: {
		"Is “{said}” the time, or part of the text? Put the time first or last, or put the text in quotes.",
		"«{said}» — это время или часть текста? Поставьте время в начало или в конец либо возьмите текст в кавычки.",
	},
	TwoChannels: {
		"I found two channels: “{said}” and “{other}”. Please name one of them. " +
			"If the other is part of the text, put the text in quotes.",
		"Здесь два канала: «{said}» и «{other}». Оставьте один из них. " +
			"Если второй относится к тексту, возьмите текст в кавычки.",
	},
	InnerChannel: {
		"Should I remind you in {said}, or is that part of the text? " +
			"Name the channel before the text, or put the text in quotes.",
		"Напомнить в канале «{said}», или это часть текста? Назовите канал перед текстом или возьмите текст в кавычки.",
	},
	TwoCommands: {"One request at a time, please.", "Пожалуйста, по одной просьбе за раз."},
	Unquoted: {
		"Which part is the message? Put it in quotes (send “text” to Telegram) " +
			"or after a colon (write to me in Telegram: text).",
		"Что из этого отправить? Возьмите сообщение в кавычки (отправь «текст» в Telegram) " +
			"или напишите его после двоеточия (напиши мне в Telegram: текст).",
	},
	Recipient: {"I can write only to you, not to “{said}”.", "Я могу писать только вам, но не «{said}»."},
	Vague:     {"When exactly? “{said}” is too vague.", "Когда именно? «{said}» — слишком неточно."},
	AmPm: {
		"Morning or evening? “{said}” could be {am} or {pm}.",
		"Утром или вечером? «{said}» — это {am} или {pm}?",
	},
	Midnight: {
		"Which night do you mean? “{said}” is between two days. Say 00:01 or 23:59 and the day.",
		"Какую ночь вы имеете в виду? «{said}» — граница двух дней. Скажите 00:01 или 23:59 и день.",
	},
	AmbiguousDay: {
		"Which day do you mean by “{said}”? Give the date, for example “on December 25 at 10:00”.",
		"Какой именно день? «{said}» можно понять по-разному. Назовите дату, например «25 декабря в 10:00».",
	},
	AmbiguousDate: {
		"Which date do you mean by “{said}”? Write the month as a word, for example “December 25”.",
		"Какая именно дата? «{said}» можно понять по-разному. Напишите месяц словом, например «25 декабря».",
	},
	Past: {
		"“{said}” has already passed. What time did you mean? For example: “tomorrow at 9:00”.",
		"«{said}» уже прошло. Какое время вы имели в виду? Например: «завтра в 9:00».",
	},
	NoSuchTime: {
		"“{said}” isn't a valid time. What time did you mean?",
		"«{said}» — такого времени не бывает. Какое время вы имели в виду?",
	},
	Twice: {
		"The clocks change that night, so “{said}” happens twice. Say “in N hours”, or choose another time.",
		"В эту ночь переводят часы, и «{said}» будет дважды. Скажите «через N часов» или выберите другое время.",
	},
	NotEveryMonth: {
		"Not every month has that day: “{said}”. Choose a day from 1 to 28.",
		"Такое число есть не в каждом месяце: «{said}». Выберите день от 1 до 28.",
	},
	TooOften: {
		"“{said}” is too often. I can remind you at most once a minute.",
		"«{said}» — слишком часто. Могу напоминать не чаще раза в минуту.",
	},
	TooFar: {
		"“{said}” is too far away. I can plan at most ten years ahead.",
		"«{said}» — слишком далеко. Могу запланировать не больше чем на десять лет вперёд.",
	},
	TooLong: {
		"That message is too long for me. Please make it shorter.",
		"Сообщение слишком длинное. Пожалуйста, сократите его.",
	},
}

// Text is the question in the person's language.
func (q *Question) Text() string {
	text, ok := questions[q.Reason]
	if !ok {
		text = questions[NotUnderstood]
	}
	template := text[0]
	if q.Language == Russian {
		template = text[1]
	}
	return strings.NewReplacer(
		"{said}", q.Said,
		"{other}", q.Other,
		"{phrase}", withinSentence(q.Said),
		"{am}", fmt.Sprintf("%02d:%02d", q.Hour%12, q.Minute),
		"{pm}", fmt.Sprintf("%02d:%02d", q.Hour%12+12, q.Minute),
	).Replace(template)
}

// withinSentence lowers the first letter of words that began a sentence, unless
// it is that of an English day or month.
func withinSentence(said string) string {
	first, _, _ := strings.Cut(strings.ToLower(said), " ")
	first = strings.TrimRight(first, ",.")
	if scriptOf(said) == English && (weekdays[first] > 0 || months[first] > 0) {
		return said
	}
	r, n := utf8.DecodeRuneInString(said)
	if r == utf8.RuneError {
		return said
	}
	return string(unicode.ToLower(r)) + said[n:]
}
