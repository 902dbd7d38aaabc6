package tools_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, tool, schema string
		fails              string
	}{
		{"a schema", "add_note2", `{"type":"object"}`, ""},
		{"no schema", "add", ``, ""},
		{"a name with a slash", "notes/add", ``, `"notes/add" is no name`},
		{"a name in capitals", "Add", ``, `"Add" is no name`},
		{"no name", "", ``, `"" is no name`},
		{"no JSON", "add", `{`, "the schema of the tool notes/add is no JSON"},
		{"no schema at all", "add", `{"type":"thing"}`, "the schema of the tool notes/add"},
		{"a reference to nowhere", "add", `{"$ref":"#/$defs/missing"}`, "the schema of the tool notes/add"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tool := &extensionv1.Tool{Name: test.tool, Schema: []byte(test.schema)}
			schema, err := tools.Compile("notes", tool)
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
