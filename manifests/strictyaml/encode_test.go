package strictyaml_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

func TestEncodeIsReadBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"name: x\n",
		`name: "yes"
count: 4
ratio: 0.5
on: false
wait: 1d12h
size: 256MiB
color: red
words: [a, "1", "true"]
models: one
map: {k: 1, "12": 2}
free: {n: null, list: [1, {a: b}], deep: {x: 1.5}}
any: [1, two]
rules: [t, {topic: u, age: 30d}]
opt: {deep: x}
in: {deep: "multi\nline: #1"}
channels: {default: c, a: {deep: y}, b: {}}
`,
	} {
		var want, got sample
		if doc := strictyaml.Decode("f.yaml", []byte(text), &want, checks); doc.Problems() != nil {
			t.Fatal(doc.Problems())
		}
		written, err := strictyaml.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if doc := strictyaml.Decode("f.yaml", written, &got, checks); doc.Problems() != nil {
			t.Errorf("%v in\n%s", doc.Problems(), written)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read back from\n%s\n%s", written, diff)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "15m": 15 * time.Minute, "1m30s": 90 * time.Second, "1h": time.Hour,
		"1h0m1s": time.Hour + time.Second, "1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour,
		"250ms": 250 * time.Millisecond,
	} {
		if got := strictyaml.FormatDuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
		if back, err := strictyaml.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s is read as %v, %v", want, back, err)
		}
	}
}
