package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one mistake in a file.
type Problem struct {
	File       string `json:"file"`
	Line       int    `json:"line"`           // from 1
	Column     int    `json:"column"`         // from 1, in characters
	Path       string `json:"path,omitempty"` // as Path builds it; empty: the whole file
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"` // the probably intended name
}

// String returns "file:line:column: path: message (did you mean ...?)".
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %s?)", p.Suggestion)
	}
	return b.String()
}

// Problems are all mistakes of a file, by position. As an error they have one line each.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems as an error, nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Sort orders problems by file and position and removes repeated ones.
func (p Problems) Sort() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(p)
}

// Fault is a problem without a position.
type Fault struct {
	Message    string
	Suggestion string
}

// Faultf returns a Fault without a suggestion.
func Faultf(format string, args ...any) *Fault { return &Fault{Message: fmt.Sprintf(format, args...)} }

// Path builds the path of a value from keys (string) and indexes (int):
// permissions.subscribe[0].topic, models.daily_tokens["openai/x"].
func Path(elements ...any) string {
	path := ""
	for _, e := range elements {
		switch e := e.(type) {
		case int:
			path += "[" + strconv.Itoa(e) + "]"
		case string:
			path = join(path, e)
		}
	}
	return path
}

func join(path, key string) string {
	switch {
	case !plain(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func plain(key string) bool {
	for _, r := range key {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return key != ""
}

// quote quotes a value for a message and cuts it to a readable length.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return strconv.Quote(s)
}
