package grammar

import (
	"strconv"
	"strings"
)

var small = map[string]int{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten":    10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
	"eighteen": 18, "nineteen": 19,
	"ноль": 0, "один": 1, "одну": 1, "одна": 1, "одного": 1, "два": 2, "две": 2, "двух": 2, "три": 3, "трех": 3,
	"четыре": 4, "четырех": 4,
	"пять": 5, "пяти": 5, "шесть": 6, "шести": 6, "семь": 7, "семи": 7, "восемь": 8, "восьми": 8, "девять": 9,
	"девяти": 9, "десять": 10, "десяти": 10,
	"одиннадцать": 11, "двенадцать": 12, "тринадцать": 13, "четырнадцать": 14, "пятнадцать": 15, "шестнадцать": 16,
	"семнадцать":   17,
	"восемнадцать": 18, "девятнадцать": 19, "пятнадцати": 15, "двое": 2, "трое": 3, "четверо": 4, "пятеро": 5,
}

var tens = map[string]int{
	"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90,
	"двадцать": 20, "двадцати": 20, "тридцать": 30, "тридцати": 30, "сорок": 40, "пятьдесят": 50, "шестьдесят": 60,
	"девяносто": 90,
}

// integer reads a whole number in digits or words at i.
func (s *scan) integer(i int) (n, next int, ok bool) {
	w := s.at(i)
	if w == "" {
		return 0, i, false
	}
	if isDigit(rune(w[0])) {
		if len(w) > 6 {
			return 0, i, false
		}
		n, err := strconv.Atoi(w)
		return n, i + 1, err == nil
	}
	if n, ok := small[w]; ok {
		return n, i + 1, true
	}
	if a, b, ok := strings.Cut(w, "-"); ok {
		t, okT := tens[a]
		u, okU := small[b]
		if okT && okU && u >= 1 && u <= 9 {
			return t + u, i + 1, true
		}
		return 0, i, false
	}
	t, ok := tens[w]
	if !ok {
		return 0, i, false
	}
	if u, ok := small[s.at(i+1)]; ok && u >= 1 && u <= 9 {
		return t + u, i + 2, true
	}
	return t, i + 1, true
}

// decimal reads a number that may have a fraction: 1.5 or 1,5.
func (s *scan) decimal(i int) (n float64, next int, ok bool) {
	if k, next, ok := s.integer(i); ok {
		return float64(k), next, true
	}
	w := s.at(i)
	if w == "" || !isDigit(rune(w[0])) || len(w) > 8 || strings.ContainsAny(w, ":/-") {
		return 0, i, false
	}
	f, err := strconv.ParseFloat(strings.Replace(w, ",", ".", 1), 64)
	return f, i + 1, err == nil
}
