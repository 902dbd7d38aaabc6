package command

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/schema"
)

func TestFormReadsWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	const (
		none = `{"type":"object","additionalProperties":false}`
		text = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
		send = `{"type":"object","required":["to","message"],
			"properties":{"message":{"type":"string"},"to":{"type":"string"},"timeout":{"type":"number"}}}`
		run = `{"type":"object","additionalProperties":false,"properties":{"quiet":{"type":"boolean"},
			"count":{"type":"integer","minimum":1},"timeout":{"type":["number","string"]}}}`
		above = `{"type":"object","properties":{"count":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}}}`
		order = `{"type":"object","properties":{"order":{"enum":["fifo","lifo",3]},"dry_run":{"type":"boolean"}}}`
		tags  = `{"type":"object","properties":{
			"tags":{"type":"array","items":{"type":"integer"}},"more":{"type":"object"},"any":true}}`
		list     = `{"type":"object","properties":{"about":{"type":"string"},"kind":{"enum":["open","fact"]}}}`
		optional = `{"type":"object","properties":{"name":{"type":"string"},"text":{"type":"string","maxLength":5}}}`
	)
	for _, tt := range []struct{ name, schema, text, want, wrong string }{
		{name: "nothing", schema: none, text: "", want: `{}`},
		{name: "too much", schema: none, text: "hello", wrong: "Unexpected argument 'hello'. Usage: /do"},
		{name: "a text", schema: text, text: " to be, or\n  not to be ", want: `{"text":"to be, or\n  not to be"}`},
		{name: "a text in quotation marks", schema: text, text: `“to be”`, want: `{"text":"to be"}`},
		{name: "quotation marks within", schema: text, text: `"to be" or not`, want: `{"text":"\"to be\" or not"}`},
		{name: "a text like a parameter", schema: text, text: "-- text=1 --x", want: `{"text":"text=1 --x"}`},
		{name: "an equation", schema: text, text: "e=mc2", want: `{"text":"e=mc2"}`},
		{name: "a short name in an equation", schema: send, text: "t=1 x", want: `{"message":"x","to":"t=1"}`},
		{name: "a name with a letter too few", schema: run, text: "tmeout=5",
			wrong: "Unknown option 'tmeout'. Did you mean timeout? Put -- before text that isn't an option. Usage: /do"},
		{name: "a name with another letter", schema: send, text: "anna massage=hello",
			wrong: "Unknown option 'massage'. Did you mean message?"},
		{name: "a name with swapped letters", schema: optional, text: "nmae=a",
			wrong: "Unknown option 'nmae'. Did you mean name?"},
		{name: "nearly a name, but text", schema: optional, text: "-- nmae=a", want: `{"name":"nmae=a"}`},
		{name: "nearly a name within a text", schema: text, text: "the tetx=1",
			wrong: "Unknown option 'tetx'. Did you mean text?"},
		{name: "a text by name", schema: text, text: `text='a "b" c'`, want: `{"text":"a \"b\" c"}`},
		{name: "an apostrophe", schema: text, text: `'tis so`, want: `{"text":"'tis so"}`},
		{name: "no text", schema: text, text: "", wrong: "Usage: /do TEXT"},
		{name: "not closed", schema: send, text: `"anna hello`,
			wrong: "The quotation mark before 'anna hello' isn't closed."},
		{name: "twice", schema: text, text: "text=a text=b", wrong: "Text is given twice."},
		{name: "more after it", schema: text, text: "text=a b", wrong: "Unexpected argument 'b'."},
		{name: "by place", schema: send, text: `anna hello there timeout=5`,
			want: `{"message":"hello there","timeout":5,"to":"anna"}`},
		{name: "names before", schema: send, text: `timeout=1.5 anna hello`,
			want: `{"message":"hello","timeout":1.5,"to":"anna"}`},
		{name: "names between", schema: send, text: `anna --timeout 2 hello`,
			want: `{"message":"hello","timeout":2,"to":"anna"}`},
		{name: "quoted by place", schema: send, text: `"anna b" hello`, want: `{"message":"hello","to":"anna b"}`},
		{name: "incomplete", schema: send, text: "anna", wrong: "Message is missing. Usage: /do TO MESSAGE [timeout=NUMBER]"},
		{name: "a number by place", schema: run, text: "3", want: `{"count":3}`},
		{name: "a number or a text", schema: run, text: "3 timeout=10m", want: `{"count":3,"timeout":"10m"}`},
		{name: "a flag", schema: run, text: "--quiet 3", want: `{"count":3,"quiet":true}`},
		{name: "a flag of a phone", schema: run, text: "—quiet count=3", want: `{"count":3,"quiet":true}`},
		{name: "a flag with a value", schema: run, text: "--quiet=no", want: `{"quiet":false}`},
		{name: "a bare flag", schema: run, text: "QUIET", want: `{"quiet":true}`},
		{name: "no number", schema: run, text: "count=many", wrong: "Count must be a whole number, not 'many'."},
		{name: "no whole number", schema: run, text: "1.5", wrong: "Count must be a whole number, not '1.5'."},
		{name: "not above", schema: above, text: "count=0", wrong: "Count: got 0, want more than 0."},
		{name: "not below", schema: above, text: "count=1", wrong: "Count: got 1, want less than 1."},
		{name: "too small", schema: run, text: "0", wrong: "Count: got 0, want at least 1."},
		{name: "neither yes nor no", schema: run, text: "quiet=perhaps", wrong: "Quiet must be yes or no, not 'perhaps'."},
		{name: "an unknown flag", schema: run, text: "--loud", wrong: "Unknown option 'loud'."},
		{name: "a flag without a value", schema: run, text: "--count", wrong: "Count needs a value."},
		{name: "one of several", schema: order, text: "order=LIFO", want: `{"order":"lifo"}`},
		{name: "a number of several", schema: order, text: "3", want: `{"order":3}`},
		{name: "none of several", schema: order, text: "random", wrong: "Order must be one of fifo, lifo, 3, not 'random'."},
		{name: "a dash for an underscore", schema: order, text: "--dry-run", want: `{"dry_run":true}`},
		{name: "a list", schema: tags, text: "1,2 3", want: `{"tags":[1,2,3]}`},
		{name: "a list of others", schema: tags, text: "1,two", wrong: "Tags must be a list, not '1,two'."},
		{name: "an object", schema: tags, text: `more='{"a": 1}' any=x`, want: `{"any":"x","more":{"a":1}}`},
		{name: "a list by name", schema: tags, text: "tags=1 tags=2,3", want: `{"tags":[1,2,3]}`},
		{name: "a list with commas and spaces", schema: tags, text: "1, 2,  3", want: `{"tags":[1,2,3]}`},
		{name: "an option after a text", schema: send, text: "anna call mum timeout=12",
			want: `{"message":"call mum","timeout":12,"to":"anna"}`},
		{name: "an option in a text", schema: send, text: "anna call --timeout 12 mum\n\n  soon",
			want: `{"message":"call mum\n\n  soon","timeout":12,"to":"anna"}`},
		{name: "a misspelled option after a text", schema: send, text: "anna call mum timeoot=12",
			wrong: "Unknown option 'timeoot'. Did you mean timeout?"},
		{name: "an option in quotation marks", schema: send, text: `anna say "timeout=5 or so" twice`,
			want: `{"message":"say \"timeout=5 or so\" twice","to":"anna"}`},
		{name: "an option that is text", schema: send, text: "anna -- the timeout=5",
			want: `{"message":"the timeout=5","to":"anna"}`},
		{name: "dashes in a text", schema: send, text: "anna wait -- no --really",
			want: `{"message":"wait -- no --really","to":"anna"}`},
		{name: "inches", schema: send, text: `anna 5" nails "or so`, want: `{"message":"5\" nails \"or so","to":"anna"}`},
		{name: "a value of several among words", schema: order, text: "lifo --dry_run",
			want: `{"dry_run":true,"order":"lifo"}`},
		{name: "a kind by itself", schema: list, text: "OPEN", want: `{"kind":"open"}`},
		{name: "words that begin like a kind", schema: list, text: "open doors", want: `{"about":"open doors"}`},
		{name: "optional texts", schema: optional, text: "b c text=a", want: `{"name":"b c","text":"a"}`},
		{name: "more than the first optional", schema: run, text: "2 3", wrong: "Unexpected argument '3'."},
		{name: "the first optional by name", schema: run, text: "2 count=3", wrong: "Unexpected argument '2'."},
		{name: "too long", schema: optional, text: "text=abcdefg", wrong: "Text: want at most 5 characters."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := formOf(t, "do", tt.schema).parse(tt.text)
			switch {
			case tt.wrong == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.wrong == "" && string(got) != tt.want:
				t.Errorf("arguments %s, want %s", got, tt.want)
			case tt.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.wrong) ||
				!strings.Contains(err.Error(), "Usage: /do")):
				t.Errorf("got %s and the error %v, want %s", got, err, tt.wrong)
			}
		})
	}
}

func TestUsageDescribesTheParameters(t *testing.T) {
	t.Parallel()
	f := formOf(t, "send", `{"type":"object","required":["to","message"],"properties":{
		"message":{"type":"string","description":"What to say."},"to":{"type":"string"},
		"order":{"enum":["fifo","lifo"]},"quiet":{"type":"boolean"},
		"count":{"type":"integer","description":"How often."},"until":{"type":["number","string"]}}}`)
	_, err := f.parse(" ")
	const want = "Usage: /send TO MESSAGE [order=fifo|lifo] [--quiet] [count=NUMBER] [until=NUMBER|TEXT]\n" +
		"\n- MESSAGE: What to say.\n- count: How often."
	if err == nil || err.Error() != want {
		t.Errorf("the usage is\n%v\nwant\n%s", err, want)
	}
	if _, err := formOf(t, "look", `{"type":"object"}`).parse("extra"); err == nil ||
		err.Error() != "Unexpected argument 'extra'. Usage: /look" {
		t.Errorf("got %v", err)
	}
}

// FuzzForm checks that any text gives an error or arguments that fit.
func FuzzForm(f *testing.F) {
	form := formOf(f, "do", `{"type":"object","required":["to","message"],"additionalProperties":false,"properties":{
		"to":{"type":"string"},"message":{"type":"string"},"n":{"type":"integer"},"b":{"type":"boolean"},
		"l":{"type":"array"},"e":{"enum":["x",1,null]}}}`)
	for _, seed := range []string{"", "anna hello", "--n 3 a b", `n=" a`, "—b -- x y", "e=null l=1,2 'a' b", "-", "=",
		"--=", "\xff “”", "a b n=1 c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := form.parse(text)
		if err == nil && form.check(raw) != nil {
			t.Errorf("%q makes %s", text, raw)
		}
		if err != nil && !strings.Contains(err.Error(), "Usage: /do TO MESSAGE") {
			t.Errorf("%q is refused with %v", text, err)
		}
	})
}

func formOf(t testing.TB, command, raw string) *form {
	t.Helper()
	s, err := schema.Compile([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return newForm(command, []byte(raw), s)
}
