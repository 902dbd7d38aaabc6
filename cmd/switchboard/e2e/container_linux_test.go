package e2e

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// releaseEnv names the program of a release, which is linked statically. .ci/run sets it.
const releaseEnv = "SWITCHBOARD_RELEASE"

// The program of a release runs as the Dockerfile has it: with no file but the certificates
// of authorities, as another user who owns the volume only, and as process 1.
func TestReleaseRunsAsInAContainer(t *testing.T) {
	t.Parallel()
	program := os.Getenv(releaseEnv)
	if program == "" {
		t.Skip(releaseEnv + " names no program")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	w := newWorld(t)
	model := openaitest.New(t)
	address, err := url.Parse(model.URL)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(address))
	t.Cleanup(secure.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})

	recipe, err := os.ReadFile(filepath.Join("..", "..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	said := func(pattern string) []string {
		found := regexp.MustCompile("(?m)^" + pattern + "$").FindStringSubmatch(string(recipe))
		if found == nil {
			t.Fatalf("the Dockerfile has no line %s", pattern)
		}
		return found[1:]
	}
	user, volume := said(`USER ((\d+):\d+)`), said(`VOLUME (\S+)`)[0]
	health := regexp.MustCompile(`"[^"]*"`).FindAllString(said(`HEALTHCHECK .*CMD (\[.*\])`)[0], -1)
	uid, _ := strconv.Atoi(user[1])
	root := t.TempDir()
	for dir, mode := range map[string]os.FileMode{
		".": 0o755, "proc": 0o755, "dev": 0o755, "tmp": os.ModeSticky | 0o777, "etc/ssl/certs": 0o755, volume: 0o700,
	} {
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(root, volume), uid, uid); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"), authority, 0o644); err != nil {
		t.Fatal(err)
	}
	copyFile(w, program, filepath.Join(root, "switchboard"))
	if err := os.Chmod(filepath.Join(root, "switchboard"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(strings.Fields(said(`ENV (.*)`)[0]), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"TZ=Asia/Tokyo", "OPENAI_API_KEY="+openaiKey, "OPENAI_BASE_URL="+secure.URL+"/v1", "OPENAI_MODEL=test-model")

	// What a container runtime does; the rest is the Dockerfile's.
	const container = `set -e
		mount -t proc proc "$1/proc"
		for f in null zero urandom; do touch "$1/dev/$f"; mount --bind "/dev/$f" "$1/dev/$f"; done
		exec chroot --userspec="$2" "$1" /switchboard run`
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "sh", "-c", container, "sh", root, user[0])
	cmd.Env, cmd.WaitDelay = env, time.Second
	k := &kernel{cmd: cmd, output: &buffer{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = k.output, k.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(k.ended)
	}()
	t.Cleanup(func() {
		for _, p := range descendants(t, k.pid()) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // process 1 of the container takes all others with it
		}
		<-k.ended
		if t.Failed() {
			t.Logf("the container wrote:\n%s", k.output)
		}
	})
	within := func(input string, args ...string) (string, error) {
		inside := descendants(t, k.pid())
		if len(inside) == 0 {
			return "", errors.New("the container doesn't run")
		}
		enter := []string{"--target", strconv.Itoa(inside[0].pid), "--mount", "--pid", "--root", "--wd",
			"--setuid", user[1], "--setgid", user[1]}
		c := exec.Command("nsenter", append(enter, args...)...)
		c.Env, c.Stdin = env, strings.NewReader(input)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	check := make([]string, len(health))
	for i, word := range health {
		check[i] = strings.Trim(word, `"`)
	}
	var status string
	w.eventually("a healthy container", func() bool {
		out, err := within("", check...)
		status = out
		return err == nil
	})
	if !strings.Contains(status, "timezone  Asia/Tokyo") || !strings.Contains(status, "pid 1,") {
		t.Errorf("its status is:\n%s", status)
	}
	model.Queue(openaitest.Answer{Text: "Over TLS."})
	if out, err := within("hello\n", "/switchboard", "chat"); err != nil || !strings.Contains(out, "Over TLS.") {
		t.Errorf("it answers %q, %v", out, err)
	}
	model.Queue(openaitest.Answer{Text: "OK"}) // doctor asks from there, too
	if out, err := within("", "/switchboard", "doctor"); err != nil {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}
