package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Every extension may use these parts of the system. All of /etc, because names,
// zones and certificates change there while it runs, by files that replace others.
var (
	systemPrograms = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/current-system"}
	systemFiles    = []string{
		"/etc", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
		"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/var/lib/ca-certificates",
		"/dev/zero", "/dev/random", "/dev/urandom",
	}
	systemWritable = []string{"/dev/null", "/dev/full"}
)

// maxOpenFiles bounds the descriptors of each process of an extension.
const maxOpenFiles = 8192

// portDNS is needed by an extension that uses the network, besides its own ports.
const portDNS = 53

// directories are those of an extension.
type directories struct {
	data string // for its files
	run  string // for its sockets
	temp string // below data
}

// directories of an extension. A local channel has the home's own for its socket,
// where programs of the user look for it.
func (f *files) directories(m *member) directories {
	id := m.manifest.ID
	d := directories{data: filepath.Join(f.options.Home.Path(), "data", id)}
	d.temp = filepath.Join(d.data, "tmp")
	if d.run = f.options.Home.RuntimeDir(); m.manifest.Provides.Channel == nil || !m.manifest.Provides.Channel.Local {
		sum := sha256.Sum256([]byte(id))
		d.run = filepath.Join(d.run, "s", hex.EncodeToString(sum[:4]))
	}
	return d
}

func (d directories) make() error {
	if err := errors.Join(os.MkdirAll(d.data, 0o700), os.MkdirAll(d.run, 0o700)); err != nil {
		return fmt.Errorf("create the directories of an extension: %w", err)
	}
	return nil
}

// confine limits an extension to what its manifest declares.
func (f *files) confine(p *plan, m *member, s *supervisor.Spec) {
	dirs := f.directories(m)
	s.DataDir = dirs.data
	if m.manifest.Run.Builtin == "" {
		s.RunDir = dirs.run
		if err := os.MkdirAll(dirs.temp, 0o700); err == nil && !slices.ContainsFunc(m.manifest.Run.Env, func(e string) bool { return strings.HasPrefix(e, "TMPDIR") }) {
			s.Env = append(s.Env, "TMPDIR="+dirs.temp)
		}
	}
	if !p.config.Sandboxed(m.manifest.ID) {
		return
	}
	_ = dirs.make() // for paths without symbolic links; a failure is reported when it starts
	s.Policy = policy(m, dirs, f.options, s)
}

// policy is the part of the machine that an extension may use.
func policy(m *member, dirs directories, o Options, s *supervisor.Spec) *sandbox.Policy {
	p := &sandbox.Policy{
		Execute: slices.Clone(systemPrograms), Read: slices.Clone(systemFiles), Write: append(slices.Clone(systemWritable), dirs.data, dirs.run),
		Sockets: []string{o.Home.RuntimeDir(), dirs.data}, OpenFiles: maxOpenFiles, FileSize: uint64(max(0, s.Disk)),
	}
	if m.manifest.Run.Builtin == "" {
		p.Background, p.KeepModes = true, true
		p.Execute = append(p.Execute, m.manifest.Dir(), executable(s.Command, s.Dir))
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if value, ok := o.Env(name); ok && value != "" {
			p.Read = append(p.Read, filepath.SplitList(value)...)
		}
	}
	for _, f := range m.manifest.Permissions.Files {
		path := pathOf(f.Path, m.manifest, o)
		if f.Write {
			p.Write = append(p.Write, path)
		} else {
			p.Read = append(p.Read, path)
		}
	}
	p.Execute, p.Read, p.Write = unlinked(p.Execute), unlinked(p.Read), unlinked(p.Write)
	p.Network = network(m, o)
	return p
}

// network is how the extension may use the network; nil: not at all.
func network(m *member, o Options) *sandbox.Network {
	if len(m.manifest.Permissions.Network) == 0 && len(m.manifest.Permissions.Listen) == 0 {
		return nil
	}
	n := &sandbox.Network{}
	n.Connect, n.Any = m.manifest.Destinations(m.config, o.Env)
	if len(m.manifest.Permissions.Network) > 0 {
		n.Connect = append(n.Connect, portDNS)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			if proxy, ok := o.Env(name); ok && proxy != "" && manifests.PortOf(proxy) != 0 {
				n.Connect = append(n.Connect, manifests.PortOf(proxy))
			}
		}
	}
	for _, port := range m.manifest.Permissions.Listen {
		n.Listen = append(n.Listen, uint16(port))
	}
	return n
}

// pathOf is a path of permissions.files.
func pathOf(path string, m *manifests.Manifest, o Options) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		home, _ := o.Env("HOME")
		return filepath.Join("/", home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(m.Dir(), path)
}

// permitted are the files that the manifest asks for, for the owner.
func (f *files) permitted(m *manifests.Manifest) (all []string) {
	for _, file := range m.Permissions.Files {
		path := pathOf(file.Path, m, f.options)
		if file.Write {
			path += " (write)"
		}
		all = append(all, path)
	}
	return all
}

// unlinked are the paths without symbolic links, which could lead elsewhere later.
func unlinked(paths []string) (out []string) {
	for _, p := range paths {
		if p = resolved(p); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// resolved is a path without symbolic links as far as it exists.
func resolved(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// refuseFor refuses manifests that ask for files of the kernel or of another
// extension.
func refuseFor(o Options, c *config.Config) func(*manifests.Manifest) error {
	return func(m *manifests.Manifest) error {
		if o.Home == nil { // to verify an extension needs none
			return nil
		}
		own := []string{m.Dir(), filepath.Join(o.Home.Path(), "data", m.ID)}
		if m.Run.Builtin != "" {
			own = own[1:]
		}
		for i, f := range m.Permissions.Files {
			refused := func(format string, args ...any) error {
				return manifests.Problems{m.Locate(strictyaml.Path("permissions", "files", i), format, args...)}
			}
			path := unlinked([]string{pathOf(f.Path, m, o)})[0]
			if f.Write && m.Run.Builtin == "" && slices.ContainsFunc(unlinked(installed(m)), func(file string) bool { return within(file, path) }) {
				return refused("asks to write %s, where its manifest or its program is: it could grant itself what it likes. "+
					"Its data directory (data/%s in the home) it may write anyway; or name a directory below the manifest's that has neither", f.Path, m.ID)
			}
			if slices.ContainsFunc(unlinked(own), func(dir string) bool { return within(path, dir) }) {
				continue
			}
			for _, kept := range unlinked([]string{o.Home.Path(), o.Home.RuntimeDir()}) {
				if within(path, kept) || within(kept, path) {
					return refused("asks for %s, where the kernel keeps what no extension may see (%s): name what it needs more closely", f.Path, kept)
				}
			}
		}
		return required(c, m, support.Detect())
	}
}

// installed are the manifest of an extension and the program that it starts.
func installed(m *manifests.Manifest) []string {
	files := []string{m.File}
	if program := m.Executable(); filepath.IsAbs(program) {
		files = append(files, program)
	}
	return files
}

// required refuses a dropped-in extension where the system cannot limit its use of
// files and of the network, if the configuration requires that.
func required(c *config.Config, m *manifests.Manifest, system support.System) error {
	if m.Run.Builtin != "" || c.Sandbox != config.SandboxRequired || !c.Sandboxed(m.ID) || system.Landlock > 0 && system.Seccomp {
		return nil
	}
	return fmt.Errorf("sandbox is required by config.yaml, and %s", system)
}

// within says whether a path is a directory or something below it.
func within(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, "../")
}
