package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// disk is a small file system in a mount namespace of its own.
type disk struct {
	t      *testing.T
	holder *exec.Cmd // keeps the namespace
	root   string    // the file system, from outside
}

// newDisk mounts a file system of so many KiB on a directory.
func newDisk(t *testing.T, dir string, kib int) *disk {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a small file system needs Linux")
	}
	script := fmt.Sprintf(`mount -t tmpfs -o size=%dk,mode=0700 small "$0" && echo mounted && cat`, kib)
	d := &disk{t: t, holder: exec.Command("unshare", "-rm", "sh", "-c", script, dir)}
	stdin, err := d.holder.StdinPipe() // it ends when that is closed, also by the death of the test
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := d.holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.holder.Start(); err != nil {
		t.Skipf("a small file system needs unshare: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = d.holder.Wait()
	})
	if said := make([]byte, len("mounted")); fmt.Sprint(io.ReadFull(stdout, said)) != "7 <nil>" {
		t.Skip("a small file system needs user namespaces, which this system refuses")
	}
	d.root = filepath.Join("/proc", strconv.Itoa(d.holder.Process.Pid), "root", dir)
	return d
}

// on runs a command where the disk is.
func (d *disk) on(cmd *exec.Cmd) *exec.Cmd {
	pid := strconv.Itoa(d.holder.Process.Pid)
	l := exec.Command("nsenter", append([]string{"-t", pid, "-U", "-m", "--preserve-credentials", cmd.Path},
		cmd.Args[1:]...)...)
	l.Env = cmd.Env
	return l
}

// fill leaves so many KiB.
func (d *disk) fill(left int) {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.root, "fill"))
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = f.Write(make([]byte, 64<<20))
	if err == nil {
		d.t.Fatal("the disk is larger than it was to be")
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(max(info.Size()-int64(left)<<10, 0))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	_ = f.Close()
}

// free frees it.
func (d *disk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.root, "fill")); err != nil {
		d.t.Fatal(err)
	}
}

// A kernel that starts on a full disk says so, and goes on when there is room: with
// a home that is new, whatever it still had room for, and after a kill.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, left := range []int{0, 8, 60, 140, 180, 220, 260, 300} {
		t.Run(fmt.Sprintf("%d KiB left", left), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strangers())
			w.disk = newDisk(t, w.home, 20<<10)
			waits := func() {
				t.Helper()
				w.launch()
				w.eventually("the kernel to say that the disk is full", func() bool {
					return strings.Contains(w.kernel.output.String(), "is full. Free some space")
				})
				w.disk.free()
			}
			w.disk.fill(left)
			waits()
			w.telegram.Say(anna, "hello")
			w.told(anna, 1)
			if left > 0 {
				return
			}
			w.crash()
			w.disk.fill(0)
			waits()
			w.telegram.Say(anna, "hello again")
			w.told(anna, 2)
			if out := w.kernel.output.String(); strings.Count(out, "is full") != 1 {
				t.Errorf("it says more than once that the disk is full:\n%s", out)
			}
		})
	}
}
