package grammar

import (
	"strconv"
	"strings"
)

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
	small, tens := languages().values["number"], languages().values["tens"]
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
