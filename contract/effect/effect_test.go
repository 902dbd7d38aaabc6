package effect

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

const maxNesting = 10_000 // of encoding/json

var documents = []string{
	"",
	" ",
	"null",
	"nul",
	"nullx",
	"true",
	"false",
	" 1 ",
	"-",
	"-0",
	"01",
	"0.",
	"0.5",
	".5",
	"1e",
	"1e+",
	"1E-07",
	"-1.25e3x",
	"1 2",
	`""`,
	`"`,
	`"a`,
	`"\"`,
	`"\"\\\/\b\f\n\r\t\u00e9"`,
	`"\u12G4"`,
	`"\u12` + "\x10" + `4"`,
	`"\u12`,
	`"\x"`,
	"\"a\nb\"",
	"\"1234567\x1f\"",
	"\"12345678\x7f\xff\xc3é12345678\"",
	`"12345678\n12345678"`,
	`"1234567"8`,
	"[]",
	"[ ]",
	"[1,]",
	"[,1]",
	"[1 2]",
	"[1, [2, {}], \"x\" ] ",
	"[",
	"]",
	"[}",
	"{}",
	"{ }",
	"{]",
	`{"a":1}`,
	`{"a" : 1 , "b":[true]}`,
	`{"a"}`,
	`{"a":}`,
	`{a:1}`,
	`{"a":1,}`,
	`{1:1}`,
	`{"a":1`,
	`{"a":1}}`,
	"\ufeff{}",
	"\x00",
	"1\x00",
	"[1,2}",
	"\v1",
	strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting),
	strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1),
	strings.Repeat(`{"":`, maxNesting) + "1" + strings.Repeat("}", maxNesting),
	strings.Repeat(`{"":`, maxNesting+1) + "1" + strings.Repeat("}", maxNesting+1),
	strings.Repeat("[1,", maxNesting+1),
	strings.Repeat(`[`, maxNesting) + "{}" + strings.Repeat("]", maxNesting),
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

// One effect cannot name any number of files.
func TestEffectsThatNameManyFilesAreRefused(t *testing.T) {
	t.Parallel()
	many := make([]string, contract.MaxBlobs+1)
	for name, e := range map[string]*busv1.Effect{
		"publish": {Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{Topic: "x.y", Payload: []byte("{}"), Blobs: many}}},
		"put":     {Kind: &busv1.Effect_Put{Put: &busv1.Put{Key: "k", Blobs: many}}},
		"input":   {Kind: &busv1.Effect_Input{Input: &busv1.Input{Blobs: many}}},
		"append":  {Kind: &busv1.Effect_Append{Append: &busv1.Append{Blobs: many}}},
	} {
		if err := Check(e); !errors.Is(err, contract.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
