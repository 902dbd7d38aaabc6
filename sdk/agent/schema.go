package agent

import (
	"encoding/json"
	"slices"
)

// checksOnly lists the keywords that only the kernel needs, which checks arguments
// against the whole schema. Models get a schema without them.
var checksOnly = []string{
	"$schema", "$id", "$comment", "title", "additionalProperties",
	"minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "multipleOf",
}

// slim returns a schema of arguments for models.
func slim(schema []byte) []byte {
	var all any
	if json.Unmarshal(schema, &all) != nil {
		return schema
	}
	b, err := json.Marshal(slimmed(all))
	if err != nil {
		return schema
	}
	return b
}

func slimmed(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		for _, k := range checksOnly {
			delete(s, k)
		}
		if required, ok := s["required"].([]any); ok && len(required) == 0 {
			delete(s, "required")
		}
		for k, v := range s {
			switch named, ok := v.(map[string]any); {
			case ok && slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions"}, k):
				for name, of := range named {
					named[name] = slimmed(of)
				}
			case !slices.Contains([]string{"enum", "const", "default", "examples"}, k):
				s[k] = slimmed(v)
			}
		}
	case []any:
		for i, v := range s {
			s[i] = slimmed(v)
		}
	}
	return schema
}
