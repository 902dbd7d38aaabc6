package api

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var (
	pathParameter = regexp.MustCompile(`\{([^}]+)\}`)
	reference     = regexp.MustCompile(`"\$ref":"([^"]*)"`)
)

const schemasAt = "#/components/schemas/"

// TestDocumentIsWhole checks what a generator of clients trips over: schemas that are none,
// references and path parameters that lead nowhere, ids that two operations have, and errors
// that are not described.
func TestDocumentIsWhole(t *testing.T) {
	t.Parallel()
	var doc struct {
		OpenAPI    string
		Components struct{ Schemas map[string]json.RawMessage }
		Paths      map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In string
				Required bool
			}
			Responses map[string]struct{ Content map[string]any }
		}
	}
	text := newWorld(t).must(t, "owner", "GET /openapi.json", "", &doc).body
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || len(doc.Components.Schemas) < 20 {
		t.Fatalf("OpenAPI %s with %d schemas", doc.OpenAPI, len(doc.Components.Schemas))
	}
	for _, ref := range reference.FindAllStringSubmatch(text, -1) {
		if name, is := strings.CutPrefix(ref[1], schemasAt); !is || doc.Components.Schemas[name] == nil {
			t.Errorf("%s leads nowhere", ref[1])
		}
	}
	all, err := json.Marshal(map[string]any{"$defs": doc.Components.Schemas})
	if err != nil {
		t.Fatal(err)
	}
	var schemas jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(all), schemasAt, "#/$defs/")), &schemas); err != nil {
		t.Fatal(err)
	}
	if _, err := schemas.Resolve(nil); err != nil {
		t.Error(err)
	}
	ids := map[string]string{}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if other, taken := ids[o.OperationID]; taken {
				t.Errorf("%s %s has the id of %s", method, path, other)
			}
			ids[o.OperationID] = path
			declared := map[string]bool{}
			for _, p := range o.Parameters {
				if declared[p.In+" "+p.Name] {
					t.Errorf("%s %s has two parameters %s", method, path, p.Name)
				}
				declared[p.In+" "+p.Name] = p.In != "path" || p.Required
			}
			for _, p := range pathParameter.FindAllStringSubmatch(path, -1) {
				if !declared["path "+p[1]] {
					t.Errorf("%s %s does not describe %s", method, path, p[1])
				}
			}
			if (method == "post") != declared["header Idempotency-Key"] {
				t.Errorf("%s %s: a key is described: %v", method, path, declared["header Idempotency-Key"])
			}
			for _, status := range []string{"401", "403", "429"} {
				if o.Responses[status].Content["application/problem+json"] == nil {
					t.Errorf("%s %s does not describe the problem %s", method, path, status)
				}
			}
		}
	}
}
