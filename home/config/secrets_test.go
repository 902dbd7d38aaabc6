package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/home/config"
)

func TestParseSecrets(t *testing.T) {
	t.Parallel()
	got, err := config.ParseSecrets("secrets.env", []byte("\ufeff# tokens\r\n\nA=1\n export B = x\n"))
	if err == nil || err.Error() != "secrets.env:4:9: B: remove the blank before =" {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = config.ParseSecrets("secrets.env", []byte(`# comment
A=1
export B=two words # comment
	C='single # $A \n' # comment
D="double \"q\" \\ \n \$A \x"
E=
F= #nothing
G=a#b=c
H="日本"
`))
	want := map[string]string{
		"A": "1", "B": "two words", "C": `single # $A \n`, "D": "double \"q\" \\ \n $A \\x", "E": "", "F": "", "G": "a#b=c",
		"H": "日本",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	_, err = config.ParseSecrets("F", []byte("token\n2A=x\nA=\"top-secret\nB='x' y\nA=1\nA=2\n  é=1\nC=\xff"))
	wantErr := `F:1:1: expected NAME=value
F:2:1: the text before = is not a valid name of an environment variable
F:3:3: A: the quote is not closed on this line
F:4:3: B: unexpected text after the closing quote
F:6:1: A: already set in line 5
F:7:3: the text before = is not a valid name of an environment variable
F:8:1: this line is not UTF-8 text`
	if err == nil || err.Error() != wantErr {
		t.Errorf("got:\n%v", err)
	}
}

func TestSecretsLookup(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "env", "B": ""}
	s := config.NewSecrets(map[string]string{"A": "file", "B": "file", "C": "file", "D": ""},
		func(n string) (string, bool) {
			v, ok := env[n]
			return v, ok
		})
	for name, want := range map[string]string{"A": "env", "B": "file", "C": "file", "D": "", "E": ""} {
		if got, ok := s.Lookup(name); got != want || ok != (got != "") {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(text, "file") {
		t.Errorf("secrets are printed: %s", text)
	}
}

func TestLoadSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secrets.env")
	if got, err := config.LoadSecrets(file); err != nil || len(got) != 0 {
		t.Errorf("absent: %v, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.LoadSecrets(file); err != nil || got["A"] != "1" {
		t.Errorf("private: %v, %v", got, err)
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o602} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		got, err := config.LoadSecrets(file)
		if err == nil || got != nil || !strings.Contains(err.Error(), "chmod 600 "+file) {
			t.Errorf("mode %o: %v, %v", mode, got, err)
		}
	}
}

func FuzzParseSecrets(f *testing.F) {
	f.Add([]byte("A=1\nexport B='x'\n"))
	f.Add([]byte("export \n=\nA=\"\\"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := config.ParseSecrets("F", data)
		problems, _ := errors.AsType[config.Problems](err)
		lines := strings.Split(string(data), "\n")
		for _, p := range problems {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len([]rune(lines[p.Line-1]))+1 {
				t.Fatalf("position outside the file: %s", p)
			}
		}
	})
}
