package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// FuzzArguments: whatever schema an extension describes and whatever arguments a
// model makes up, nothing panics; what is let through is JSON that fits, and
// what is not is explained in a few words.
func FuzzArguments(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`, `{"n": 1}`},
		{`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n": "1"`},
		{`{"$ref":"#"}`, `[[[[]]]]`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"string","pattern":"(a+)+$"}]}}}`, `"aaaaaaaaaaaaaaaaaaaaaaaaaa!"`},
		{`{"$ref":"file:///etc/passwd"}`, ` `},
		{`true`, "\x00"}, {`false`, `{}`}, {``, `null`}, {`{"multipleOf":1e-300}`, `1e308`}, {`{"const":"\ud800"}`, `"\ud800"`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, described, raw []byte) {
		tool := &extensionv1.Tool{Name: "tool", Schema: described}
		compiled, err := coretool.Compile("fuzz", tool)
		if err != nil {
			return
		}
		why := checkArguments(
			&directory.Tool{Name: "fuzz/tool", Extension: "fuzz", Tool: tool, Schema: func() *schema.Schema { return compiled }},
			raw,
		)
		if why == "" && len(strings.TrimSpace(string(raw))) > 0 && !json.Valid(raw) {
			t.Errorf("%q is let through", raw)
		}
		if utf8.Valid(raw) && utf8.Valid(described) && !utf8.ValidString(why) {
			t.Errorf("%q is no text", why)
		}
	})
}
