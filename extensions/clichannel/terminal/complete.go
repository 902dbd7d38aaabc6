package terminal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// complete completes a line that ends in a tab, if it is the beginning of a slash
// command, or of a path after /attach or /save: up to the common prefix of all matches.
// If that adds nothing, it returns the matches as choices. In any other line a tab is
// text.
func complete(line []rune, cursor int, commands []string) (next []rune, choices []string, changed bool) {
	if cursor != len(line) || cursor < 2 || line[0] != '/' || line[cursor-1] != tabRune {
		return nil, nil, false
	}
	typed := string(line[1 : cursor-1])
	if before, path, ok := typedPath(string(line[:cursor-1])); ok {
		completed, choices := completePath(path)
		return []rune(before + completed), choices, true
	}
	if strings.ContainsFunc(typed, func(r rune) bool { return r == ' ' || r == tabRune || r == breakRune || r == '/' }) {
		return nil, nil, false
	}
	matches := slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return !strings.HasPrefix(c, typed) })
	completed := typed
	if len(matches) > 0 {
		completed = commonPrefix(matches)
	}
	switch {
	case len(matches) == 1:
		completed += " "
	case completed == typed:
		for _, m := range matches {
			choices = append(choices, "/"+m)
		}
	}
	return []rune("/" + completed), choices, true
}

// typedPath returns the path that a line of /attach or /save ends with, as it was typed.
func typedPath(line string) (before, path string, ok bool) {
	command, arguments := parseLocal(line)
	if command != "attach" && command != "save" || command == "save" && !strings.Contains(arguments, " ") &&
		!strings.HasSuffix(line, " ") || strings.ContainsAny(line, `"'`) {
		return "", "", false
	}
	start := len(line)
	for start > 0 && (line[start-1] != ' ' || start > 1 && line[start-2] == '\\') {
		start--
	}
	return line[:start], line[start:], true
}

// completePath completes a path with backslashes before its spaces.
func completePath(typed string) (completed string, choices []string) {
	dir, begin := filepath.Split(strings.ReplaceAll(typed, `\ `, " "))
	entries, _ := os.ReadDir(filepath.Clean(expand(dir)))
	var matches []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || strings.HasPrefix(name, ".") && begin == "" {
			continue
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(`'"\`, r) }) {
			continue // to be written in quotes
		}
		if info, err := os.Stat(filepath.Join(expand(dir), name)); err == nil && info.IsDir() {
			name += "/"
		}
		matches = append(matches, name)
	}
	if len(matches) == 0 {
		return typed, nil
	}
	completed = strings.ReplaceAll(dir+commonPrefix(matches), " ", `\ `)
	switch {
	case len(matches) == 1 && !strings.HasSuffix(completed, "/"):
		completed += " "
	case completed == typed:
		choices = matches
	}
	return completed, choices
}

// commonPrefix returns the longest common prefix of words.
func commonPrefix(words []string) string {
	first, last := slices.Min(words), slices.Max(words)
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	for !utf8.ValidString(first[:n]) {
		n--
	}
	return first[:n]
}
