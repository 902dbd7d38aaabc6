package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// maxSecrets bounds the size of a secrets file, in bytes.
const maxSecrets = 1 << 20

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Secrets are named values from the environment and from secrets.env. Printing them
// shows no value.
type Secrets struct {
	file map[string]string
	env  func(string) (string, bool)
}

// NewSecrets combines the values of a file with an environment (such as
// os.LookupEnv), which takes precedence.
func NewSecrets(file map[string]string, env func(string) (string, bool)) *Secrets {
	return &Secrets{file: file, env: env}
}

// Lookup returns a value. An empty one counts as missing.
func (s *Secrets) Lookup(name string) (string, bool) {
	if v, ok := s.env(name); ok && v != "" {
		return v, true
	}
	v := s.file[name]
	return v, v != ""
}

// Names returns the names in the file, sorted.
func (s *Secrets) Names() []string { return slices.Sorted(maps.Keys(s.file)) }

// String hides the values.
func (s *Secrets) String() string { return "secrets" }

// GoString hides the values.
func (s *Secrets) GoString() string { return "secrets" }

// LoadSecrets reads a secrets file; a missing one has no values. It refuses a file
// that other users can read.
func LoadSecrets(file string) (map[string]string, error) {
	f, err := filewatch.OpenRegular(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the secrets: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the secrets: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("read %s: mode %04o lets other users read the secrets; run: chmod 600 %s", file, mode, file)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecrets+1))
	if err != nil {
		return nil, fmt.Errorf("read the secrets: %w", err)
	}
	return ParseSecrets(file, data)
}

// ParseSecrets parses lines of NAME=value. A comment begins with # at the start of
// a line or after a blank; "export" before a name is ignored. Single quotes take
// their content literally; double quotes allow the escapes \n, \t, \", \\ and \$.
// Nothing is expanded. The error is a Problems, which shows no value.
func ParseSecrets(file string, data []byte) (map[string]string, error) {
	var problems Problems
	report := func(line, column int, path, format string, args ...any) {
		message := fmt.Sprintf(format, args...)
		problems = append(problems, Problem{File: file, Line: line, Column: column, Path: path, Message: message})
	}
	if len(data) > maxSecrets {
		report(1, 1, "", "the file is larger than %d bytes", maxSecrets)
		return nil, problems
	}
	values, lines := map[string]string{}, map[string]int{}
	for i, text := range strings.Split(string(data), "\n") {
		n := i + 1
		text = strings.TrimSuffix(text, "\r")
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			report(n, 1, "", "this line is not UTF-8 text")
			continue
		}
		rest := strings.TrimLeft(text, " \t")
		if rest == "" || rest[0] == '#' {
			continue
		}
		if after, ok := strings.CutPrefix(rest, "export"); ok && after != "" && (after[0] == ' ' || after[0] == '\t') {
			rest = strings.TrimLeft(after, " \t")
		}
		column := func() int { return utf8.RuneCountInString(text) - utf8.RuneCountInString(rest) + 1 }
		start := column()
		name, value, ok := strings.Cut(rest, "=")
		if !ok {
			report(n, start, "", "expected NAME=value")
			continue
		}
		if trimmed := strings.TrimRight(name, " \t"); trimmed != name || !secretName.MatchString(name) {
			if secretName.MatchString(trimmed) {
				report(n, start, trimmed, "remove the blank before =")
			} else {
				report(n, start, "", "the text before = is not a valid name of an environment variable")
			}
			continue
		}
		rest = value
		value, f := secretValue(value)
		if f != nil {
			report(n, column(), name, "%s", f.Message)
			continue
		}
		if first, dup := lines[name]; dup {
			report(n, start, name, "already set in line %d", first)
			continue
		}
		values[name], lines[name] = value, n
	}
	if err := problems.Sort().Err(); err != nil {
		return nil, err
	}
	return values, nil
}

// secretValue parses the text after the equals sign.
func secretValue(s string) (string, *strictyaml.Fault) {
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] == '#' {
		return "", nil
	}
	quote := s[0]
	if quote != '"' && quote != '\'' {
		for i := range len(s) {
			if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
				s = s[:i]
				break
			}
		}
		return strings.TrimRight(s, " \t"), nil
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			if rest := strings.TrimLeft(s[i+1:], " \t"); rest != "" && rest[0] != '#' {
				return "", strictyaml.Faultf("unexpected text after the closing quote")
			}
			return out.String(), nil
		case c == '\\' && quote == '"' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			case '"', '\\', '$':
				out.WriteByte(s[i])
			default:
				out.WriteByte('\\')
				out.WriteByte(s[i])
			}
		default:
			out.WriteByte(c)
		}
	}
	return "", strictyaml.Faultf("the quote is not closed on this line")
}
