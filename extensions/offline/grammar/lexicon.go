package grammar

import (
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// A language is one file. Its sections:
//
//	[words]      lists of phrases by name: <name> in a sentence, or used in code
//	[times]      forms of times, in the same way: "kind flag: pattern"
//	[sentences]  what a person may say, in order: "intent flags: pattern"
//	[texts]      what the model says, by name
//	[...]        values of words: "7: seven"
//
//	[notes]      notes of other extensions, and their translations
//
// A pattern is a regular expression over words; spaces only separate them. T is a
// time (W: one that may also be text), C a channel, Q a quotation, P politeness.
// <name> is any phrase of a list, {name} a slot of at least one word. Times,
// channels and politeness may also surround every sentence.
//
//go:embed languages/*.txt
var files embed.FS

// lexicon is the content of all languages.
type lexicon struct {
	phrases   map[string][]string       // of all languages, by list
	values    map[string]map[string]int // by section and word
	texts     map[Language]map[string]string
	sentences map[Language][]sentenceForm
	notes     map[Language][]note
	times     map[string][]timeForm // of all languages, by kind
}

// sentenceForm is one row of the sentences.
type sentenceForm struct {
	intent string
	flag   string
	form   *pattern.Pattern
}

// note is a note of another extension and its translation.
type note struct {
	form *pattern.Pattern
	text string
}

// Note translates a note of another extension, if the language has it.
func Note(l Language, text string) string {
	for _, n := range languages().notes[l] {
		if m := n.form.FindStringSubmatch(text); len(m) == 2 {
			return fmt.Sprintf(n.text, m[1])
		} else if m != nil {
			return n.text
		}
	}
	return text
}

var languages = sync.OnceValue(func() *lexicon {
	l := &lexicon{phrases: map[string][]string{}, values: map[string]map[string]int{},
		texts: map[Language]map[string]string{}, sentences: map[Language][]sentenceForm{},
		notes: map[Language][]note{}, times: map[string][]timeForm{}}
	for _, language := range []Language{English, Russian} {
		file, err := files.ReadFile("languages/" + string(language) + ".txt")
		if err != nil {
			panic(err) // embedded
		}
		l.add(language, string(file))
	}
	return l
})

func (l *lexicon) add(language Language, file string) {
	own, texts := map[string][]string{}, map[string]string{}
	section := ""
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		name, content, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		switch section {
		case "words":
			own[name] = strings.Split(content, ", ")
			l.phrases[name] = append(l.phrases[name], own[name]...)
		case "notes":
			l.notes[language] = append(l.notes[language], note{pattern.New(name), content})
		case "texts":
			texts[name] = strings.ReplaceAll(content, `\n`, "\n")
		case "sentences":
			intent, flag, _ := strings.Cut(name, " ")
			flag, literal := strings.CutSuffix(flag, " !")
			form := l.sentencePattern(content, own, literal || flag == "!" || flag == "literal")
			l.sentences[language] = append(l.sentences[language], sentenceForm{intent, flag, pattern.New(form)})
		case "times":
			kind, flag, _ := strings.Cut(name, " ")
			form := l.pattern(content, own)
			l.times[kind] = append(l.times[kind], timeForm{flag, form, pattern.Longest("^(?:" + form + ")")})
		default:
			if l.values[section] == nil {
				l.values[section] = map[string]int{}
			}
			value, _ := strconv.Atoi(name)
			for phrase := range strings.SplitSeq(content, ", ") {
				l.values[section][phrase] = value
			}
		}
	}
	l.texts[language] = texts
}

const (
	around = `(?: [TWCP.] )`
	words  = `(?: \S+ )`
)

// slots are the slots of a pattern that are not simply words.
var slots = map[string]string{
	"t": `(?:<around>|<me>)*`, "t+": `(?:<around>)*(?:T|W)(?:<around>)*`, "to": `(?:<around>|<me>|<message>)*`,
	"word": "`" + words, "words": "`" + words + `+?`, "n": "`(?P<n>" + words + ")", "quote": `(?P<quote>Q)`,
	"list": "`(?P<list>" + words + "?)", "channel": "`(?P<channel>(?: [^ A-Z.:-][^ ]* ){1,3}?)",
	"said3": "`(?P<said>" + words + "{1,3})", "d": "`(?P<d> [0-9]{1,2}-? )", "d2": "`(?P<d2> [0-9]{1,2}-? )",
	"d3": "`(?P<d3> [0-9]{1,2}-? )", "year": "`(?P<year> 2[0-9]{3} )", "h": `(?P<h>{digits}|<number>)`,
	"range": "`(?P<range> [^ ]+-[^ ]+ )", "digits": "`(?: [0-9]+ )",
}

var parts = pattern.New(`\(\?P<\w+>|\(\?:|\.\*|[()|?*+]|<\w+>|\{[\w+]+\}|[^\s()|?*+<>{}]+|\s+`)

// pattern is the regular expression of a pattern.
func (l *lexicon) pattern(content string, own map[string][]string) string {
	literal := func(phrase string) string {
		text := strings.Join(strings.Fields(regexp.QuoteMeta(phrase)), "  ")
		return "(?: " + strings.ReplaceAll(text, "'", "'?") + " )" // "whats" for "what's"
	}
	list := func(name string) string {
		phrases := own[name]
		if len(phrases) == 0 {
			phrases = slices.Sorted(maps.Keys(l.values[name]))
		}
		phrases = slices.SortedStableFunc(slices.Values(phrases), func(a, b string) int { return len(b) - len(a) })
		all := make([]string, len(phrases))
		for i, phrase := range phrases {
			all[i] = literal(phrase)
		}
		return "(?:" + strings.Join(all, "|") + ")"
	}
	return parts.ReplaceAllStringFunc(content, func(p string) string {
		name := strings.Trim(p, "<>{}")
		slot, isSlot := slots[name]
		switch {
		case strings.TrimSpace(p) == "":
			return ""
		case p == "<around>":
			return around
		case p[0] == '<' && p != "<":
			return list(name)
		case p[0] == '{' && isSlot && slot[0] == '`': // an expression
			return slot[1:]
		case p[0] == '{' && isSlot:
			return l.pattern(slot, own)
		case p[0] == '{' && l.values[strings.TrimRight(name, "23")] != nil:
			return "(?P<" + name + ">" + list(strings.TrimRight(name, "23")) + ")"
		case p[0] == '{':
			return "(?P<" + name + ">" + words + "+?)"
		case strings.ContainsAny(p[:1], "(|?*+)") || p == ".*":
			return p
		}
		return literal(p)
	})
}

// sentencePattern adds to a form what may be around a sentence. A closed form ends with
// its last slot.
func (l *lexicon) sentencePattern(content string, own map[string][]string, closed bool) string {
	tail := `(?:<around>|<closer>)*`
	if closed {
		tail = ""
	}
	return `^` + l.pattern(`(?:<around>|<opener>)*?(?:`+content+`)`+tail, own) + `$`
}

// Phrases are the phrases of a list in all languages.
func Phrases(list string) []string { return languages().phrases[list] }

// Listed reports whether a list has a phrase.
func Listed(list, phrase string) bool { return slices.Contains(Phrases(list), phrase) }

// Word is the first phrase of a list in a language.
func Word(l Language, list string) string {
	for _, p := range languages().phrases[list] {
		if scriptOf(p) == l {
			return p
		}
	}
	return ""
}
