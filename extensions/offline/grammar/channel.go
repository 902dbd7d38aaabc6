package grammar

import (
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// idForm matches the usual form of a channel's id.
var idForm = pattern.New(`^[a-z][a-z0-9]*(_[a-z0-9]+)*_channel$`)

// name is the name or id of a channel as normalized words.
type name struct{ words []string }

var nameNoise = map[string]bool{"channel": true, "канал": true, "the": true, "chat": true, "чат": true, "app": true}

func newName(s string) name {
	var n name
	for _, t := range tokenize(strings.ReplaceAll(s, "_", " ")) {
		if t.kind == word && !nameNoise[t.norm] {
			n.words = append(n.words, stem(t.norm))
		}
	}
	return n
}

// stem removes the case ending of a Russian noun and resolves aliases.
func stem(w string) string {
	if n := languages().values["channel"][w]; n > 0 {
		return "#" + strconv.Itoa(n)
	}
	for _, r := range w {
		if r < 'а' || r > 'я' {
			return w
		}
	}
	if t := strings.TrimRight(w, "аеиоуыэюяйь"); len(t) >= 4 {
		return t
	}
	return w
}

// SameChannel reports whether said names the channel with this id and title. It
// ignores upper and lower case, grammatical case, and the word "channel".
func SameChannel(said, id, title string) bool {
	if said == "" {
		return false
	}
	if strings.EqualFold(said, id) {
		return true
	}
	want := strings.Join(newName(said).words, " ")
	if want == "" {
		return false
	}
	return want == strings.Join(newName(id).words, " ") || want == strings.Join(newName(title).words, " ")
}

// channelPhrase is a phrase that names a channel.
type channelPhrase struct {
	end  int
	said string
	here bool
	all  bool
}

func (c channelPhrase) label() string {
	switch {
	case c.all:
		return "all"
	case c.here:
		return "here"
	}
	return c.said
}

// channel reads a phrase that names a known channel at i: "in Telegram",
// "to my telegram_channel", "в канал telegram_channel", "here".
func (s *scan) channel(i int) (channelPhrase, bool) {
	if end, ok := s.words(i, "here"); ok {
		return channelPhrase{end: end, here: true}, true
	}
	if end, ok := s.words(i, "everywhere"); ok {
		return channelPhrase{end: end, all: true}, true
	}
	if !s.oneOf(i, "channel_preposition") {
		return channelPhrase{}, false
	}
	j := s.beforeName(i + 1)
	if s.oneOf(i, "to") && s.oneOf(j, "writing") { // "remind me to email Ann"
		return channelPhrase{}, false
	}
	if end, ok := s.knownName(j); ok {
		said := s.raw(j, end)
		if s.oneOf(end, "channel_noun") {
			end++
		}
		return channelPhrase{end: end, said: said}, true
	}
	return channelPhrase{}, false
}

// beforeName skips the words between the preposition and the name.
func (s *scan) beforeName(j int) int {
	for s.oneOf(j, "my") {
		j++
	}
	if s.oneOf(j, "channel_noun") {
		if s.is(j+1, word) || s.is(j+1, quoted) {
			j++
		}
	}
	return j
}

// knownName matches the longest known name at j.
func (s *scan) knownName(j int) (int, bool) {
	end := -1
	for _, n := range s.names {
		k := j
		var said []string
		for len(said) < len(n.words) && k < len(s.toks) {
			w := s.at(k)
			if s.is(k, quoted) {
				w = norm(s.unquote(k))
			}
			if w == "" {
				break
			}
			said = append(said, newName(w).words...)
			k++
		}
		if strings.Join(said, " ") == strings.Join(n.words, " ") && k > end {
			end = k
		}
	}
	if end > 0 {
		return end, true
	}
	w := s.at(j)
	if s.is(j, quoted) {
		w = norm(s.unquote(j))
	}
	if languages().values["channel"][w] > 0 || idForm.MatchString(w) {
		return j + 1, true
	}
	return 0, false
}
