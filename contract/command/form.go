package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/contract/words"
)

// form parses the text after a command into the parameters of a tool:
//
//   - key=value, --key value and --key=value set an option, in any position; a value
//     with spaces is in quotation marks, and --key without a value sets a boolean;
//   - other words fill the required parameters in the order of the schema's required
//     list, then the first optional one; the last of them takes all remaining words if
//     it is a text or a list;
//   - the name of an optional boolean sets it, and a value of an optional enum sets it
//     if it is the only word;
//   - after --, nothing is an option.
//
// A word with = that names no parameter is text, unless it looks like a misspelled name.
type form struct {
	command    string
	language   string         // of the person
	schema     *schema.Schema // nil: none
	parameters []*parameter   // in the order of the schema
	required   []*parameter   // in the order of its required list
}

func newForm(command string, raw []byte, s *schema.Schema) *form {
	f := &form{command: command, schema: s}
	var top struct {
		Properties ordered  `json:"properties"`
		Required   []string `json:"required"`
	}
	_ = json.Unmarshal(raw, &top) // it compiled
	f.parameters = top.Properties
	for _, name := range top.Required {
		if p := f.parameter(name); p != nil && !p.required {
			p.required = true
			f.required = append(f.required, p)
		}
	}
	return f
}

// ordered holds the properties of a schema in their order.
type ordered []*parameter

func (o *ordered) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		p := &parameter{name: fmt.Sprint(name)}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		_ = json.Unmarshal(raw, p) // the schemas true and false have no fields
		*o = append(*o, p)
	}
	return nil
}

// parameter returns a parameter by its name, in which people may write - for _.
func (f *form) parameter(name string) *parameter {
	return f.find(func(p *parameter) bool { return plain(p.name) == plain(name) })
}

func (f *form) find(is func(*parameter) bool) *parameter {
	if i := slices.IndexFunc(f.parameters, is); i >= 0 {
		return f.parameters[i]
	}
	return nil
}

func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// misspelled reports whether two names of more than two letters differ in one missing
// or replaced letter, or in two swapped ones.
func misspelled(a, b string) bool {
	if min(len(a), len(b)) < 3 {
		return false
	}
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	swapped := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	return swapped || max(len(a), len(b)) == 1
}

// parse parses the text after a command. An error includes the usage.
func (f *form) parse(text string) (json.RawMessage, error) {
	values, err := f.read(text)
	if _, ok := errors.AsType[missing](err); ok && strings.TrimSpace(text) == "" {
		return nil, errors.New(f.usage())
	}
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(values)
	}
	if err == nil {
		err = f.check(raw)
	}
	if err != nil {
		return nil, errors.New(sentence(err.Error(), f.language) + " " + f.usage())
	}
	return raw, nil
}

func (f *form) check(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil || f.schema == nil {
		return err
	}
	if problems := f.schema.Check(v); len(problems) > 0 {
		return errors.New(problems[0].String())
	}
	return nil
}

// missing is the name of a required parameter that a text does not set.
type missing string

func (m missing) Error() string { return words.Sprintf("%s is missing", string(m)) }

// read sets the options of a text, and then fills the other parameters with its words.
func (f *form) read(text string) (map[string]any, error) {
	values := map[string]any{}
	given, options, err := f.split(values, text)
	if err != nil {
		return nil, err
	}
	free := unset(values, f.required)
	for i, p := range free {
		if len(given) == 0 {
			return nil, missing(p.name)
		}
		if given, err = p.fill(values, text, given, options, i == len(free)-1); err != nil {
			return nil, err
		}
	}
	for len(given) > 0 {
		if p, value := f.bare(given); p != nil {
			given, err = given[1:], p.set(values, value)
		} else if p := f.find((*parameter).isFirst); p != nil && values[p.name] == nil {
			given, err = p.fill(values, text, given, options, true)
		} else {
			err = words.Errorf("unexpected argument '%s'", cut(given[0].value))
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

func unset(values map[string]any, parameters []*parameter) (free []*parameter) {
	for _, p := range parameters {
		if _, given := values[p.name]; !given {
			free = append(free, p)
		}
	}
	return free
}

// bare returns the optional parameter that the first word sets without a name.
func (f *form) bare(words []word) (p *parameter, value string) {
	first := words[0]
	if first.literal {
		return nil, ""
	}
	if p := f.parameter(first.value); p != nil && p.is("boolean") && !p.required {
		return p, "true"
	}
	return f.find(func(p *parameter) bool {
		return !p.required && len(words) == 1 &&
			slices.ContainsFunc(p.Enum, func(e any) bool { return strings.EqualFold(written(e), first.value) })
	}), first.value
}

// word is a word that is not an option, or several words in quotation marks.
type word struct {
	value   string
	start   int   // in the text
	literal bool  // after --
	err     error // its quotation mark is not closed
}

// span is a part of a text.
type span struct{ start, end int }

// split sets the options of a text, and returns its other words.
func (f *form) split(values map[string]any, text string) (words []word, options []span, err error) {
	literal := false
	for rest := trimLeft(text); rest != ""; rest = trimLeft(rest) {
		start := len(text) - len(rest)
		after, ok := strings.CutPrefix(rest, "--")
		if ok && !literal && (after == "" || strings.ContainsAny(after[:1], space)) {
			literal, rest = true, after
			continue
		}
		if !literal {
			after, is, err := f.option(values, rest, len(words) > 0)
			if err != nil {
				return nil, nil, err
			}
			if is {
				options, rest = append(options, span{start, len(text) - len(after)}), after
				continue
			}
		}
		w := word{start: start, literal: literal}
		w.value, rest, w.err = nextWord(rest)
		words = append(words, w)
	}
	return words, options, nil
}

const space = " \t\r\n"

func trimLeft(s string) string { return strings.TrimLeft(s, space) }

// option sets the option at the beginning of a text, if there is one. An unknown name
// after other words is text.
func (f *form) option(values map[string]any, text string, among bool) (after string, is bool, err error) {
	name, tail, flag := key(text)
	p := f.parameter(name)
	switch {
	case name == "":
		return "", false, nil
	case p == nil:
		meant := f.find(func(p *parameter) bool { return misspelled(plain(name), plain(p.name)) })
		if meant != nil {
			return "", false, words.Errorf("unknown option '%s'. Did you mean %s? Put -- before text that isn't an option",
				name, meant.name)
		}
		if flag && !among {
			return "", false, words.Errorf("unknown option '%s'", name)
		}
		return "", false, nil
	case !strings.HasPrefix(tail, "=") && p.is("boolean"):
		return tail, true, p.set(values, "true")
	case !strings.HasPrefix(tail, "="):
		if tail = trimLeft(tail); tail == "" {
			return "", false, words.Errorf("%s needs a value", p.name)
		}
	default:
		tail = tail[1:]
	}
	value, after, err := nextWord(tail)
	if err != nil {
		return "", false, err
	}
	return after, true, p.set(values, value)
}

// key reads key=, --key or --key= at the beginning of a text. Phone keyboards may
// replace -- with a dash.
func key(s string) (name, tail string, flag bool) {
	for _, dash := range []string{"--", "—", "–"} {
		if after, ok := strings.CutPrefix(s, dash); ok {
			s, flag = after, true
			break
		}
	}
	end := 0
	for end < len(s) && (s[end] == '_' || s[end] == '-' ||
		s[end] >= '0' && s[end] <= '9' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	name, tail = s[:end], s[end:]
	if flag && tail != "" && !strings.ContainsAny(tail[:1], "="+space) || !flag && !strings.HasPrefix(tail, "=") {
		return "", s, false
	}
	return name, tail, flag
}

// nextWord reads a word, or the text in quotation marks. If they are not closed, it
// returns the word with an error.
func nextWord(s string) (value, after string, err error) {
	for _, quotes := range [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"'", "'"}} {
		inner, quoted := strings.CutPrefix(s, quotes[0])
		if !quoted {
			continue
		}
		value, after, closed := strings.Cut(inner, quotes[1])
		if closed && (after == "" || strings.ContainsAny(after[:1], space)) {
			return value, after, nil
		}
		if quotes[0] != "'" { // may be an apostrophe
			err = words.Errorf("the quotation mark before '%s' isn't closed", cut(inner))
		}
	}
	if end := strings.IndexAny(s, space); end >= 0 {
		return s[:end], s[end:], err
	}
	return s, "", err
}

// rest returns the text from a word on, without its options and without quotation
// marks around the whole.
func rest(text string, from int, options []span) string {
	var b strings.Builder
	for _, o := range options {
		if o.start > from {
			b.WriteString(strings.TrimRight(text[from:o.start], " \t"))
			from = o.end
		}
	}
	b.WriteString(text[from:])
	all := strings.TrimSpace(b.String())
	if value, after, err := nextWord(all); err == nil && after == "" {
		return value
	}
	return all
}

func cut(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	return s
}

// usage returns the usage of the command, in Markdown.
func (f *form) usage() string {
	var line, details strings.Builder
	line.WriteString(words.Say(f.language, "Usage: /%s", f.command))
	optional := slices.DeleteFunc(slices.Clone(f.parameters), func(p *parameter) bool { return p.required })
	for _, p := range slices.Concat(f.required, optional) {
		name := p.name
		switch {
		case p.required:
			name = strings.ToUpper(p.name)
			line.WriteString(" " + name)
		case p.is("boolean"):
			fmt.Fprintf(&line, " [--%s]", name)
		default:
			fmt.Fprintf(&line, " [%s=%s]", name, p.kind(f.language))
		}
		if p.Description != "" {
			fmt.Fprintf(&details, "\n- %s: %s", name, words.Say(f.language, p.Description))
		}
	}
	if details.Len() > 0 {
		line.WriteString("\n")
	}
	return line.String() + details.String()
}
