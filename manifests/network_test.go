package manifests

import (
	"slices"
	"testing"
)

func TestPortsOfDestinations(t *testing.T) {
	t.Parallel()
	const manifest = `api: 1
id: reader
name: Reader
version: 1.0.0
run: {command: ./reader}
permissions:
  network: ["*:80", example.org, $config.server, $config.hosts, $config.ports, $config.missing, $env.SERVER]
`
	m, err := Parse("reader/manifest.yaml", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"server": "http://nas.home:8080/x", "hosts": []any{"nas.home:81", "10.0.0.0/8", "[::1]:82"},
		"ports": []any{8443, 70000, 0, -1, true}}
	env := func(string) (string, bool) { return "http://127.0.0.1:9000", true }
	ports, all := m.Destinations(config, env)
	if want := []uint16{80, 443, 8080, 81, 82, 8443, 9000}; !slices.Equal(ports, want) || all {
		t.Errorf("ports %d (all: %v), want %d", ports, all, want)
	}
	config["hosts"] = []any{"*"}
	if _, all := m.Destinations(config, env); !all {
		t.Error("* in a list does not allow every port")
	}
}
