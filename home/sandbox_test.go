package home

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// house is a home with what is around it.
func house(t *testing.T) (Options, string) {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "sbp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	home, err := config.OpenHomeAt(filepath.Join(base, "user", "share", "sb"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": filepath.Join(base, "user"), "API": "http://127.0.0.1:8081/x",
		"HTTPS_PROXY": "http://proxy:3128"}
	return Options{Home: home, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, base
}

func dropped(t *testing.T, o Options, id, more string) *member {
	t.Helper()
	dir := filepath.Join(o.Home.Extensions(), id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := manifests.Parse(filepath.Join(dir, "manifest.yaml"),
		[]byte("api: 1\nid: "+id+"\nname: X\nversion: 1.0.0\nrun: {command: ./x}\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return &member{manifest: m, config: m.Config, env: o.Env}
}

func policyIn(o Options, m *member) *sandbox.Policy {
	s := &supervisor.Spec{Command: []string{m.manifest.Executable()}, Dir: m.manifest.Dir()}
	(&files{options: o}).confine(&plan{config: config.Default()}, m, s)
	return s.Policy
}

func TestPolicyIsWhatTheManifestDeclares(t *testing.T) {
	t.Parallel()
	o, base := house(t)
	m := dropped(t, o, "box", "permissions: {network: [api.example.org, 'h:8443', $config.url, $env.API, $env.NONE], "+
		"listen: [9000], files: [~/Notes, {path: out, write: true}]}\nconfig: {url: 'http://x.example.org/v1'}")
	if err := os.MkdirAll(filepath.Join(base, "user", "Notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := policyIn(o, m)
	covers := func(paths []string, path string) bool {
		return slices.ContainsFunc(paths, func(dir string) bool { return within(path, dir) })
	}
	home := o.Home.Path()
	for _, path := range []string{home + "/extensions/box/lib", "/usr/bin/python3"} {
		if !covers(p.Execute, path) || covers(p.Write, path) {
			t.Errorf("%s is not to be run, or to be written", path)
		}
	}
	for _, path := range []string{base + "/user/Notes/a", "/etc/resolv.conf"} {
		if !covers(p.Read, path) || covers(p.Write, path) {
			t.Errorf("%s is not to be read, or to be written", path)
		}
	}
	for _, path := range []string{home + "/data/box/x", home + "/extensions/box/out/x"} {
		if !covers(p.Write, path) {
			t.Errorf("%s is not to be written", path)
		}
	}
	for _, path := range []string{
		o.Home.Database(), o.Home.Secrets(), o.Home.Config(), home + "/control.token", home + "/logs/kernel.log",
		home + "/data/other/x",
		home + "/extensions/other/x", o.Home.RuntimeDir() + "/kernel.sock", base + "/user/.ssh/id", "/tmp/x", "/root/x",
		"/home/x",
	} {
		for kind, paths := range map[string][]string{"read": p.Read, "run": p.Execute, "written": p.Write} {
			if covers(paths, path) {
				t.Errorf("%s may be %s", path, kind)
			}
		}
	}
	slices.Sort(p.Network.Connect)
	if want := []uint16{53, 80, 443, 3128, 8081, 8443}; !slices.Equal(p.Network.Connect, want) || p.Network.Any {
		t.Errorf("it may connect to %v (any: %v), want %v", p.Network.Connect, p.Network.Any, want)
	}
	if !slices.Equal(p.Network.Listen, []uint16{9000}) {
		t.Errorf("it may listen on %v", p.Network.Listen)
	}
}

func TestPolicyWithoutDeclarationsHasNoNetwork(t *testing.T) {
	t.Parallel()
	o, _ := house(t)
	if p := policyIn(o, dropped(t, o, "box", "")); p.Network != nil {
		t.Errorf("it may use %+v", p.Network)
	}
	if p := policyIn(o, dropped(t, o, "far", "permissions: {network: ['*']}")); !p.Network.Any {
		t.Errorf("it may use %+v only", p.Network)
	}
}

func TestFilesOfTheKernelAndOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	o, base := house(t)
	if err := os.Symlink(o.Home.Path(), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for path, refused := range map[string]bool{
		"out": false, ".": false, "~/Notes": false, o.Home.Path() + "/data/box/sub": false, "/usr/share": false,
		"~": true, "/": true, "..": true, "../other": true, "../../data/other": true, "../../secrets.env": true,
		o.Home.Path():     true,
		o.Home.Database(): true, "~/share": true, filepath.Join(base, "link"): true,
		filepath.Join(base, "link", "switchboard.db"): true,
		o.Home.RuntimeDir():                           true,
	} {
		m := dropped(t, o, "box", "permissions: {files: ['"+path+"']}")
		err := refuseFor(o, config.Default())(m.manifest)
		if (err != nil) != refused {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the refusal does not name %s: %v", path, err)
		}
	}
}

// A further cell's extensions have nothing of the node or of its other cells, and the node's
// own have nothing of the further ones.
func TestFilesOfOtherCellsAreRefused(t *testing.T) {
	t.Parallel()
	o, base := house(t)
	node := o.Home
	if err := os.WriteFile(node.ClusterFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	far := strings.Repeat("far", 12) // whose sockets are not in its home
	for _, cell := range []string{"one", "two", far} {
		h, err := config.OpenHomeAt(node.Cell(cell))
		if err != nil {
			t.Fatal(err)
		}
		if cell == far {
			t.Cleanup(func() { _ = os.RemoveAll(h.RuntimeDir()) })
			far = h.RuntimeDir()
		}
		if h.Node() != node.Path() {
			t.Errorf("the node of %s is %q", h.Path(), h.Node())
		}
	}
	for _, in := range []string{node.Cell("one"), node.Path()} {
		home, err := config.OpenHomeAt(in)
		if err != nil {
			t.Fatal(err)
		}
		o.Home = home
		for path, refused := range map[string]bool{
			"~/Notes": false, "out": false, home.Path() + "/data/box/sub": false, base: true, far: true,
			node.ClusterKey(): true, node.Path(): true, node.Secrets(): true, node.Cell(""): true, node.Cell("two") + "/blobs": true,
			node.Cell("three"): true, node.Cell("two.deleted-1"): true, node.RuntimeDir(): true, node.Cell("one") + "/control.token": true,
		} {
			m := dropped(t, o, "box", "permissions: {files: ['"+path+"']}")
			if err := refuseFor(o, config.Default())(m.manifest); (err != nil) != refused {
				t.Errorf("in %s, %s: %v", in, path, err)
			}
		}
		if f := (&files{options: o}); !f.private(node.Cell("two")) || !f.private(node.ClusterKey()) || !f.private(far) {
			t.Errorf("in %s, an MCP server may use what is of others", in)
		}
	}
}

// An extension that can write its manifest, or the directory with it, can grant
// itself what it likes; one that can write its program stays taken over.
func TestManifestsCannotBeWrittenByTheirExtensions(t *testing.T) {
	t.Parallel()
	o, base := house(t)
	if err := os.MkdirAll(o.Home.Extensions()+"/box/bin", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(o.Home.Extensions()+"/box", filepath.Join(base, "user", "link")); err != nil {
		t.Fatal(err)
	}
	for path, refused := range map[string]bool{
		"out": false, "sub/dir": false, "manifest.yaml": true, "sub/../manifest.yaml": true, "~": true, ".": true,
		"sub/..": true, "..": true,
		"bin": true, "bin/x": true, "bin/y": false, "~/link": true, "~/link/out": false, o.Home.Path() + "/data/box": false,
	} {
		m := dropped(t, o, "box", "permissions:\n  files:\n    - {path: '"+path+"', write: true}")
		m.manifest.Run.Command = "./bin/x"
		err := refuseFor(o, config.Default())(m.manifest)
		if (err != nil) != refused {
			t.Errorf("writing %s: %v", path, err)
		}
		if refused && !strings.Contains(err.Error(), "manifest.yaml:8:7: permissions.files[0]: ") {
			t.Errorf("the refusal does not say where: %v", err)
		}
		m = dropped(t, o, "box", "permissions: {files: [{path: '"+path+"'}]}")
		if err := refuseFor(o, config.Default())(m.manifest); err != nil && path != "~" && path != ".." {
			t.Errorf("reading %s: %v", path, err)
		}
	}
	m := dropped(t, o, "box", "permissions: {files: [{path: ., write: true}]}")
	if err := refuseFor(o, config.Default())(m.manifest); err == nil ||
		!strings.Contains(err.Error(), "It can always write to data/box in the home") {
		t.Errorf("the refusal names no way out: %v", err)
	}
}

func TestRequiredSandboxKeepsDroppedInExtensionsOut(t *testing.T) {
	t.Parallel()
	o, _ := house(t)
	m := dropped(t, o, "box", "").manifest
	old, full := support.System{}, support.System{Landlock: 6, Seccomp: true}
	for _, tt := range []struct {
		setting string
		support support.System
		refused bool
	}{
		{config.SandboxRequired, old, true}, {config.SandboxRequired, support.System{Landlock: 6}, true},
		{config.SandboxRequired, support.System{Seccomp: true}, true},
		{config.SandboxRequired, full, false}, {config.SandboxRequired, support.System{Landlock: 1, Seccomp: true}, false},
		{config.SandboxAuto, old, false}, {config.SandboxOff, old, false},
	} {
		c := config.Default()
		c.Sandbox = tt.setting
		err := required(c, m, tt.support)
		if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "config.yaml requires a sandbox") {
			t.Errorf("%s with %s: %v", tt.setting, tt.support, err)
		}
	}
	c := config.Default()
	c.Sandbox = config.SandboxRequired
	if err := required(c, &manifests.Manifest{ID: "telegram_channel", Run: manifests.Run{Builtin: "telegram"}},
		old); err != nil {
		t.Errorf("a built-in: %v", err)
	}
}
