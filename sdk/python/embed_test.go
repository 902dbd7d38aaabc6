package python

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const python = "/usr/bin/python3"

// TestTheProtosAreThoseOfTheContract compares the copies; ./generate makes them.
func TestTheProtosAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	copies, err := filepath.Glob("proto/switchboard/*/v1/*.proto")
	if err != nil || len(copies) != 3 {
		t.Fatalf("the copies are %v, %v", copies, err)
	}
	for _, file := range copies {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("../../contract", file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the contract's: run sdk/python/generate", file)
		}
	}
}

// TestTheModulesAreGenerated compares them with what the protos make.
func TestTheModulesAreGenerated(t *testing.T) {
	t.Parallel()
	version, err := exec.CommandContext(t.Context(), "protoc", "--version").Output()
	if err != nil || !bytes.Contains(version, []byte(" 3.21.")) {
		t.Skip("it needs protoc 3.21: Debian 12 has it as protobuf-compiler")
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("it needs Python")
	}
	dir := t.TempDir()
	copies, err := filepath.Glob("proto/switchboard/*/v1/*.proto")
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-I", "proto", "--python_out", dir, "--pyi_out", dir}, copies...)
	if out, err := exec.CommandContext(t.Context(), "protoc", args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v: %s", err, out)
	}
	made, err := filepath.Glob(filepath.Join(dir, "switchboard/*/v1/*_pb2.py*"))
	if err != nil || len(made) != 6 {
		t.Fatalf("it makes %v, %v", made, err)
	}
	payloads, err := exec.CommandContext(t.Context(), python, "-B", "generate_payloads").Output()
	if err != nil {
		t.Fatal(err)
	}
	payloadsFile := filepath.Join(dir, "switchboard", "payloads.py")
	if err := os.WriteFile(payloadsFile, payloads, 0o600); err != nil {
		t.Fatal(err)
	}
	made = append(made, payloadsFile)
	for _, file := range made {
		name, err := filepath.Rel(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the protos make (%v): run sdk/python/generate", name, err)
		}
	}
}

// TestThePackage runs its unit tests.
func TestThePackage(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import grpc, google.protobuf").CombinedOutput(); err != nil {
		t.Skipf("Python's gRPC is missing (apt-get install python3-grpcio python3-protobuf): %s", out)
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
