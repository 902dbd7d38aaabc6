package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract/schema"
)

// form is the arguments of a tool as people fill them in behind a command:
//
//   - key=value and --key value name a parameter; a value with spaces stands in
//     quotation marks; --key alone sets a boolean;
//   - other words fill the required parameters, in the order in which the schema
//     requires them, then the optional ones in the order of the schema; the last
//     required text takes all that is left;
//   - the bare name of an optional boolean sets it;
//   - behind -- nothing names a parameter.
//
// What stands before = and names no parameter is text, unless it is a parameter's
// name but for a slip.
type form struct {
	schema     func() (*schema.Schema, error) // compiled when it is needed first
	parameters []*parameter                   // in the order of the schema
	required   []*parameter                   // in the order in which it requires them
}

func newForm(raw json.RawMessage) (*form, error) {
	f := &form{schema: sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(raw) })}
	var top struct {
		Properties ordered  `json:"properties"`
		Required   []string `json:"required"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, err
	}
	f.parameters = top.Properties
	for _, name := range top.Required {
		if p := f.parameter(name); p != nil && !p.required {
			p.required = true
			f.required = append(f.required, p)
		}
	}
	return f, nil
}

// ordered is the properties of a schema in their order.
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
		_ = json.Unmarshal(raw, p) // a schema that is just true or false says nothing
		*o = append(*o, p)
	}
	return nil
}

// plain is a name as it is compared; people may write - for _.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// parameter finds a parameter by its name.
func (f *form) parameter(name string) *parameter {
	for _, p := range f.parameters {
		if plain(p.name) == plain(name) {
			return p
		}
	}
	return nil
}

// meant is the parameter whose name somebody probably wanted to write.
func (f *form) meant(name string) *parameter {
	for _, p := range f.parameters {
		if slip(plain(name), plain(p.name)) {
			return p
		}
	}
	return nil
}

// slip says that two names of more than two letters differ in one letter that is
// missing or another one, or in two that are swapped.
func slip(a, b string) bool {
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

// parse reads what stands behind a command. An error tells people what is wrong
// and what the parameters are.
func (f *form) parse(command, text string) (json.RawMessage, error) {
	values, err := f.fill(text)
	if err != nil {
		return nil, f.usage(command, err)
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, f.usage(command, err)
	}
	return raw, f.check(command, raw)
}

// check holds arguments against the schema.
func (f *form) check(command string, raw json.RawMessage) error {
	compiled, err := f.schema()
	if err != nil {
		return fmt.Errorf("the schema of the command's tool: %w", err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return f.usage(command, err)
	}
	if problems := compiled.Check(v); len(problems) > 0 {
		return f.usage(command, errors.New(problems[0].String()))
	}
	return nil
}

// fill reads values from left to right.
func (f *form) fill(text string) (map[string]any, error) {
	values := map[string]any{}
	for rest, literal := strings.TrimSpace(text), false; rest != ""; rest = strings.TrimSpace(rest) {
		if after, ok := strings.CutPrefix(rest, "--"); ok && !literal && (after == "" || strings.ContainsAny(after[:1], " \t\n")) {
			literal, rest = true, after
			continue
		}
		if !literal {
			after, named, err := f.named(values, rest)
			if err != nil {
				return nil, err
			}
			if named {
				rest = after
				continue
			}
		}
		after, err := f.placed(values, rest, literal)
		if err != nil {
			return nil, err
		}
		rest = after
	}
	for _, p := range f.required {
		if _, given := values[p.name]; !given {
			return nil, fmt.Errorf("%s is missing", p.name)
		}
	}
	return values, nil
}

// named reads a value that names its parameter, if one comes next.
func (f *form) named(values map[string]any, rest string) (after string, named bool, err error) {
	name, tail, flag := key(rest)
	p := f.parameter(name)
	switch {
	case name == "":
		return rest, false, nil
	case p == nil && !flag:
		if meant := f.meant(name); meant != nil {
			return "", false, fmt.Errorf("there is no parameter %s: is %s meant? Write -- before it if it is text", name, meant.name)
		}
		return rest, false, nil
	case p == nil:
		return "", false, fmt.Errorf("there is no parameter %s", name)
	case flag && !strings.HasPrefix(tail, "="):
		if p.is("boolean") {
			return tail, true, p.set(values, "true")
		}
		if tail = strings.TrimLeft(tail, " \t\n"); tail == "" {
			return "", false, fmt.Errorf("%s needs a value", p.name)
		}
	default:
		tail = tail[1:]
	}
	value, after, err := word(tail)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", p.name, err)
	}
	return after, true, p.set(values, value)
}

// key reads key=, --key or --key= at the beginning of a text. Some keyboards
// make one dash of two.
func key(s string) (name, tail string, flag bool) {
	for _, dash := range []string{"--", "—", "–"} {
		if after, ok := strings.CutPrefix(s, dash); ok {
			s, flag = after, true
			break
		}
	}
	end := 0
	for end < len(s) && (s[end] == '_' || s[end] == '-' || s[end] >= '0' && s[end] <= '9' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	name, tail = s[:end], s[end:]
	switch {
	case flag && tail != "" && !strings.ContainsAny(tail[:1], "= \t\n"), !flag && !strings.HasPrefix(tail, "="):
		return "", s, false
	}
	return name, tail, flag
}

// placed reads a value whose parameter is known by its place.
func (f *form) placed(values map[string]any, rest string, literal bool) (after string, err error) {
	unset := func(ps []*parameter) (out []*parameter) {
		for _, p := range ps {
			if _, given := values[p.name]; !given {
				out = append(out, p)
			}
		}
		return out
	}
	wanted := unset(f.required)
	if len(wanted) == 0 {
		value, after, err := word(rest)
		if p := f.parameter(value); err == nil && !literal && p != nil && p.is("boolean") {
			return after, p.set(values, "true")
		}
		wanted = slices.DeleteFunc(unset(f.parameters), func(p *parameter) bool { return p.is("boolean") || p.is("object") })
		if len(wanted) == 0 {
			value, _, _ = strings.Cut(rest, "\n")
			return "", fmt.Errorf("it is not clear what %q is for", cut(value))
		}
		wanted = wanted[:1]
	}
	if p := wanted[0]; len(wanted) > 1 || !p.isText() {
		value, after, err := word(rest)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		return after, p.set(values, value)
	}
	return "", wanted[0].set(values, whole(rest))
}

// usage is an error with what the parameters are.
func (f *form) usage(command string, err error) error {
	var b strings.Builder
	b.WriteString(sentence(err.Error()) + "\n\nUsage: `/" + command)
	for _, p := range f.required {
		if p == f.required[len(f.required)-1] && p.isText() {
			fmt.Fprintf(&b, " <%s ...>", p.name)
		} else {
			fmt.Fprintf(&b, " <%s>", p.name)
		}
	}
	for _, p := range f.parameters {
		switch {
		case p.required:
		case p.is("boolean"):
			fmt.Fprintf(&b, " [--%s]", p.name)
		default:
			fmt.Fprintf(&b, " [%s=%s]", p.name, p.kind())
		}
	}
	b.WriteString("`\n")
	for _, p := range append(slices.Clone(f.required), slices.DeleteFunc(slices.Clone(f.parameters), func(p *parameter) bool { return p.required })...) {
		fmt.Fprintf(&b, "\n- `%s` (%s)", p.name, p.kind())
		if p.Description != "" {
			b.WriteString(": " + p.Description)
		}
	}
	if len(f.parameters) == 0 {
		b.WriteString("\nIt takes no parameters.")
	}
	return errors.New(b.String())
}

func cut(s string) string {
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	return s
}

// word reads the next word, or what stands in quotation marks.
func word(s string) (value, after string, err error) {
	for _, quotes := range [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"'", "'"}} {
		inner, quoted := strings.CutPrefix(s, quotes[0])
		if !quoted {
			continue
		}
		if value, after, closed := strings.Cut(inner, quotes[1]); closed && (after == "" || strings.ContainsAny(after[:1], " \t\n")) {
			return value, after, nil
		}
		if quotes[0] != "'" { // which is an apostrophe as well
			return "", "", fmt.Errorf("the quotation mark before %q is not closed", cut(inner))
		}
	}
	if end := strings.IndexAny(s, " \t\n"); end >= 0 {
		return s[:end], s[end:], nil
	}
	return s, "", nil
}

// whole is a text that takes all that is left; quotation marks around all of it
// are not part of it.
func whole(s string) string {
	if value, after, err := word(s); err == nil && after == "" {
		return value
	}
	return s
}

// parameter is one property of the schema.
type parameter struct {
	name     string
	required bool

	Type        types      `json:"type"`
	Enum        []any      `json:"enum"`
	Items       *parameter `json:"items"`
	Description string     `json:"description"`
}

// types is the type of a schema: one or several.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = types{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

func (p *parameter) is(kind string) bool { return len(p.Type) == 1 && p.Type[0] == kind }

// isText says whether any text is a value.
func (p *parameter) isText() bool {
	return len(p.Enum) == 0 && (len(p.Type) == 0 || slices.Contains(p.Type, "string"))
}

// kind is what people have to give.
func (p *parameter) kind() string {
	switch {
	case len(p.Enum) > 0:
		options := make([]string, len(p.Enum))
		for i, e := range p.Enum {
			options[i] = written(e)
		}
		return strings.Join(options, "|")
	case len(p.Type) == 0:
		return "value"
	}
	words := map[string]string{"string": "text", "integer": "number", "number": "number", "boolean": "yes|no", "array": "a,b,...", "object": "JSON"}
	var kinds []string
	for _, t := range p.Type {
		if w := words[t]; w != "" && !slices.Contains(kinds, w) {
			kinds = append(kinds, w)
		}
	}
	return strings.Join(kinds, "|")
}

func written(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// set gives the parameter a value. A list takes several.
func (p *parameter) set(values map[string]any, text string) error {
	v, err := p.value(text)
	if err != nil {
		return err
	}
	before, given := values[p.name]
	list, isList := before.([]any)
	more, areMore := v.([]any)
	switch {
	case given && isList && areMore:
		v = slices.Concat(list, more)
	case given:
		return fmt.Errorf("%s is given twice", p.name)
	}
	values[p.name] = v
	return nil
}

// value is a text as the type that the schema wants.
func (p *parameter) value(text string) (any, error) {
	for _, e := range p.Enum {
		if strings.EqualFold(written(e), text) {
			return e, nil
		}
	}
	if len(p.Enum) > 0 {
		return nil, fmt.Errorf("%s is %q, which is none of %s", p.name, cut(text), strings.ReplaceAll(p.kind(), "|", ", "))
	}
	if len(p.Type) == 0 {
		var v any
		if json.Unmarshal([]byte(text), &v) == nil {
			return v, nil
		}
		return text, nil
	}
	for _, t := range p.Type {
		if v, ok := p.as(t, text); ok {
			return v, nil
		}
	}
	if slices.Contains(p.Type, "string") {
		return text, nil
	}
	return nil, fmt.Errorf("%s is %q, which is no %s", p.name, cut(text), map[string]string{
		"integer": "whole number", "number": "number", "boolean": "yes or no", "array": "list", "object": "JSON object", "null": "null",
	}[p.Type[0]])
}

// as is a text as one type other than that of texts.
func (p *parameter) as(kind, text string) (any, bool) {
	switch kind {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case "number":
		var n json.Number
		err := json.Unmarshal([]byte(text), &n)
		return n, err == nil && !strings.HasPrefix(text, `"`)
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			return true, true
		case "false", "no", "off", "0":
			return false, true
		}
	case "null":
		return nil, text == "null"
	case "object":
		var v map[string]any
		err := json.Unmarshal([]byte(text), &v)
		return v, err == nil && v != nil
	case "array":
		var v []any
		if json.Unmarshal([]byte(text), &v) == nil {
			return v, true
		}
		v = []any{}
		for part := range strings.SplitSeq(text, ",") {
			item := any(strings.TrimSpace(part))
			if p.Items != nil {
				var err error
				if item, err = p.Items.value(strings.TrimSpace(part)); err != nil {
					return nil, false
				}
			}
			v = append(v, item)
		}
		return v, true
	}
	return nil, false
}
