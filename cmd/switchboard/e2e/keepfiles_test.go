package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
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

// chats runs `switchboard chat` with these lines, where the home is.
func (w *world) chats(lines ...string) string {
	w.t.Helper()
	cmd := w.command("chat")
	if w.disk != nil {
		cmd = w.disk.on(cmd)
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(out)
}

// sparse makes a file of zeros.
func sparse(t *testing.T, size int64) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), fmt.Sprintf("f%d.bin", size))
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A file for which the disk has no room is refused with the reason. Messages go on, and
// what was begun is removed.
func TestFileOnAFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.disk = newDisk(t, w.home, 24<<10)
	w.launch()
	w.eventually("an answer", func() bool { return strings.Contains(w.chats("remind me tomorrow at 6pm to buy milk"), "buy milk") })
	out := w.chats("/attach "+sparse(t, 40<<20), "look at this")
	contains(t, "a file that does not fit", out, "disk is full", "free some space")
	contains(t, "what follows", w.chats("what reminders do I have?"), "buy milk")
	out = w.chats("/attach "+sparse(t, 100<<10), "remember that Rex is a dog")
	contains(t, "a file that fits", out, "Rex")
	var kept []string
	_ = filepath.WalkDir(filepath.Join(w.disk.root, "blobs"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			kept = append(kept, d.Name())
		}
		return nil
	})
	if len(kept) != 1 || len(kept[0]) != 64 {
		t.Errorf("in the home are %q", kept)
	}
}

// peakMemory is the most memory that a process had, in bytes.
func peakMemory(t *testing.T, pid int) (kib int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("peak memory is read from /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// The largest file goes through the kernel and back without being held in memory. One
// that has a byte more is refused.
func TestLargestFile(t *testing.T) {
	t.Parallel()
	const most = 50 << 20
	w := newWorld(t, withModel)
	w.model.Handle(echo)
	w.start()
	w.chats("/attach "+sparse(t, 1<<20), "small")
	channel := w.extensionProcess("cli_channel")
	before := []int64{peakMemory(t, w.kernel.pid()), peakMemory(t, channel.pid)}
	large, back := sparse(t, most), filepath.Join(t.TempDir(), "back")
	sum := sha256.New()
	_, _ = sum.Write(make([]byte, most))
	out := w.chats("/attach "+large, "large", fmt.Sprintf("/save %x %s", sum.Sum(nil)[:6], back))
	if info, err := os.Stat(back); err != nil || info.Size() != most {
		t.Fatalf("the file that is saved again: %v, %v:\n%s", info, err, out)
	}
	after := []int64{peakMemory(t, w.kernel.pid()), peakMemory(t, channel.pid)}
	for i, what := range []string{"the kernel", "the channel"} {
		if grown := after[i] - before[i]; grown > most/2 && !raceDetector {
			t.Errorf("%s takes %d MiB more", what, grown>>20)
		}
	}
	out = w.chats("/attach "+sparse(t, most+1), "too large")
	contains(t, "one byte more", out, "50 MiB")
	if n := w.storedFiles(); n != 2 {
		t.Errorf("%d files are stored, want 2", n)
	}
}
