package strictyaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

type sample struct {
	Name    string           `yaml:"name,required" check:"lower"`
	Count   int              `yaml:"count" default:"3" min:"1" max:"9"`
	Ratio   float64          `yaml:"ratio"`
	On      bool             `yaml:"on" default:"true"`
	Wait    time.Duration    `yaml:"wait" default:"10s" min:"1s"`
	Size    strictyaml.Bytes `yaml:"size" min:"1KiB"`
	Color   string           `yaml:"color" enum:"red|green"`
	Words   []string         `yaml:"words" check:"lower" unique:"-"`
	Models  []string         `yaml:"models,single"`
	Map     map[string]int   `yaml:"map" keys:"lower" alias:"table"`
	Free    map[string]any   `yaml:"free"`
	Any     any              `yaml:"any"`
	Rules   []rule           `yaml:"rules" unique:"topic"`
	Opt     *opt             `yaml:"opt"`
	In      opt              `yaml:"in"`
	Rest    channels         `yaml:"channels"`
	Ignored string
}

type rule struct {
	Topic string        `yaml:"topic,required,short"`
	Age   time.Duration `yaml:"age" default:"24h"`
}

type opt struct {
	Deep string `yaml:"deep" default:"d"`
}

type channels struct {
	Default string         `yaml:"default"`
	ByID    map[string]opt `yaml:",rest" keys:"lower"`
}

var checks = strictyaml.Checks{"lower": func(s string) *strictyaml.Fault {
	if s != strings.ToLower(s) {
		return &strictyaml.Fault{Message: fmt.Sprintf("%q has capitals", s), Suggestion: strings.ToLower(s)}
	}
	return nil
}}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got sample
	doc := strictyaml.Decode("f.yaml", []byte(`
name: x
ratio: 2
wait: 1d12h
size: 2KiB
words: [a, b]
models: one
table: {a: 1}
free: {i: 1, f: 1.5, s: "1", d: 2024-01-01, n: null, l: [true, {}]}
any: [1]
rules:
  - plain.topic
  - {topic: other.topic, age: 1h}
opt: {}
channels:
  default: c
  c: {deep: e}
  empty:
`), &got, checks)
	if err := doc.Problems().Err(); err != nil {
		t.Fatal(err)
	}
	want := sample{
		Name: "x", Count: 3, Ratio: 2, On: true, Wait: 36 * time.Hour, Size: 2048,
		Words: []string{"a", "b"}, Models: []string{"one"}, Map: map[string]int{"a": 1},
		Free: map[string]any{
			"i": int64(1), "f": 1.5, "s": "1", "d": "2024-01-01", "n": nil,
			"l": []any{true, map[string]any{}},
		},
		Any:   []any{int64(1)},
		Rules: []rule{{"plain.topic", 24 * time.Hour}, {"other.topic", time.Hour}},
		Opt:   &opt{"d"}, In: opt{"d"},
		Rest: channels{Default: "c", ByID: map[string]opt{"c": {"e"}, "empty": {"d"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for path, at := range map[string]string{
		"rules[1].age": "13:31", "free.l[1]": "9:64", "nowhere": "2:1", "rules[1].gone": "13:5", "opt.deep": "14:1",
	} {
		p := doc.Locate(path, strictyaml.Fault{})
		if got := fmt.Sprintf("%d:%d", p.Line, p.Column); got != at {
			t.Errorf("%s is at %s, want %s", path, got, at)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"empty file":   {"", `f:1:1: name: is required`},
		"comment only": {"# nothing\n", `f:1:1: name: is required`},
		"a list":       {"- a", `f:1:1: expected a mapping (name: value lines), found a list`},
		"a word":       {"a", `f:1:1: expected a mapping (name: value lines), found the string "a"`},
		"unknown fields": {"name: x\nconut: 1\nzzz: 1\nrules: [{topic: a, agee: 1h}]", `
f:2:1: conut: unknown field (did you mean count?)
f:3:1: zzz: unknown field
f:4:20: rules[0].agee: unknown field (did you mean age?)`},
		"case and hyphens": {"name: x\nWAIT: 1s", `f:2:1: WAIT: unknown field (did you mean wait?)`},
		"wrong types": {"name: 5\ncount: many\nratio: x\non: yes\nwait: 10\nsize: 5\nwords: a\nmap: [a]\nfree: 1\nrules: {}\nopt: 3\n", `
f:1:7: name: expected a string, found the number 5: put it in quotes
f:2:8: count: expected a whole number, found the string "many"
f:3:8: ratio: expected a number, found the string "x"
f:4:5: on: expected true or false, found the string "yes" (did you mean true?)
f:5:7: wait: expected a duration such as 30s, found the number 10
f:6:7: size: expected a size such as 256MiB, found the number 5
f:7:8: words: expected a list, found the string "a": write [a]
f:8:6: map: expected a mapping, found a list
f:9:7: free: expected a mapping, found the number 1
f:10:8: rules: expected a list, found a mapping
f:11:6: opt: expected a mapping, found the number 3`},
		"bad values": {"name: X\ncount: 10\nwait: 1ms\nsize: 12\"\ncolor: gren\nwords: [a, B, a]\nmap: {A: 1, b: x}\nchannels: {C: {}}\n", `
f:1:7: name: "X" has capitals (did you mean x?)
f:2:8: count: must be at most 9
f:3:7: wait: must be at least 1s
f:4:7: size: expected a size with its unit, such as 256MiB, found "12\""
f:5:8: color: "gren" is not one of red, green (did you mean green?)
f:6:12: words[1]: "B" has capitals (did you mean b?)
f:6:15: words[2]: "a" is already in the list, in line 6
f:7:7: map.A: "A" has capitals (did you mean a?)
f:7:16: map.b: expected a whole number, found the string "x"
f:8:12: channels.C: "C" has capitals (did you mean c?)`},
		"misspelled beside the rest": {"name: x\nchannels: {defualt: c}",
			`f:2:12: channels.defualt: expected a mapping, found the string "c" (did you mean default?)`},
		"duplicates": {"name: x\ncount: 1\ncount: 2\nmap: {a: 1}\ntable: {}\nfree: {a: 1, a: 2}\nrules: [a, {topic: a}]", `
f:3:1: count: duplicate key, first in line 2
f:5:1: table: is the same as map in line 4: use one of them
f:6:14: free.a: duplicate key, first in line 6
f:7:12: rules[1]: "a" is already in the list, in line 7`},
		"empty values": {"name:\nopt:\ncount:\nrules:\n- {topic: }\n-\n", `
f:1:1: name: is required and empty
f:2:1: opt: is empty: write its fields, {} for the defaults, or remove it
f:5:4: rules[0].topic: is required and empty
f:6:2: rules[1]: is empty`},
		"keys": {"name: x\n1: x\n? [a]\n: y\n<<: {}\n\"a b\": 1", `
f:2:1: a key must be a string, found the number 1: put it in quotes
f:3:3: a key must be a string, found a list
f:5:1: merge keys (<<) are not supported: write the values out
f:6:1: ["a b"]: unknown field`},
		"aliases": {"name: &a x\ncolor: *a\nfree: {x: *a}", `
f:2:8: color: aliases (*a) are not supported: write the value out
f:3:11: free.x: aliases (*a) are not supported: write the value out`},
		"tags": {"name: !x y\nfree: {a: !!int x, b: .inf, c: !!binary aGk=}", `
f:1:7: name: the tag !x is not supported
f:2:11: free.a: expected "x" to be what the tag !!int says
f:2:23: free.b: .inf is no number that JSON can hold
f:2:32: free.c: the tag !!binary is not supported`},
		"second document": {"name: x\n---\nname: y", `f:2:1: a second document starts here: only one is read`},
		"syntax: mapping": {"name: x\non: true\n  wait: 1s\n",
			`f:3:3: invalid YAML: mapping values are not allowed in this context`},
		"syntax: key": {"name: x\nopt:\n    deep: a\n  b: c\n", `f:4:3: invalid YAML: did not find expected key`},
		"syntax: tab": {"name: x\nopt:\n\tdeep: a\n",
			`f:3:2: invalid YAML: indented with a tab: YAML wants spaces`},
		"syntax: quote": {"name: x\ncolor: \"red\non: true\n",
			`f:2:1: invalid YAML: a quote opened here is not closed`},
		"syntax: bracket": {"name: x\nwords: [a, b\non: true\n",
			`f:2:1: invalid YAML: did not find expected ',' or ']'`},
		"syntax: undefined alias": {"name: x\ncolor: *b\n", `f:2:1: invalid YAML: unknown anchor 'b' referenced`},
		"not text":                {"name: x\ncolor: é\xff\n", `f:2:9: this is not UTF-8 text`},
		"deep": {"name: x\nany: " + strings.Repeat("[", 100) + strings.Repeat("]", 100),
			`f:2:68: any` + strings.Repeat("[0]", 62) + `: nested deeper than 64 levels`},
		"large": {strings.Repeat("#", strictyaml.MaxSize+1),
			`f:1:1: the file has 1048577 bytes, at most 1048576 are read`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got sample
			err := strictyaml.Decode("f", []byte(tc.in), &got, checks).Problems().Err()
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want), text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "90s": 90 * time.Second, "1.5h": 90 * time.Minute, "0": 0,
		"-1s": -time.Second,
	} {
		if got, err := strictyaml.ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "d", "1", "1.5d", "-1d", "1d-1h", "1h1d", "65535d65535d", "9999999h9999999h",
		"30 days"} {
		if got, err := strictyaml.ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %v", in, got)
		}
	}
}

func TestErrorIsFoundUnderWrapping(t *testing.T) {
	t.Parallel()
	var s sample
	err := fmt.Errorf("reload: %w", strictyaml.Decode("f", nil, &s, checks).Problems().Err())
	var problems strictyaml.Problems
	if !errors.As(err, &problems) || len(problems) != 1 {
		t.Errorf("no problems in %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"name: x\nopt:\n\tdeep: a", "a: &a [*a]", "? {a: b}\n: c", "name: !!binary x", "- ", "%YAML 1.1\n---\na: b\n...\n",
		"a: |\n  b\n c", "name:\u0085x: y", "rules:\n- \n-", "\ufeffname: x", "free: {a: 1, a: 0x1_0, b: 1e999}",
		"name: \"a\n\nb",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		doc := strictyaml.Decode("f", data, &s, checks)
		lines := strings.Split(string(data), "\n")
		for _, p := range doc.Problems() {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len([]rune(lines[p.Line-1]))+1 {
				t.Fatalf("position outside the file: %s", p)
			}
		}
	})
}
