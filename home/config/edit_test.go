package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEditKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	zone := Setting{Path: []string{"timezone"}, Value: "Asia/Tokyo", Comment: "The zone."}
	kind := Setting{Path: []string{"models", "providers", "ollama", "kind"}, Value: "openai", Comment: "Models."}
	order := Setting{Path: []string{"models", "default"}, Value: []string{"a/b", "c/d"}}
	for name, test := range map[string]struct {
		text     string
		settings []Setting
		want     string
	}{
		"no file": {"", []Setting{zone, kind},
			"# The zone.\ntimezone: Asia/Tokyo\n\n# Models.\nmodels:\n  providers:\n    ollama:\n      kind: openai\n"},
		"only comments": {"# mine\n", []Setting{zone}, "# mine\n\n# The zone.\ntimezone: Asia/Tokyo\n"},
		"no end of line": {"processes: grouped # why", []Setting{zone},
			"processes: grouped # why\n\n# The zone.\ntimezone: Asia/Tokyo\n"},
		"a value with a comment": {"# top\n\ntimezone: UTC   # here\n\n# next\nprocesses:   shared\n", []Setting{zone},
			"# top\n\ntimezone: Asia/Tokyo # here\n\n# next\nprocesses:   shared\n"},
		"one more provider": {
			"models: # those\n  # cheap\n  scout: a/b   # fast\n  providers:\n    first: {kind: openai} # one\n# below\nprocesses: shared\n",
			[]Setting{kind},
			"models: # those\n  # cheap\n  scout: a/b # fast\n  providers:\n    first: {kind: openai} # one\n    ollama:\n" +
				"      kind: openai\n# below\nprocesses: shared\n"},
		"a list": {"models:\n  default:\n    - x/y # best\n# end\n", []Setting{order}, ""},
		"in one line": {"models: {scout: a/b, default: [x/y]}\ntimezone: UTC\n", []Setting{order},
			"models: {scout: a/b, default: [a/b, c/d]}\ntimezone: UTC\n"},
		"a file in one line": {"{timezone: UTC, processes: shared}\n", []Setting{zone},
			"{timezone: Asia/Tokyo, processes: shared}\n"},
		"an empty key": {"models:\ntimezone: UTC\n", []Setting{order}, "models:\n  default: [a/b, c/d]\ntimezone: UTC\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit("config.yaml", []byte(test.text), test.settings...)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "by hand") {
					t.Errorf("%v\n%s", err, got)
				}
				return
			}
			if err != nil || string(got) != test.want {
				t.Errorf("%v\n%s\nwant:\n%s", err, got, test.want)
			}
			again, err := Edit("config.yaml", got, test.settings...)
			if err != nil || string(again) != string(got) {
				t.Errorf("the second time: %v\n%s", err, again)
			}
		})
	}
}

func TestEditChecksTheResult(t *testing.T) {
	t.Parallel()
	if text, err := Edit("config.yaml", nil, Setting{Path: []string{"timezone"}, Value: "Nowhere"}); err == nil {
		t.Errorf("a mistake was written:\n%s", text)
	}
	if _, err := Edit("config.yaml", []byte("a: [\n"), Setting{Path: []string{"timezone"}, Value: "UTC"}); err == nil {
		t.Error("a file with mistakes was changed")
	}
}

func TestEditSecret(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, value, want string }{
		"no file":     {"", "a:b", "# Mine.\nX=a:b\n"},
		"another":     {"Y=1 # why", "ab", "Y=1 # why\n# Mine.\nX=ab\n"},
		"a new value": {"# c\nexport X='old' # note\nY=1\n", "n", "# c\nexport X=n\nY=1\n"},
		"quotes":      {"", `a "b" $c\n#'`, "# Mine.\nX=\"a \\\"b\\\" \\$c\\\\n#'\"\n"},
		"of another":  {"XY=1\n", "v", "XY=1\n# Mine.\nX=v\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := EditSecret("secrets.env", []byte(test.text), "X", test.value, "Mine.")
			if err != nil || string(got) != test.want {
				t.Errorf("%v\n%s\nwant:\n%s", err, got, test.want)
			}
		})
	}
	if _, err := EditSecret("secrets.env", nil, "X", "a\nY=b", ""); err == nil {
		t.Error("a value with two lines was written")
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, target := filepath.Join(dir, "secrets.env"), filepath.Join(dir, "elsewhere")
	if err := Replace(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file: %v, %v", info, err)
	}
	if err := os.Rename(file, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
	if err := Replace(file, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "two" {
		t.Errorf("the target of a link: %q, %v", text, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v are left", left)
	}
	if err := Replace(filepath.Join(dir, "no", "file"), nil); err == nil {
		t.Error("a file without a directory was written")
	}
}
