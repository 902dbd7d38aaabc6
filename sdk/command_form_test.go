package sdk

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFormReadsWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	const (
		none     = `{"type":"object","additionalProperties":false}`
		text     = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
		send     = `{"type":"object","required":["to","message"],"properties":{"message":{"type":"string"},"to":{"type":"string"},"timeout":{"type":"number"}}}`
		run      = `{"type":"object","properties":{"quiet":{"type":"boolean"},"count":{"type":"integer","minimum":1},"timeout":{"type":["number","string"]}},"additionalProperties":false}`
		above    = `{"type":"object","properties":{"count":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}}}`
		order    = `{"type":"object","properties":{"order":{"enum":["fifo","lifo",3]},"dry_run":{"type":"boolean"}}}`
		tags     = `{"type":"object","properties":{"tags":{"type":"array","items":{"type":"integer"}},"more":{"type":"object"},"any":true}}`
		optional = `{"type":"object","properties":{"name":{"type":"string"},"text":{"type":"string","maxLength":5}}}`
	)
	for _, tt := range []struct{ name, schema, text, want, wrong string }{
		{name: "nothing", schema: none, text: "", want: `{}`},
		{name: "too much", schema: none, text: "hello", wrong: `It is not clear what "hello" is for.`},
		{name: "a text", schema: text, text: " to be, or\n  not to be ", want: `{"text":"to be, or\n  not to be"}`},
		{name: "a text in quotation marks", schema: text, text: `“to be”`, want: `{"text":"to be"}`},
		{name: "quotation marks within", schema: text, text: `"to be" or not`, want: `{"text":"\"to be\" or not"}`},
		{name: "a text like a parameter", schema: text, text: "-- text=1 --x", want: `{"text":"text=1 --x"}`},
		{name: "an equation", schema: text, text: "e=mc2", want: `{"text":"e=mc2"}`},
		{name: "a short name in an equation", schema: send, text: "t=1 x", want: `{"message":"x","to":"t=1"}`},
		{name: "a name with a letter too few", schema: run, text: "tmeout=5", wrong: "There is no parameter tmeout: is timeout meant? Write -- before it if it is text."},
		{name: "a name with another letter", schema: send, text: "anna massage=hello", wrong: "There is no parameter massage: is message meant? Write -- before it if it is text."},
		{name: "a name with swapped letters", schema: optional, text: "nmae=a", wrong: "There is no parameter nmae: is name meant? Write -- before it if it is text."},
		{name: "nearly a name, but text", schema: optional, text: "-- nmae=a", want: `{"name":"nmae=a"}`},
		{name: "nearly a name within a text", schema: text, text: "the tetx=1", want: `{"text":"the tetx=1"}`},
		{name: "a text by name", schema: text, text: `text='a "b" c'`, want: `{"text":"a \"b\" c"}`},
		{name: "an apostrophe", schema: text, text: `'tis so`, want: `{"text":"'tis so"}`},
		{name: "no text", schema: text, text: "", wrong: "Text is missing."},
		{name: "not closed", schema: send, text: `"anna hello`, wrong: `To: the quotation mark before "anna hello" is not closed.`},
		{name: "twice", schema: text, text: "text=a text=b", wrong: "Text is given twice."},
		{name: "more behind", schema: text, text: "text=a b", wrong: `It is not clear what "b" is for.`},
		{name: "by place", schema: send, text: `anna hello there timeout=5`, want: `{"message":"hello there timeout=5","to":"anna"}`},
		{name: "names before", schema: send, text: `timeout=1.5 anna hello`, want: `{"message":"hello","timeout":1.5,"to":"anna"}`},
		{name: "names between", schema: send, text: `anna --timeout 2 hello`, want: `{"message":"hello","timeout":2,"to":"anna"}`},
		{name: "quoted by place", schema: send, text: `"anna b" hello`, want: `{"message":"hello","to":"anna b"}`},
		{name: "half", schema: send, text: "anna", wrong: "Message is missing."},
		{name: "a number by place", schema: run, text: "3", want: `{"count":3}`},
		{name: "a number or a text", schema: run, text: "3 10m", want: `{"count":3,"timeout":"10m"}`},
		{name: "a flag", schema: run, text: "--quiet 3", want: `{"count":3,"quiet":true}`},
		{name: "a flag of a phone", schema: run, text: "—quiet count=3", want: `{"count":3,"quiet":true}`},
		{name: "a flag with a value", schema: run, text: "--quiet=no", want: `{"quiet":false}`},
		{name: "a bare flag", schema: run, text: "QUIET", want: `{"quiet":true}`},
		{name: "no number", schema: run, text: "count=many", wrong: `Count is "many", which is no whole number.`},
		{name: "no whole number", schema: run, text: "1.5", wrong: `Count is "1.5", which is no whole number.`},
		{name: "not above", schema: above, text: "count=0", wrong: "Count: got 0, want more than 0."},
		{name: "not below", schema: above, text: "count=1", wrong: "Count: got 1, want less than 1."},
		{name: "too small", schema: run, text: "0", wrong: "Count: got 0, want at least 1."},
		{name: "neither yes nor no", schema: run, text: "quiet=perhaps", wrong: `Quiet is "perhaps", which is no yes or no.`},
		{name: "an unknown flag", schema: run, text: "--loud", wrong: "There is no parameter loud."},
		{name: "a flag without a value", schema: run, text: "--count", wrong: "Count needs a value."},
		{name: "one of several", schema: order, text: "order=LIFO", want: `{"order":"lifo"}`},
		{name: "a number of several", schema: order, text: "3", want: `{"order":3}`},
		{name: "none of several", schema: order, text: "random", wrong: `Order is "random", which is none of fifo, lifo, 3.`},
		{name: "a dash for an underscore", schema: order, text: "--dry-run", want: `{"dry_run":true}`},
		{name: "a list", schema: tags, text: "1,2 tags=3", want: `{"tags":[1,2,3]}`},
		{name: "a list of others", schema: tags, text: "1,two", wrong: `Tags is "1,two", which is no list.`},
		{name: "an object", schema: tags, text: `more='{"a": 1}' any=x`, want: `{"any":"x","more":{"a":1}}`},
		{name: "optional texts", schema: optional, text: "name=a b c", want: `{"name":"a","text":"b c"}`},
		{name: "too long", schema: optional, text: "name=a abcdefg", wrong: "Text: want at most 5 characters."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := newForm(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.parse("do", tt.text)
			switch {
			case tt.wrong == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.wrong == "" && string(got) != tt.want:
				t.Errorf("arguments %s, want %s", got, tt.want)
			case tt.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.wrong+"\n") || !strings.Contains(err.Error(), "Usage: `/do")):
				t.Errorf("got %s and the error %v, want %s", got, err, tt.wrong)
			}
		})
	}
}

func TestUsageSaysWhatTheParametersAre(t *testing.T) {
	t.Parallel()
	f, err := newForm(json.RawMessage(`{"type":"object","required":["to","message"],"properties":{
		"message":{"type":"string","description":"What to say."},"to":{"type":"string"},"order":{"enum":["fifo","lifo"]},"quiet":{"type":"boolean"},
		"count":{"type":"integer"},"until":{"type":["number","string"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.parse("send", "")
	const want = "To is missing.\n\nUsage: `/send <to> <message ...> [order=fifo|lifo] [--quiet] [count=number] [until=number|text]`\n" +
		"\n- `to` (text)\n- `message` (text): What to say.\n- `order` (fifo|lifo)\n- `quiet` (yes|no)\n- `count` (number)\n- `until` (number|text)"
	if err == nil || err.Error() != want {
		t.Errorf("the usage is\n%v\nwant\n%s", err, want)
	}
}

// FuzzForm holds for any text: there is an error, or arguments that fit.
func FuzzForm(f *testing.F) {
	form, err := newForm(json.RawMessage(`{"type":"object","required":["to","message"],"additionalProperties":false,"properties":{
		"to":{"type":"string"},"message":{"type":"string"},"n":{"type":"integer"},"b":{"type":"boolean"},"l":{"type":"array"},"e":{"enum":["x",1,null]}}}`))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "anna hello", "--n 3 a b", `n=" a`, "—b -- x y", "e=null l=1,2 'a' b", "-", "=", "--=", "\xff “”"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := form.parse("do", text)
		if err == nil && form.check("do", raw) != nil {
			t.Errorf("%q makes %s", text, raw)
		}
		if err != nil && err.Error() == "" {
			t.Errorf("%q is refused without a word", text)
		}
	})
}
