package tools_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, tool, schema string
		fails              string
	}{
		{"a schema", "add_note2", `{"type":"object"}`, ""},
		{"no schema", "add", ``, ""},
		{"a name with a slash", "notes/add", ``, `invalid tool name "notes/add"`},
		{"a name in capitals", "Add", ``, `invalid tool name "Add"`},
		{"no name", "", ``, `invalid tool name ""`},
		{"no JSON", "add", `{`, "the schema of the tool notes/add: read JSON: "},
		{"no schema at all", "add", `{"type":"thing"}`, "the schema of the tool notes/add"},
		{"a reference to nowhere", "add", `{"$ref":"#/$defs/missing"}`, "the schema of the tool notes/add"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tool := &extensionv1.Tool{Name: test.tool, Schema: []byte(test.schema)}
			schema, err := coretool.Compile("notes", tool)
			if test.fails == "" {
				if err != nil || (schema == nil) != (test.schema == "") {
					t.Errorf("got %v, %v", schema, err)
				}
				return
			}
			if !errors.Is(err, contract.ErrInvalid) || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got %v, want %q", err, test.fails)
			}
		})
	}
}

// A schema is an extension's word, and the kernel reads no file for it.
func TestASchemaNamesNoFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type": "string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"file://" + file, "http://127.0.0.1/schema", "../../etc/hostname"} {
		_, err := coretool.Compile(
			"x",
			&extensionv1.Tool{Name: "y", Schema: []byte(`{"properties": {"a": {"$ref": "` + url + `"}}}`)},
		)
		if !errors.Is(err, contract.ErrInvalid) || !strings.Contains(err.Error(), "outside of the schema") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
