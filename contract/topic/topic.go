// Package topic validates topics and topic patterns and matches them.
//
// A topic is two or more segments joined by dots: lower-case letters, digits
// and underscores, the first character a letter ("reminder.due"). A pattern is
// a topic, or a topic prefix with a trailing ".*" that matches one or more
// segments ("reminder.*", "agent.input.*"), or "*" alone, which matches every
// topic that is not the kernel's.
//
// All functions are pure and never panic; matching allocates nothing.
package topic

import (
	"slices"
	"strings"
)

// MaxLength is the largest length of a topic, in bytes.
const MaxLength = 200

// kernel lists all topics of the kernel, as patterns.
var kernel = [...]string{
	"user.message",
	"agent.input.*",
	"agent.output",
	"channel.send.*",
	"command.*",
	"system.user.notify",
	"system.user.ask",
	"system.agent.task",
	"system.agent.background",
	"system.delivery.dead",
	"system.extension.*",
	"system.person.revoked",
	"system.person.changed",
	"system.conversation.stopped",
	"tool.call.*",
	"tool.result.*",
	"schedules.declared",
	"session.idle.*",
	"model.usage",
}

// published are those of the kernel's topics that an extension may be granted to publish.
var published = [...]string{
	"user.message", "agent.output", "system.user.notify", "system.user.ask", "system.agent.task",
	"system.agent.background",
}

// KernelOnly returns the pattern of topics that only the kernel publishes and to which the
// topic, or some topic of the pattern, belongs; empty: none.
func KernelOnly(pattern string) string {
	if !Reserved(Owner(pattern)) {
		return ""
	}
	for _, k := range kernel {
		if !slices.Contains(published[:], k) && Overlap(k, pattern) {
			return k
		}
	}
	return ""
}

// Covers reports whether every topic of a pattern is one of the granted pattern.
func Covers(granted, pattern string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	switch {
	case granted == pattern:
		return true
	case !ValidPattern(pattern), pattern == "*":
		return false
	case !wild:
		return Match(granted, pattern)
	case granted == "*":
		return !Reserved(Owner(pattern))
	}
	outer, wild := strings.CutSuffix(granted, "*")
	return wild && strings.HasPrefix(prefix, outer)
}

// KernelPatterns returns all topics of the kernel as patterns: those that end in
// an id, a name or a state have a trailing ".*".
func KernelPatterns() []string { return append([]string(nil), kernel[:]...) }

// Kernel reports whether a topic belongs to the kernel.
func Kernel(topic string) bool {
	for _, p := range kernel {
		if Match(p, topic) {
			return true
		}
	}
	return false
}

// Reserved reports whether the first segment of a topic or pattern belongs to
// the kernel. No extension may use it as its id.
func Reserved(segment string) bool {
	for _, p := range kernel {
		if len(p) > len(segment) && p[len(segment)] == '.' && p[:len(segment)] == segment {
			return true
		}
	}
	return false
}

// Owner returns the first segment of a topic or pattern: the id of the extension
// that owns it, or a reserved one.
func Owner(topic string) string {
	first, _, _ := strings.Cut(topic, ".")
	return first
}

// ValidTopic reports whether a string is a topic.
func ValidTopic(topic string) bool {
	return len(topic) <= MaxLength && segments(topic) >= 2
}

// ValidPattern reports whether a string is a pattern.
func ValidPattern(pattern string) bool {
	if pattern == "*" {
		return true
	}
	if len(pattern) > MaxLength {
		return false
	}
	if prefix, ok := strings.CutSuffix(pattern, ".*"); ok {
		return segments(prefix) >= 1
	}
	return segments(pattern) >= 2
}

// Match reports whether a pattern matches a topic. An invalid pattern or topic
// matches nothing.
func Match(pattern, topic string) bool {
	if !ValidTopic(topic) || !ValidPattern(pattern) {
		return false
	}
	if pattern == "*" {
		return !Reserved(Owner(topic))
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(topic, prefix)
	}
	return pattern == topic
}

// Overlap reports whether some topic matches both patterns.
func Overlap(a, b string) bool {
	if !ValidPattern(a) || !ValidPattern(b) {
		return false
	}
	if a == "*" || b == "*" {
		if a == b {
			return true
		}
		if a == "*" {
			a = b
		}
		return !Reserved(Owner(a))
	}
	pa, wildA := strings.CutSuffix(a, "*")
	pb, wildB := strings.CutSuffix(b, "*")
	switch {
	case wildA && wildB:
		return strings.HasPrefix(pa, pb) || strings.HasPrefix(pb, pa)
	case wildA:
		return strings.HasPrefix(b, pa)
	case wildB:
		return strings.HasPrefix(a, pb)
	}
	return a == b
}

// segments counts the segments of a dotted name; 0 if it is malformed.
func segments(s string) int {
	n, start := 0, true
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.':
			if start {
				return 0
			}
			start = true
			continue
		case c >= 'a' && c <= 'z':
		case c >= '0' && c <= '9' || c == '_':
			if i == 0 {
				return 0
			}
		default:
			return 0
		}
		if start {
			n++
			start = false
		}
	}
	if start {
		return 0
	}
	return n
}
