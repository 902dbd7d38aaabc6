package coretool

import (
	"slices"
	"strings"
)

// Grants reports whether patterns of tools grant the use of one: a pattern is a name, or
// the beginning of names and a *. One with a - before it grants less. A private tool is
// granted by its name alone.
func Grants(patterns []string, name string, private bool) bool {
	excluded := func(p string) bool {
		rest, out := strings.CutPrefix(p, "-")
		return out && Matches([]string{rest}, name)
	}
	return !slices.ContainsFunc(patterns, excluded) &&
		(slices.Contains(patterns, name) || !private && Matches(patterns, name))
}

// Matches reports whether a pattern is the name of a tool, or covers it.
func Matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, wild := strings.CutSuffix(p, "*")
		return p == name || wild && strings.HasPrefix(name, prefix)
	})
}
