// Package pattern provides regular expressions that are compiled at their first
// use instead of at program start. All processes run from one binary, and most
// of them use few of its patterns.
//
// A Pattern is safe for concurrent use. An invalid one panics at its first use,
// so each needs a test.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression.
type Pattern struct{ compiled func() *regexp.Regexp }

// New returns a pattern for an expression in the syntax of package regexp.
func New(expression string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// Longest returns a pattern that finds the longest match at a place, not the first of
// its alternatives.
func Longest(expression string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp {
		r := regexp.MustCompile(expression)
		r.Longest()
		return r
	})}
}

// MatchString is regexp.Regexp's method.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindString is regexp.Regexp's method.
func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringSubmatch is regexp.Regexp's method.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// FindStringSubmatchIndex is regexp.Regexp's method.
func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	return p.compiled().FindStringSubmatchIndex(s)
}

// FindAllStringSubmatch is regexp.Regexp's method.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAllString is regexp.Regexp's method.
func (p *Pattern) ReplaceAllString(s, replacement string) string {
	return p.compiled().ReplaceAllString(s, replacement)
}

// ReplaceAllStringFunc is regexp.Regexp's method.
func (p *Pattern) ReplaceAllStringFunc(s string, replace func(string) string) string {
	return p.compiled().ReplaceAllStringFunc(s, replace)
}

// SubexpNames is regexp.Regexp's method.
func (p *Pattern) SubexpNames() []string { return p.compiled().SubexpNames() }
