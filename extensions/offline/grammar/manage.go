package grammar

import (
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

var (
	listReminders = pattern.New(`^(?:(?:list|show|show me|give me|tell me|display|what are|what's in) )?` +
		`(?:all )?(?:of )?(?:my |the )?(?:pending |scheduled |active )?(?:reminders|schedules|schedule)$` +
		`|^(?:what|which) (?:reminders|schedules) (?:do i have|have i|are there|are set|are scheduled|are pending` +
		`|have i set|did i set|exist)$` +
		`|^what(?:'s| is) (?:scheduled|planned)$|^do i have (?:any )?(?:reminders|schedules)$` +
		`|^what do i have (?:scheduled|planned)$` +
		`|^(?:(?:покажи|покажите|показать|выведи|дай|перечисли|список) )?(?:мне )?` +
		`(?:все )?(?:мои |моих )?(?:все )?(?:напоминания|напоминаний|расписание|расписания)$` +
		`|^покажи список (?:моих )?напоминаний$` +
		`|^какие (?:есть )?(?:у меня )?(?:есть )?напоминания(?: есть)?(?: у меня)?(?: есть)?$` +
		`|^какие напоминания (?:стоят|запланированы|установлены)$|^что (?:у меня )?запланировано(?: у меня)?$` +
		`|^(?:у меня )?есть (?:ли )?(?:у меня )?напоминания$`)

	listChannels = pattern.New(`^(?:(?:list|show|show me|give me|tell me|display) )?(?:all )?` +
		`(?:the |my |your )?(?:available )?channels$` +
		`|^(?:what|which) channels (?:do i have|do you have|do you know|are there|are available|are ready` +
		`|can you use|exist)$|^what are (?:the|my|your) channels$` +
		`|^(?:(?:покажи|показать|выведи|перечисли|список) )?(?:мне )?(?:все )?(?:мои |доступные |доступных )?` +
		`(?:каналы|каналов)$` +
		`|^покажи список каналов$|^какие (?:есть |у тебя |у меня )*каналы(?: есть| доступны| ты знаешь| у тебя есть)?$`)

	greetingOnly = pattern.New(`^(?:hi|hello|hey|hi there|hello there|hey there|greetings` +
		`|good (?:morning|afternoon|evening|day)|how are you|hello how are you|hi how are you` +
		`|привет|приветик|здравствуй|здравствуйте|доброе утро|добрый (?:день|вечер)|хай|привет как дела|как дела)$`)

	thanksOnly = pattern.New(`^(?:thanks|thank you|thanks a lot|thank you very much|ok|okay|ok thanks|great|bye` +
		`|goodbye|good night|спасибо|большое спасибо|спасибо большое|благодарю|ок|хорошо|ладно|понятно|пока` +
		`|спокойной ночи|до свидания)$`)

	helpOnly = pattern.New(`^(?:/?help|help me|what can you do|what do you do|what can i say|who are you` +
		`|what are you|how do you work|commands|what do you know` +
		`|помощь|помоги|помоги мне|справка|что ты умеешь|что ты можешь|что умеешь|что ты знаешь|кто ты|ты кто` +
		`|кто ты такой|что ты такое|команды|как тобой пользоваться|что можно сказать)$`)

	cancelVerb = pattern.New(`^(?:(cancel|delete|remove|stop|clear|drop)` +
		`|отмени|отменить|удали|удалить|убери|сними)(?:те)?$`)
	scheduleID = pattern.New(`^[a-z]{1,8}_?\d+$`)
	cancelAll  = pattern.New(`^(?:all|every|everything|all of|все|всех)(?: of)?(?: the| my| мои| эти)?` +
		`(?: (?:reminders?|schedules?|напоминания|расписания))?$`)
	cancelOne = pattern.New(`^(?:(?:the|my|a|это|мое|одно) )?(?:reminders?|schedule|напоминание|напоминания)$`)
)

// manage reads fixed phrases. It reports false for other sentences.
func (s *scan) manage() (Reading, bool) {
	i, n := s.bare()
	whole := s.plain(0, s.trim(0, len(s.toks)))
	switch {
	case greetingOnly.MatchString(whole):
		return Reading{Intent: Greeting{}}, true
	case thanksOnly.MatchString(whole):
		return Reading{Intent: Thanks{}}, true
	case i >= n:
		if s.bareGreeting() {
			return Reading{Intent: Greeting{}}, true
		}
		return Reading{}, false
	}
	plain := s.plain(i, n)
	switch {
	case listReminders.MatchString(plain):
		return Reading{Intent: ListReminders{}}, true
	case listChannels.MatchString(plain):
		return Reading{Intent: ListChannels{}}, true
	case greetingOnly.MatchString(plain):
		return Reading{Intent: Greeting{}}, true
	case thanksOnly.MatchString(plain):
		return Reading{Intent: Thanks{}}, true
	case helpOnly.MatchString(plain), helpOnly.MatchString(whole):
		return Reading{Intent: Help{}}, true
	}
	if cancelVerb.MatchString(s.at(i)) {
		return s.cancel(i+1, n)
	}
	return Reading{}, false
}

// bare returns the range of the sentence without politeness around it.
func (s *scan) bare() (int, int) {
	i, n := 0, s.trim(0, len(s.toks))
	for i < n {
		if next, ok := s.words(i, fillers...); ok {
			i = next
		} else if s.is(i, comma) || s.is(i, stop) {
			i++
		} else {
			break
		}
	}
	for n > i {
		m := n
		for _, f := range tailFillers {
			if k := n - 1 - strings.Count(f, " "); k >= i {
				if end, ok := s.words(k, f); ok && end == n {
					n = s.trim(i, k)
					break
				}
			}
		}
		if m == n {
			break
		}
	}
	return i, n
}

// bareGreeting reports whether a sentence of only politeness ("hi", "please",
// "спасибо") has a greeting.
func (s *scan) bareGreeting() bool {
	for i := range s.toks {
		if greetingOnly.MatchString(s.at(i)) {
			return true
		}
	}
	return false
}

// plain joins the words from i up to n. With any token that is not a word or a
// simple mark, the result matches no phrase.
func (s *scan) plain(i, n int) string {
	var b strings.Builder
	for k := i; k < n; k++ {
		switch s.toks[k].kind {
		case word:
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(s.toks[k].norm)
		case comma, stop:
		case other:
			if s.toks[k].norm != "/" {
				return "\x00"
			}
		default:
			return "\x00"
		}
	}
	return b.String()
}

// cancel reads the reminder to cancel.
func (s *scan) cancel(i, n int) (Reading, bool) {
	plain := s.plain(i, n)
	switch {
	case i >= n:
		return Reading{}, false // nothing to cancel
	case cancelAll.MatchString(plain):
		return Reading{Intent: Cancel{All: true}}, true
	case cancelOne.MatchString(plain):
		return Reading{Intent: Cancel{}}, true
	}
	if i+1 == n && (number(s.at(i)) || s.is(i, quoted) || scheduleID.MatchString(s.at(i))) {
		return Reading{Intent: Cancel{Name: s.raw(i, n)}}, true
	}
	if s.is(i, other) && s.toks[i].norm == "#" && i+2 == n {
		return Reading{Intent: Cancel{Name: s.raw(i+1, n)}}, true
	}
	j := i
	for s.oneOf(j, "the", "my", "мое", "это") {
		j++
	}
	if s.oneOf(j, "reminder", "schedule", "напоминание") {
		j++
		for s.oneOf(j, "number", "no", "nr", "id", "about", "to", "for", "of", "that", "with", "номер", "про", "о",
			"об", "обо", "что", "с") ||
			s.is(j, colon) || (s.is(j, other) && (s.toks[j].norm == "#" || s.toks[j].norm == "№")) {
			if j+1 >= n {
				return Reading{Intent: Cancel{}}, true
			}
			j++
		}
		return Reading{Intent: Cancel{Name: s.raw(j, n)}}, true
	}
	if s.oneOf(n-1, "reminder", "напоминание") { // "the kettle reminder"
		return Reading{Intent: Cancel{Name: s.raw(j, n-1)}}, true
	}
	return Reading{}, false
}
