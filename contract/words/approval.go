package words

import (
	"cmp"
	"strings"
	"unicode"
)

// Answers to a yes-or-no question.
const (
	Yes = "yes"
	No  = "no"
	// Always and AlwaysHere are yes for good, the latter in this conversation only.
	Always     = "always"
	AlwaysHere = "always here"
)

// lasting are the words for Always and AlwaysHere.
var lasting = map[string]string{
	"always": Always, "yes always": Always, "всегда": Always, "да всегда": Always, "всегда да": Always,

	"here": AlwaysHere, "always here": AlwaysHere, "yes always here": AlwaysHere, "здесь": AlwaysHere,
	"всегда здесь": AlwaysHere, "здесь всегда": AlwaysHere, "да всегда здесь": AlwaysHere,
	"always in this conversation": AlwaysHere, "всегда в этом чате": AlwaysHere,
}

// LastingApproval returns Always or AlwaysHere for a text in any language that says
// nothing else.
func LastingApproval(text string) (answer string, ok bool) {
	answer, ok = lasting[strings.Join(wordsOf(text), " ")]
	return answer, ok
}

// approvals are the words for yes and no; polite ones say neither.
var approvals = map[string]string{
	"yes": Yes, "y": Yes, "yep": Yes, "yeah": Yes, "ok": Yes, "okay": Yes, "sure": Yes, "go ahead": Yes, "of course": Yes,
	"да": Yes, "ок": Yes, "окей": Yes, "ага": Yes, "конечно": Yes, "хорошо": Yes, "давай": Yes,
	"no": No, "n": No, "nope": No, "нет": No, "не надо": No, "не нужно": No,
	"please": "", "thanks": "", "thank you": "", "пожалуйста": "", "спасибо": "",
}

// Approval returns Yes or No for a text in any language that has no other words than
// those for it.
func Approval(text string) (answer string, ok bool) {
	words := wordsOf(text)
	for i := 0; i < len(words); i++ {
		means, known := approvals[words[i]]
		if !known && i+1 < len(words) {
			means, known = approvals[words[i]+" "+words[i+1]]
			i++
		}
		if !known || means != "" && answer != "" && answer != means {
			return "", false
		}
		answer = cmp.Or(means, answer)
	}
	return answer, answer != ""
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
}
