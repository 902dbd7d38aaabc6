package bus

import (
	"encoding/json"
	"strings"
	"testing"
)

const maxNesting = 10_000 // of encoding/json

var documents = []string{
	"", " ", "null", "nul", "nullx", "true", "false", " 1 ", "-", "-0", "01", "0.", "0.5", ".5", "1e", "1e+", "1E-07", "-1.25e3x", "1 2",
	`""`, `"`, `"a`, `"\"`, `"\"\\\/\b\f\n\r\t\u00e9"`, `"\u12G4"`, `"\u12` + "\x10" + `4"`, `"\u12`, `"\x"`, "\"a\nb\"", "\"1234567\x1f\"", "\"12345678\x7f\xff\xc3é12345678\"",
	`"12345678\n12345678"`, `"1234567"8`, "[]", "[ ]", "[1,]", "[,1]", "[1 2]", "[1, [2, {}], \"x\" ] ", "[", "]", "[}", "{}", "{ }", "{]",
	`{"a":1}`, `{"a" : 1 , "b":[true]}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{1:1}`, `{"a":1`, `{"a":1}}`, "\ufeff{}", "\x00", "1\x00", "[1,2}", "\v1",
	strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting),
	strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1),
	strings.Repeat(`{"":`, maxNesting) + "1" + strings.Repeat("}", maxNesting),
	strings.Repeat(`{"":`, maxNesting+1) + "1" + strings.Repeat("}", maxNesting+1),
	strings.Repeat("[1,", maxNesting+1), strings.Repeat(`[`, maxNesting) + "{}" + strings.Repeat("]", maxNesting),
}

func TestValidJSON(t *testing.T) {
	t.Parallel()
	for _, d := range documents {
		if got, want := validJSON([]byte(d)), json.Valid([]byte(d)); got != want {
			t.Errorf("%.40q is valid: %t, want %t", d, got, want)
		}
	}
}

func FuzzValidJSON(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := validJSON(b), json.Valid(b); got != want {
			t.Errorf("%q is valid: %t, want %t", b, got, want)
		}
	})
}
