package grammar

import (
	"slices"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// Remember asks to remember something.
type Remember struct {
	// Text is the text to remember, in the person's own words.
	Text string
	// Preference is set when the text says what the person prefers.
	Preference bool
}

// Recall asks for the memories about something.
type Recall struct{ About string }

// ListMemories asks for all memories.
type ListMemories struct{}

// Forget asks to forget something.
type Forget struct {
	All bool
	// Name identifies the memory: an id, or words of its text.
	Name string
}

func (Remember) intent()     {}
func (Recall) intent()       {}
func (ListMemories) intent() {}
func (Forget) intent()       {}

var (
	rememberVerbs = []string{
		"remember", "keep in mind", "make a note", "note",
		"запомни", "запомните", "помни", "имей в виду", "имейте в виду",
	}
	recallPhrases = []string{
		"what do you know about", "what do you remember about", "what do you recall about",
		"do you know anything about", "do you remember anything about",
		"tell me what you know about", "tell me what you remember about", "what is known about",
		"что ты знаешь", "что ты помнишь", "что знаешь", "что помнишь", "что известно", "расскажи что ты знаешь",
		"расскажи что ты помнишь",
		"знаешь ли ты что-нибудь", "помнишь ли ты что-нибудь", "ты помнишь что-нибудь", "ты знаешь что-нибудь",
	}
	aboutRU     = []string{"о", "об", "обо", "про", "насчет"}
	forgetVerbs = []string{"forget", "забудь", "забудьте"}
	forgetAbout = []string{
		"about", "that", "what you know about", "what you remember about", "everything about",
		"everything you know about", "all about", "the memory about", "the memory", "memory",
		"о", "об", "обо", "про", "что", "о том что", "то что", "все о", "все об", "все про", "что знаешь о",
		"что знаешь об", "что ты знаешь о", "что ты знаешь об", "что ты помнишь о", "что ты помнишь об",
		"воспоминание о", "воспоминание",
	}

	listMemories = pattern.New(`^(?:(?:list|show|show me|give me|tell me) )?(?:all )?(?:of )?` +
		`(?:my |the |your )?memories$` +
		`|^what (?:do you remember|have you remembered|did you remember)$` +
		`|^what do you (?:know|remember) about (?:me|us|everything)$` +
		`|^(?:list|show|show me|tell me) (?:everything |all |what )(?:that )?you (?:remember|know about me)$` +
		`|^что ты (?:помнишь|запомнил|запомнила)$|^что ты (?:знаешь|помнишь) (?:обо мне|о нас|обо всем)$` +
		`|^(?:покажи |покажите |выведи |перечисли )?(?:мне )?(?:все |всю )?(?:свои |твои )?(?:воспоминания|память)$` +
		`|^покажи (?:мне )?(?:все )?что ты (?:помнишь|запомнил|запомнила)$`)
	forgetEverything = pattern.New(`^(?:everything|all|all of it|everything you (?:know|remember)|all (?:the |my ` +
		`|your )?memories` +
		`|все|все что (?:ты )?(?:знаешь|помнишь)|все воспоминания)$`)
	pronounOnly = pattern.New(`^(?:it|this|that|them|about it|about this|about that|me|это|этом|об этом` +
		`|его|ее|их|меня|обо мне)$`)
	prefers = pattern.New(`^(?:(?:i|we) (?:always |usually |would )?prefer|(?:я|мы) (?:всегда |обычно )?` +
		`предпочита(?:ю|ем)) `)
)

// memory reads sentences about remembering. It reports false for others.
func (s *scan) memory() (Reading, bool) {
	i, n := s.bare()
	if i >= n {
		return Reading{}, false
	}
	if listMemories.MatchString(s.plain(i, n)) {
		return Reading{Language: scriptOf(s.at(i)), Intent: ListMemories{}}, true
	}
	if next, ok := s.words(i, rememberVerbs...); ok {
		// The text is kept word for word, including a "now" at its end.
		return s.rememberWhat(scriptOf(s.at(i)), next, s.trim(0, len(s.toks)))
	}
	if next, ok := s.words(i, forgetVerbs...); ok {
		return s.forgetWhat(scriptOf(s.at(i)), next, n)
	}
	return s.recallWhat(i, n)
}

func (s *scan) rememberWhat(lang Language, i, n int) (Reading, bool) {
	if s.is(i, comma) {
		i++
	}
	switch {
	case s.oneOf(i, "that", "что"):
		i++
		if s.is(i, colon) || s.is(i, comma) {
			i++
		}
	case s.is(i, colon):
		i++
	case s.is(i, quoted) && i+1 == n:
	default:
		return Reading{}, false // "remember to ..." would be a reminder without a time
	}
	text := s.raw(i, n)
	if blank(text) {
		return question(lang, &Question{Reason: NoFact}), true
	}
	if !s.is(i, quoted) || i+1 < n {
		for k := i; k < n; k++ {
			if _, ok := s.words(k, slices.Concat(remindVerbs, forgetVerbs)...); ok {
				return question(lang, &Question{Reason: TwoCommands}), true
			}
		}
	}
	return Reading{Language: lang, Intent: Remember{Text: text, Preference: prefers.MatchString(norm(text))}}, true
}

func (s *scan) forgetWhat(lang Language, i, n int) (Reading, bool) {
	if s.is(i, comma) {
		i++
	}
	if i >= n {
		return Reading{}, false
	}
	plain := s.plain(i, n)
	switch {
	case forgetEverything.MatchString(plain):
		return Reading{Language: lang, Intent: Forget{All: true}}, true
	case pronounOnly.MatchString(plain), s.oneOf(i, "to"):
		return Reading{}, false
	}
	if s.oneOf(i, "все") && s.oneOf(i+1, "что") {
		i++
	} else if s.oneOf(i, "все", "то") && s.is(i+1, comma) && s.oneOf(i+2, "что") {
		i += 2
	}
	if next, ok := s.words(i, forgetAbout...); ok && next < n {
		i = next
	}
	if s.is(i, comma) || s.is(i, colon) {
		i++
	}
	name := s.raw(i, n)
	if blank(name) || pronounOnly.MatchString(s.plain(i, n)) {
		return Reading{}, false
	}
	return Reading{Language: lang, Intent: Forget{Name: name}}, true
}

func (s *scan) recallWhat(i, n int) (Reading, bool) {
	lang := scriptOf(s.at(i))
	if s.oneOf(i, "расскажи", "скажи") && s.is(i+1, comma) {
		i += 2
	}
	next, ok := s.words(i, recallPhrases...)
	if !ok {
		return Reading{}, false
	}
	if lang == Russian {
		if next, ok = s.words(next, aboutRU...); !ok {
			return Reading{}, false
		}
	}
	about := s.raw(next, n)
	if blank(about) || pronounOnly.MatchString(s.plain(next, n)) {
		return Reading{}, false
	}
	return Reading{Language: lang, Intent: Recall{About: about}}, true
}
