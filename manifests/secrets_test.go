package manifests

import (
	"slices"
	"strings"
	"testing"
)

func TestTheConfigNamesSecretsOfABuiltIn(t *testing.T) {
	t.Parallel()
	m := &Manifest{Secrets: []Secret{{Name: "OWN", Required: true}, {Name: "$config.hooks.*.secret"}, {Name: "$config.key"}}}
	config := map[string]any{
		"hooks": map[string]any{
			"b": map[string]any{"secret": "B"}, "a": map[string]any{"secret": "A"}, "again": map[string]any{"secret": "B"},
			"none": map[string]any{}, "wrong": "text",
		},
	}
	var names []string
	for _, s := range m.SecretsOf(config) {
		names = append(names, s.Name)
		if s.Required != (s.Name == "OWN") {
			t.Errorf("secret %+v", s)
		}
	}
	if want := []string{"OWN", "A", "B"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestOnlyBuiltInsHaveSecretsThatTheConfigNames(t *testing.T) {
	t.Parallel()
	_, err := Parse("x/manifest.yaml", []byte("api: 1\nid: x\nname: X\nversion: 1.0.0\nrun: {command: ./x}\n"+
		"secrets: [$config.key]\nconfig: {key: OPENAI_API_KEY}\n"))
	if err == nil || !strings.Contains(err.Error(), "only the configuration of built-in extensions names secrets") {
		t.Errorf("got %v", err)
	}
}
