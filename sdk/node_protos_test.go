package sdk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The SDK for Node has copies of the contract's protos, because npm packs only what is in
// its directory.
func TestTheProtosOfNodeAreTheContracts(t *testing.T) {
	t.Parallel()
	copies := map[string]string{
		"plugin.proto": "plugin/plugin.proto", "grpc/health/v1/health.proto": "plugin/grpc/health/v1/health.proto",
	}
	for _, name := range []string{"bus", "extension", "kernel"} {
		file := filepath.Join("switchboard", name, "v1", name+".proto")
		copies[file] = filepath.Join("proto", file)
	}
	for file, from := range copies {
		want, err := os.ReadFile(filepath.Join("../contract", from))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("node/proto", file)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("sdk/node/proto/%s is not the contract's (%v): cp contract/%s sdk/node/proto/%s", file, err, from, file)
		}
	}
}
