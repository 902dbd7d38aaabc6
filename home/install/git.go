package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

// fetchGit fetches one commit into a repository of its own, without a work tree: no file is
// checked out by git, so no filter and no hook of the repository runs.
func (i *Installer) fetchGit(ctx context.Context, dir string, from Source, unpacked string) (commit string, err error) {
	u, err := url.Parse(from.Location)
	http := err == nil && u.Scheme == "http"
	if http {
		if err := checkTransport(u, i.options.Insecure); err != nil {
			return "", err
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return "", words.Errorf("git isn't installed: install it, or give an archive")
	}
	repository := filepath.Join(dir, "git")
	g := &git{i: i, dir: repository, http: http}
	if _, err := g.run(ctx, "init", "--quiet", "--bare", "--template=", "--", repository); err != nil {
		return "", err
	}
	ref := from.Ref
	if ref == "" {
		ref = "HEAD"
	}
	// What is fetched by the name of a branch or a tag, or by a whole commit id.
	_, err = g.run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
		"--no-auto-gc", "--end-of-options", from.Location, "+"+ref+":refs/install/it")
	if err != nil {
		return "", err
	}
	out, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "refs/install/it^{commit}")
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(out)
	archive := filepath.Join(dir, "tar")
	if _, err := g.run(ctx, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return "", err
	}
	if err := i.unpackPlain(ctx, archive, unpacked); err != nil {
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(unpacked, ".gitmodules")); err == nil {
		return "", words.Errorf("the repository has submodules, which aren't fetched: give an archive with all files")
	}
	return commit, errors.Join(removeAll(repository), os.Remove(archive))
}

// unpackPlain unpacks a tar archive of git.
func (i *Installer) unpackPlain(ctx context.Context, archive, unpacked string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := newTree(unpacked, i.options.Limits, 0)
	if err != nil {
		return err
	}
	if err := unpackTar(ctx, f, t); err != nil {
		_ = t.root.Close()
		return err
	}
	return t.finish()
}

// git runs the git of the system.
type git struct {
	i    *Installer
	dir  string
	http bool // it may use http
}

// config is what git does here, whatever the user's configuration says.
var gitConfig = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.autocrlf=false",
	"submodule.recurse=false", "fetch.fsckObjects=true", "transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false",
	"http.followRedirects=initial", "credential.interactive=false", "init.defaultBranch=main", "tar.umask=0022",
	"fetch.recurseSubmodules=false", "log.showSignature=false", "safe.bareRepository=all",
}

const gitOutput = 1 << 20

// run runs a command of git and returns its output. It ends it, and all that it started,
// when the context ends or the repository grows too large.
func (g *git) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := []string{"--git-dir=" + g.dir}
	stall := fmt.Sprintf("http.lowSpeedTime=%d", max(1, int(g.i.options.Stall.Seconds())))
	for _, c := range append(slices.Clone(gitConfig), stall, "http.lowSpeedLimit=1") {
		all = append(all, "-c", c)
	}
	if args[0] == "init" {
		all = all[1:]
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Env = gitEnv(g.i.options.Environ, g.http)
	if args[0] != "fetch" { // which may need the user's credentials and addresses
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	}
	cmd.Dir = filepath.Dir(g.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children, such as ssh, end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, problems := &bounded{left: gitOutput}, &bounded{left: gitOutput}
	cmd.Stdout, cmd.Stderr = out, problems
	watching := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(watching)
		g.watch(done, cancel)
	}()
	err := cmd.Run()
	close(done)
	<-watching
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return "", cause
	}
	if err != nil {
		if said := gist(problems.String()); said != "" {
			err = errors.New(said)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.String(), nil
}

// watch ends a command when the repository is too large.
func (g *git) watch(done <-chan struct{}, cancel context.CancelCauseFunc) {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-done:
			return
		case <-look.C:
			if limit := g.i.options.Limits.Download; sizeOf(g.dir) > limit {
				cancel(tooLarge(limit))
				return
			}
		}
	}
}

func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil // files come and go while git runs
	})
	return n
}

// gitEnv returns the environment of git: the user's, without what would lead it to another
// repository, and so that it asks nothing.
func gitEnv(environ []string, http bool) (env []string) {
	ssh := "ssh"
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "GIT_SSH_COMMAND":
			ssh = value
		case strings.HasPrefix(name, "GIT_SSL_"), name == "GIT_CONFIG_GLOBAL", name == "GIT_CONFIG_SYSTEM",
			name == "GIT_CONFIG_NOSYSTEM", !strings.HasPrefix(name, "GIT_") && name != "LC_ALL" && name != "LANGUAGE":
			env = append(env, e)
		}
	}
	protocols := "https:ssh:file"
	if http {
		protocols = "http:" + protocols
	}
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never",
		"GIT_SSH_COMMAND="+ssh+" -oBatchMode=yes -oConnectTimeout=30", "GIT_ALLOW_PROTOCOL="+protocols,
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C")
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	_, _ = b.Buffer.Write(p[:n])
	return len(p), nil
}

// gist returns the lines of git's output that say what is wrong.
func gist(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"fatal: ", "error: ", "ERROR: "} {
			if rest, is := strings.CutPrefix(line, prefix); is && len(said) < 3 && !slices.Contains(said, rest) {
				said = append(said, rest)
			}
		}
	}
	if len(said) == 0 {
		return strings.TrimSpace(strings.SplitN(strings.TrimSpace(output), "\n", 2)[0])
	}
	return strings.Join(said, "; ")
}
