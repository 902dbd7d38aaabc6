package command

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
)

// parameter is one property of the schema.
type parameter struct {
	name     string
	required bool

	Type        types      `json:"type"`
	Enum        []any      `json:"enum"`
	Items       *parameter `json:"items"`
	Description string     `json:"description"`
}

// types is a schema's type: a string or an array of strings.
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

// isText reports whether any text is a valid value.
func (p *parameter) isText() bool {
	return len(p.Enum) == 0 && (len(p.Type) == 0 || slices.Contains(p.Type, "string"))
}

// isFirst reports whether words can set an optional parameter without its name.
func (p *parameter) isFirst() bool { return !p.required && !p.is("boolean") && !p.is("object") }

// kind describes the value in the usage.
func (p *parameter) kind(language string) string {
	if len(p.Enum) > 0 {
		return p.options("|")
	}
	names := map[string]string{
		"string": words.Say(language, "TEXT"), "integer": words.Say(language, "NUMBER"),
		"number": words.Say(language, "NUMBER"), "boolean": "yes|no", "array": "A,B,...", "object": "JSON",
	}
	var kinds []string
	for _, t := range p.Type {
		if w := names[t]; w != "" && !slices.Contains(kinds, w) {
			kinds = append(kinds, w)
		}
	}
	if kinds == nil {
		return words.Say(language, "VALUE")
	}
	return strings.Join(kinds, "|")
}

func (p *parameter) options(separator string) string {
	options := make([]string, len(p.Enum))
	for i, e := range p.Enum {
		options[i] = written(e)
	}
	return strings.Join(options, separator)
}

func written(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// fill sets the parameter to the next word, or to all remaining ones if it is the last
// parameter and takes several.
func (p *parameter) fill(values map[string]any, text string, given []word, options []span, last bool) ([]word, error) {
	switch {
	case last && p.isText():
		return nil, p.set(values, rest(text, given[0].start, options))
	case given[0].err != nil:
		return nil, given[0].err
	}
	err := p.set(values, given[0].value)
	if given = given[1:]; err == nil && len(given) > 0 && last && p.is("array") {
		return p.fill(values, text, given, options, last)
	}
	return given, err
}

// set sets the parameter. Setting a list again appends to it.
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
		return words.Errorf("%s is given twice", p.name)
	}
	values[p.name] = v
	return nil
}

// value converts a text to the schema's type.
func (p *parameter) value(text string) (any, error) {
	for _, e := range p.Enum {
		if strings.EqualFold(written(e), text) {
			return e, nil
		}
	}
	if len(p.Enum) > 0 {
		return nil, words.Errorf("%s must be one of %s, not '%s'", p.name, p.options(", "), cut(text))
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
	return nil, words.Errorf("%s must be %v, not '%s'", p.name, map[string]string{
		"integer": words.Sprintf("a whole number"), "number": words.Sprintf("a number"),
		"boolean": words.Sprintf("yes or no"), "array": words.Sprintf("a list"), "object": words.Sprintf("a JSON object"),
		"null": "null",
	}[p.Type[0]], cut(text))
}

// as converts a text to a type other than string.
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
		return p.list(text)
	}
	return nil, false
}

// list parses a JSON array, or values separated by commas.
func (p *parameter) list(text string) (any, bool) {
	v := []any{}
	if json.Unmarshal([]byte(text), &v) == nil && v != nil {
		return v, true
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
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
