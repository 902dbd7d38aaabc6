package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// blobPath is where the home keeps a file.
func (w *world) blobPath(data []byte) string {
	hash := fmt.Sprintf("%x", sha256.Sum256(data))
	return w.file("blobs", hash[:2], hash)
}

// A file of a message is damaged: doctor names it while the kernel runs and while none
// does, and where a copy is; a missing one is found without a kernel.
func TestDoctorChecksFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPoster)
	w.model.Queue(openaitest.Say("A gradient."))
	w.start()
	data := photo(t, 40, 20)
	w.post("what is this?", data, postedFile{"cat.jpg", "image", "cat.jpg", "image/jpeg"})
	w.posterSent("A gradient.")
	out, _, _ := w.cli("doctor", "--offline")
	contains(t, "a whole file", out, "1 file of messages (", ", intact")

	path := w.blobPath(data)
	backups := filepath.Join(w.file("backups", "files"), filepath.Base(filepath.Dir(path)))
	hash := filepath.Base(path)
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), len(data)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := w.cli("doctor", "--offline", "--files")
	contains(t, "a damaged file", out, "1 file is damaged in ", hash, "a backup may have them")
	if code != 1 {
		t.Errorf("the exit status is %d", code)
	}
	if err := os.MkdirAll(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(backups, hash), data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ = w.cli("doctor", "--offline")
	hint := fmt.Sprintf("mkdir -p %[2]s && cp %[1]s %[2]s/", filepath.Join(backups, hash), filepath.Dir(path))
	contains(t, "a damaged file with a copy", out, hash, hint)

	w.stop()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	out, _, code = w.cli("doctor", "--offline")
	contains(t, "a missing file", out, "1 file is missing or damaged", hash, hint)
	if code != 1 {
		t.Errorf("the exit status is %d", code)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ = w.cli("doctor", "--offline"); strings.Contains(out, "missing or damaged") {
		t.Errorf("with its copy, doctor says:\n%s", out)
	}
}
