package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// maxText bounds the text that a template makes, in bytes.
const maxText = 64 << 10

// functions are those of templates besides the ones of text/template; none reaches out.
var functions = template.FuncMap{
	"json": func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	},
}

func parseTemplate(text string) (*template.Template, error) {
	if text == "" {
		return nil, nil
	}
	return template.New("text").Funcs(functions).Parse(text)
}

// render returns the text of a body: that of the template, or the body itself.
func (i *inbound) render(body []byte) (string, error) {
	value, err := decode(body)
	if err != nil {
		return "", err
	}
	if i.template == nil {
		return strings.TrimSpace(string(body)), nil
	}
	text := &limited{}
	if err := i.template.Execute(text, value); err != nil {
		return "", fmt.Errorf("the template doesn't fit the body: %w", err)
	}
	return strings.ReplaceAll(strings.TrimSpace(text.String()), "<no value>", ""), nil
}

// decode decodes JSON; whole numbers stay whole.
func decode(body []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("the body isn't JSON: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("the body isn't JSON: something follows the first value")
	}
	return plain(value), nil
}

// plain replaces numbers as they were written by those that templates can compare.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		number, _ := value.Float64()
		return number
	case map[string]any:
		for k, v := range value {
			value[k] = plain(v)
		}
	case []any:
		for k, v := range value {
			value[k] = plain(v)
		}
	}
	return value
}

// limited is a text that a template can't make too long.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxText {
		return 0, fmt.Errorf("the text has more than %d kB", maxText>>10)
	}
	return l.Builder.Write(p)
}
