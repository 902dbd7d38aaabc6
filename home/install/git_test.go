package install

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repository makes a git repository with two versions, the first one tagged v1.
func repository(t *testing.T) (dir string, run func(...string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git isn't installed")
	}
	dir = extension("jotter", "1.0.0").dir(t)
	run = func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Jane", "-c", "user.email=j@example.org",
			"-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet")
	run("add", ".")
	run("commit", "--quiet", "-m", "one")
	run("tag", "-a", "-m", "one", "v1")
	write(t, dir, "manifest.yaml", manifest("jotter", "2.0.0"))
	run("commit", "--quiet", "-am", "two")
	return dir, run
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode(name)); err != nil {
		t.Fatal(err)
	}
}

func TestGit(t *testing.T) {
	t.Parallel()
	dir, run := repository(t)
	first := run("rev-parse", "v1^{commit}")
	for source, want := range map[string]string{
		"file://" + dir:              "2.0.0",
		"git+file://" + dir + "@v1":  "1.0.0",
		dir + "@v1":                  "1.0.0",
		dir + "@main":                "2.0.0",
		dir + "@" + first:            "1.0.0",
		dir + "@v9":                  "couldn't find remote ref v9",
		"file://" + dir + "/nowhere": "does not appear to be a git repository",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			s, err := put(t, open(t, h), source, "")
			if err != nil {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				nothingLeft(t, h)
				return
			}
			nothingLeft(t, h, "jotter")
			if s.Record.Version != want || len(s.Record.Commit) != 40 || want == "1.0.0" && s.Record.Commit != first {
				t.Errorf("installed %+v, want %s", s.Record, want)
			}
			if _, err := os.Lstat(filepath.Join(h.Extensions(), "jotter", ".git")); err == nil {
				t.Error("the repository was installed with the files")
			}
		})
	}
}

// TestGitRunsNothing checks that neither hooks nor filters of the repository or the user
// run, that submodules are named, and that links are checked as in an archive.
func TestGitRunsNothing(t *testing.T) {
	t.Parallel()
	dir, run := repository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	write(t, dir, ".gitattributes", "* filter=evil\n")
	run("add", ".")
	run("commit", "--quiet", "-m", "attributes")
	hooks := t.TempDir()
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-merge"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	user := file(t, "gitconfig", []byte("[core]\n\thooksPath = "+hooks+"\n[filter \"evil\"]\n\tsmudge = touch "+ran+"\n"))
	h := newHome(t)
	i := open(t, h, func(o *Options) {
		o.Environ = append(o.Environ, "GIT_CONFIG_GLOBAL="+user, "GIT_DIR=/nowhere", "GIT_ALLOW_PROTOCOL=ext")
	})
	if _, err := put(t, i, "file://"+dir, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a hook or a filter ran")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "evil")); err != nil {
		t.Fatal(err)
	}
	run("add", "evil")
	run("commit", "--quiet", "-m", "link")
	if _, err := put(t, i, "file://"+dir, ""); err == nil || !strings.Contains(err.Error(), "outside of the extension") {
		t.Errorf("error %v", err)
	}
	run("rm", "--quiet", "evil")
	run("submodule", "--quiet", "add", dir, "inner")
	run("commit", "--quiet", "-m", "submodule")
	if _, err := put(t, i, "file://"+dir, ""); err == nil || !strings.Contains(err.Error(), "has submodules") {
		t.Errorf("error %v", err)
	}
	nothingLeft(t, h, "jotter")
}

// TestGitThatHangs checks that a server that accepts and says nothing is given up.
func TestGitThatHangs(t *testing.T) {
	t.Parallel()
	repository(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	h := newHome(t)
	i := open(t, h, func(o *Options) { o.Timeout = time.Second })
	_, err = put(t, i, "http://"+server.Addr().String()+"/jane/jotter", "")
	if err == nil || !strings.Contains(err.Error(), "not finished after 1s") {
		t.Errorf("error %v", err)
	}
	nothingLeft(t, h)
	if _, err = put(t, open(t, newHome(t)), "http://example.org/jane/jotter", ""); err == nil ||
		!strings.Contains(err.Error(), "is not encrypted") {
		t.Errorf("error %v", err)
	}
}

func TestGitTooLarge(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t)
	h := newHome(t)
	i := open(t, h, func(o *Options) { o.Limits.Unpacked = 100 })
	if _, err := put(t, i, "file://"+dir, ""); err == nil || !strings.Contains(err.Error(), "more than 100 B unpacked") {
		t.Errorf("error %v", err)
	}
	i.options.Limits.Download = 1
	done := make(chan struct{})
	var cause error
	g := &git{i: i, dir: dir}
	g.watch(done, func(err error) { cause = err })
	if cause == nil || !strings.Contains(cause.Error(), "larger than 1 B") || errors.Is(cause, os.ErrNotExist) {
		t.Errorf("cause %v", cause)
	}
}
