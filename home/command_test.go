package home

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/manifests"
)

func TestAllowedEnv(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PATH=/bin", "HOME=/h", "OPENAI_API_KEY=k", "LC_ALL=C", "XDG_DATA_HOME=/d", "SSL_CERT_FILE=/c", "TZ=UTC",
		"https_proxy=p", "LD_PRELOAD=/x", "LISTED=1", "PATHS=no", "LC=no", "=odd", "TMPDIR=/t",
	}
	want := []string{
		"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_DATA_HOME=/d", "SSL_CERT_FILE=/c", "TZ=UTC", "https_proxy=p",
		"TMPDIR=/t", "LISTED=1", "SET=a=b",
	}
	lookup := func(name string) (string, bool) { return "1", name == "LISTED" }
	if got := allowedEnv(environ, lookup, "LISTED", "UNSET", "SET=a=b"); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestStampsOfOtherFiles checks that a script, and each installation, start an extension
// again.
func TestStampsOfOtherFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "jotter")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := manifests.Parse(filepath.Join(dir, manifests.FileName),
		[]byte("api: 1\nid: jotter\nname: J\nversion: 1.0.0\nrun: {command: python3, args: [main.py, ../x, -v]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{stamps(m): true}
	for i, name := range []string{"main.py", manifests.RecordName, "main.py", "other.py"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, i), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, is := stamps(m), name != "other.py"; seen[got] == is {
			t.Errorf("%s changes the stamps: %v, want %v", name, !is, is)
		}
		seen[stamps(m)] = true
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stamp := func() string { return stamp(executable([]string{"./program", "argument"}, dir)) }
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	missing := stamp()
	write("program", "one")
	first := stamp()
	if first == missing || first != stamp() {
		t.Errorf("%q, %q, %q", missing, first, stamp())
	}
	write("next", "two")
	if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "program")); err != nil {
		t.Fatal(err)
	}
	if stamp() == first {
		t.Error("replacing the file changes nothing")
	}
}
