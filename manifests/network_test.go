package manifests

import (
	"slices"
	"strings"
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

func TestPortsToListenOn(t *testing.T) {
	t.Parallel()
	const manifest = `api: 1
id: hook
name: Hook
version: 1.0.0
run: {command: ./hook}
permissions: {listen: [81], listen_on: $config.port}
config: {port: 8095}
`
	m, err := Parse("hook/manifest.yaml", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[any][]uint16{
		8096: {81, 8096}, "127.0.0.1:82": {81, 82}, "[::1]:0": {81, 0}, 0: {81}, 70000: {81}, true: {81}, "x": {81},
	} {
		if got := m.Ports(map[string]any{"port": value}); !slices.Equal(got, want) {
			t.Errorf("with %v it listens on %d, want %d", value, got, want)
		}
	}
	asked := []Ask{{Kind: AskListen, Value: "8095"}, {Kind: AskListen, Value: "81"}}
	if got := m.Asks(); !slices.Equal(got, asked) {
		t.Errorf("it asks for %v, want %v", got, asked)
	}
	for _, value := range []string{"$config.prt", "8095", "$env.PORT"} {
		if _, err := Parse("hook/manifest.yaml", []byte(strings.Replace(manifest, "$config.port", value, 1))); err == nil {
			t.Errorf("listen_on: %s is no mistake", value)
		}
	}
}
