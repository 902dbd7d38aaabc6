package schema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/schema"
)

func compile(t *testing.T, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCheckReportsEveryProblemWithItsPath(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","required":["a","b"],"additionalProperties":false,"properties":{
		"a":{"type":"integer","minimum":1,"maximum":9},"b":{"type":"string","minLength":1,"maxLength":3,"pattern":"^x"},
		"c":{"enum":["one","two"]},"d":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/pair"}},
		"e":{"anyOf":[{"type":"string"},{"type":"object","required":["url"]}]},"f":{"type":"string","format":"uri"},
		"g":{"type":["string","null"]},"h":false,"i":{"type":"number","exclusiveMinimum":0},
		"j":{"type":"array","uniqueItems":true},
		"k":{"allOf":[{"$ref":"#/$defs/pair"},{"required":["z"]}]},"m":{"not":{"type":"string"}},
		"n":{"type":"string","pattern":":[0-9]+$","examples":["localhost:80"]}},
		"$defs":{"pair":{"type":"object","properties":{"x":{"type":"boolean"}},"additionalProperties":false}}}`
	for value, want := range map[string]string{
		`{"a":1,"b":"xy"}`:                      "",
		`{"b":"x"}`:                             "a: is required",
		`{}`:                                    "a: is required|b: is required",
		`7`:                                     "got number, want object",
		`{"a":"1","b":"x"}`:                     "a: got string, want integer",
		`{"a":1.5,"b":"x"}`:                     "a: got number, want integer",
		`{"a":0,"b":"x"}`:                       "a: got 0, want at least 1",
		`{"a":10,"b":"x"}`:                      "a: got 10, want at most 9",
		`{"a":1,"b":""}`:                        `b: want at least 1 character|b: "" does not match "^x"`,
		`{"a":1,"b":"xxxx"}`:                    "b: want at most 3 characters",
		`{"a":1,"b":"x","c":"three"}`:           `c: must be one of "one", "two"`,
		`{"a":1,"b":"x","cc":1}`:                "cc: unknown field",
		`{"a":1,"b":"x","d":[]}`:                "d: want at least 1 item",
		`{"a":1,"b":"x","d":[{"x":1},{"y":1}]}`: "d.0.x: got number, want boolean|d.1.y: unknown field",
		`{"a":1,"b":"x","e":{}}`:                "e.url: is required",
		`{"a":1,"b":"x","f":"nowhere"}`:         `f: "nowhere" is not a valid uri: a scheme such as https is missing`,
		`{"a":1,"b":"x","f":"https://example.org"}`: "",
		`{"a":1,"b":"x","g":null}`:                  "",
		`{"a":1,"b":"x","g":1}`:                     "g: got number, want string or null",
		`{"a":1,"b":"x","h":1}`:                     "h: is not allowed here",
		`{"a":1,"b":"x","i":0}`:                     "i: got 0, want more than 0",
		`{"a":1,"b":"x","j":[1,1]}`:                 "j: uniqueItems: array items 1 and 0 are equal",
		`{"a":1,"b":"x","k":{"x":true}}`:            "k.z: is required",
		`{"a":1,"b":"x","n":"80"}`:                  `n: "80" does not have the right form: write "localhost:80", for example`,
		`{"a":1,"b":"x","n":80}`:                    `n: got number, want string: write "localhost:80", for example`,
		`{"a":1,"b":"x","m":"text"}`:                "m: has a form that is not allowed",
		`{"a":"1","b":2,"d":[{"x":1}],"unknown":true}`: "a: got string, want integer|b: got number, want string|" +
			"d.0.x: got number, want boolean|unknown: unknown field",
	} {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range compile(t, object).Check(v) {
			got = append(got, p.String())
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s:\n got %s\nwant %s", value, strings.Join(got, "|"), want)
		}
	}
}

func TestCompileReportsTheMistakesOfASchema(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{`: "read JSON: ",
		`{"type":"thing"}`: `type: must be one of ` +
			`"array", "boolean", "integer", "null", "number", "object", "string"`,
		`{"properties":{"a":{"minimum":"1"}}}`:                    "properties.a.minimum: got string, want number",
		`{"properties":{"a":{"pattern":"("}}}`:                    "properties.a.pattern: ",
		`{"$ref":"#/$defs/missing"}`:                              "missing",
		`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`:      "outside of the schema",
		`{"properties":{"a":{"$ref":"http://127.0.0.1/schema"}}}`: "outside of the schema",
	} {
		_, err := schema.Compile([]byte(raw))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", raw, err, want)
		}
		if invalid := (*schema.Error)(nil); raw != `{` && !errors.As(err, &invalid) {
			t.Errorf("%s: %T is not a *schema.Error", raw, err)
		}
	}
}

func TestRecursiveReferencesTerminate(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"type":"object","properties":{"child":{"$ref":"#"},"n":{"type":"integer"}}}`)
	var v any
	if err := json.Unmarshal([]byte(`{"child":{"child":{"n":"x"}}}`), &v); err != nil {
		t.Fatal(err)
	}
	problems := s.Check(v)
	if len(problems) != 1 || problems[0].String() != "child.child.n: got string, want integer" {
		t.Errorf("got %v", problems)
	}
}

// Check must not panic, and each problem needs a text.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"integer"}}}`), []byte(`{"a":"x"}`))
	f.Add([]byte(`{"anyOf":[{"type":"string"},{"$ref":"#"}]}`), []byte(`7`))
	f.Add([]byte(`{"if":{"type":"string"},"then":{"minLength":3}}`), []byte(`"x"`))
	f.Fuzz(func(t *testing.T, raw, value []byte) {
		s, err := schema.Compile(raw)
		if err != nil {
			return
		}
		var v any
		if json.Unmarshal(value, &v) != nil {
			return
		}
		for _, p := range s.Check(v) {
			if p.Text == "" {
				t.Errorf("a problem at %v without a text", p.Path)
			}
		}
	})
}
