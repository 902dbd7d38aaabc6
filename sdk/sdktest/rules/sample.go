package rules

import (
	"encoding/json"
	"maps"
	"slices"
)

// Arguments makes arguments that fit a tool's schema: what is required, as small as it may
// be. A schema with patterns or conditions may refuse them.
func Arguments(raw []byte) []byte {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return []byte("{}")
	}
	value, ok := sampleOf(schema, 0).(map[string]any)
	if !ok {
		value = map[string]any{}
	}
	arguments, err := json.Marshal(value)
	if err != nil {
		return []byte("{}")
	}
	return arguments
}

// deepest bounds schemas within schemas.
const deepest = 8

func sampleOf(schema map[string]any, depth int) any {
	if depth > deepest {
		return nil
	}
	for _, key := range []string{"const", "default"} {
		if v, ok := schema[key]; ok {
			return v
		}
	}
	for _, key := range []string{"enum", "examples"} {
		if all, ok := schema[key].([]any); ok && len(all) > 0 {
			return all[0]
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if all, ok := schema[key].([]any); ok && len(all) > 0 {
			if first, ok := all[0].(map[string]any); ok {
				merged := maps.Clone(schema)
				delete(merged, key)
				maps.Copy(merged, first)
				return sampleOf(merged, depth+1)
			}
		}
	}
	kind, _ := schema["type"].(string)
	if all, ok := schema["type"].([]any); ok && len(all) > 0 {
		kind, _ = all[0].(string)
	}
	switch kind {
	case "object":
		return sampleObject(schema, depth)
	case "array":
		items, _ := schema["items"].(map[string]any)
		all := []any{}
		for range int(number(schema, "minItems", 0)) {
			all = append(all, sampleOf(items, depth+1))
		}
		return all
	case "integer", "number":
		return number(schema, "minimum", number(schema, "exclusiveMinimum", 0)+1)
	case "boolean":
		return false
	case "null":
		return nil
	default:
		return sampleText(schema)
	}
}

func sampleObject(schema map[string]any, depth int) map[string]any {
	value := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) {
			property, _ := properties[name].(map[string]any)
			value[name] = sampleOf(property, depth+1)
		}
	}
	return value
}

func sampleText(schema map[string]any) string {
	switch schema["format"] {
	case "uri":
		return "https://example.org/"
	case "email":
		return "anna@example.org"
	case "date":
		return "2030-01-02"
	case "date-time":
		return "2030-01-02T03:04:05Z"
	}
	text := "verify"
	for len(text) < int(number(schema, "minLength", 0)) {
		text += " verify"
	}
	if most := int(number(schema, "maxLength", 0)); most > 0 && len(text) > most {
		text = text[:most]
	}
	return text
}

func number(schema map[string]any, key string, otherwise float64) float64 {
	if n, ok := schema[key].(float64); ok {
		return n
	}
	return otherwise
}
