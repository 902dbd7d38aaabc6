package grammar

// head collects the parts of a sentence that may come in any order around a
// command: times, channels, and words of politeness.
type head struct {
	atoms    []atom
	channel  *channelPhrase
	conflict *Question
}

func (h *head) setChannel(c channelPhrase) {
	if h.channel != nil && h.conflict == nil {
		h.conflict = &Question{Reason: TwoChannels, Said: h.channel.label(), Other: c.label()}
		return
	}
	h.channel = &c
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

var fillers = []string{
	"please", "kindly", "ok", "okay", "so", "hey", "hi", "hello", "well", "thanks", "thank you",
	"can you", "could you", "would you", "will you", "i want you to", "i'd like you to", "i would like you to",
	"i need you to", "don't forget to",
	"пожалуйста", "плиз", "привет", "слушай", "ну", "а", "ок", "спасибо", "можешь", "ты можешь", "можешь ли ты",
	"мог бы ты", "не мог бы ты",
	"не забудь", "давай", "будь добр", "будь добра", "будьте добры",
}

var tailFillers = []string{"now", "right now", "сейчас", "прямо сейчас", "please", "thanks", "thank you", "ok", "okay",
	"пожалуйста", "плиз", "спасибо"}

// take reads one element of a head at i and returns the index after it.
func (s *scan) take(h *head, i int) (int, bool) {
	if s.is(i, comma) {
		return i + 1, true
	}
	if a, ok := s.atom(i); ok {
		// Times win over channels: a channel isn't named like a time.
		h.atoms = append(h.atoms, a)
		return a.end, true
	}
	if c, ok := s.channel(i); ok {
		h.setChannel(c)
		return c.end, true
	}
	return i, false
}

// tail reads the tokens from i up to n if they are only times, channels and
// politeness.
func (s *scan) tail(i, n int, also ...string) (head, bool) {
	var h head
	for i < n {
		if next, ok := s.words(i, tailFillers...); ok {
			i = next
			continue
		}
		if next, ok := s.words(i, also...); ok {
			i = next
			continue
		}
		next, ok := s.take(&h, i)
		if !ok || next > n {
			return head{}, false
		}
		i = next
	}
	return h, true
}

// longestTail is the most tokens that a tail has; real ones are much shorter.
const longestTail = 48

// body splits the tokens from i up to n into a text and the longest tail after it.
func (s *scan) body(i, n int, also ...string) (int, head) {
	for k := max(i, n-longestTail); k < n; k++ {
		if s.toks[k].kind == comma {
			continue
		}
		if h, ok := s.tail(k, n, also...); ok {
			return k, h
		}
	}
	return n, head{}
}

// trim removes punctuation from the end of the tokens from i up to n.
func (s *scan) trim(i, n int) int {
	for n > i && (s.is(n-1, comma) || s.is(n-1, stop) || s.is(n-1, dash)) {
		n--
	}
	return n
}

// connectors at the end of a text show that a time was split in two.
var connectors = []string{
	"or", "and", "at", "every", "until", "till", "from", "by", "except",
	"или", "либо", "и", "в", "во", "на", "через", "до", "с", "от", "после", "перед", "каждый", "каждые", "каждую",
	"около", "примерно", "не", "кроме", "к",
}

// afterTime are words that continue a time: a Russian text can't begin with them
// right after a time.
var afterTime = []string{
	"или", "либо", "и", "а", "но", "с", "со", "до", "после", "перед", "кроме", "исключая", "примерно", "около",
	"приблизительно", "где-то", "где",
	"ровно", "плюс", "минус", "без", "по", "от", "начиная", "пока", "если", "когда", "утра", "вечера", "дня", "ночи",
	"максимум", "минимум", "полтора",
	"or", "and", "until", "till", "from", "except", "if", "sharp", "before", "after", "о'клок",
}

// continues reports whether the token at i may be part of the time before it.
func (s *scan) continues(i int) bool {
	if s.oneOf(i, afterTime...) || s.unitHere(i) {
		return true
	}
	if _, _, ok := s.integer(i); ok {
		return true
	}
	return s.is(i, dash) || s.is(i, other)
}

// inner asks about a time or a command inside a text, and about a text that ends
// in the middle of a time.
func (s *scan) inner(i, n int, timed bool) *Question {
	for k := i; k < n; k++ {
		if a, ok := s.atom(k); ok && !a.weak && a.end <= n {
			return &Question{Reason: InnerTime, Said: s.raw(a.start, a.end)}
		}
		if _, ok := s.words(k, "remind me", "напомни", "напомнить", "напомните"); ok {
			return &Question{Reason: TwoCommands}
		}
	}
	if !timed {
		return nil
	}
	last := s.trim(i, n) - 1
	if s.oneOf(last, connectors...) || s.oneOf(last, roughly...) {
		return &Question{Reason: NotUnderstood, Said: s.raw(last, n)}
	}
	if _, _, ok := s.integer(last); ok && s.oneOf(last-1, "in", "at", "через", "в", "к", "or", "или", "and", "и") {
		return &Question{Reason: NotUnderstood, Said: s.raw(last-1, n)}
	}
	return nil
}
