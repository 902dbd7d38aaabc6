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

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Every extension may use these parts of the system. All of /etc, because files with
// host names, zones and certificates are replaced there at run time.
var (
	systemPrograms = []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/current-system",
	}
	systemFiles = []string{
		"/etc", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
		"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/var/lib/ca-certificates",
		"/dev/zero", "/dev/random", "/dev/urandom",
	}
	systemWritable = []string{"/dev/null", "/dev/full"}
)

// maxOpenFiles bounds the descriptors of each process of an extension.
const maxOpenFiles = 8192

// portDNS is open to each extension that uses the network.
const portDNS = 53

// directories of an extension.
type directories struct {
	data string // for its files
	run  string // for its sockets
	temp string // in data
}

// directories returns the directories of an extension. A local channel has its socket
// in the runtime directory of the home, where the user's programs look for it.
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

// confine limits an extension to the permissions in its manifest.
func (f *files) confine(p *plan, m *member, s *supervisor.Spec) {
	dirs := f.directories(m)
	disk := max(0, int64(m.manifest.Run.Disk))
	s.Limits.Rooms = []sandbox.Room{{ID: m.manifest.ID, Dir: dirs.data, Bytes: disk}}
	if m.manifest.Run.Builtin == "" {
		s.Limits.Rooms = append(s.Limits.Rooms, sandbox.Room{ID: m.manifest.ID, Dir: dirs.run, Bytes: disk})
		isTemp := func(e string) bool { return strings.HasPrefix(e, "TMPDIR") }
		if err := os.MkdirAll(dirs.temp, 0o700); err == nil && !slices.ContainsFunc(m.manifest.Run.Env, isTemp) {
			s.Env = append(s.Env, "TMPDIR="+dirs.temp)
		}
	}
	if !p.config.Sandboxed(m.manifest.ID) {
		return
	}
	_ = dirs.make() // so that links in their paths can be resolved; the start reports a failure
	s.Policy = policy(m, dirs, f.options, s, p.resolved)
}

// policy returns the part of the machine that an extension may use.
func policy(
	m *member, dirs directories, o Options, s *supervisor.Spec, known resolved,
) *sandbox.Policy {
	p := &sandbox.Policy{
		Execute: slices.Clone(systemPrograms), Read: slices.Clone(systemFiles),
		Write:     append(slices.Clone(systemWritable), dirs.data, dirs.run),
		Sockets:   []string{o.Home.RuntimeDir(), dirs.data},
		OpenFiles: maxOpenFiles, FileSize: uint64(max(0, m.manifest.Run.Disk)),
	}
	if m.manifest.Run.Builtin == "" {
		p.Background, p.KeepModes = true, true
		p.Execute = append(p.Execute, m.manifest.Dir(), executable(s.Command, s.Dir))
	}
	if m.manifest.Run.Builtin != "" && len(s.Command) > 0 { // it reads documents in processes of its own program
		p.Execute = append(p.Execute, executable(s.Command, s.Dir))
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if value, ok := o.Env(name); ok && value != "" {
			p.Read = append(p.Read, filepath.SplitList(value)...)
		}
	}
	for _, f := range m.manifest.Permissions.Files {
		configured, _ := m.manifest.Configured(f.Path, m.config).(string)
		if configured == "" {
			continue
		}
		path := pathOf(configured, m.manifest, o)
		if f.Write {
			p.Write = append(p.Write, path)
		} else {
			p.Read = append(p.Read, path)
		}
	}
	p.Execute, p.Read, p.Write = known.all(p.Execute), known.all(p.Read), known.all(p.Write)
	p.Network = network(m, o)
	return p
}

// network returns the extension's use of the network; nil: none.
func network(m *member, o Options) *sandbox.Network {
	n := &sandbox.Network{Listen: m.manifest.Ports(m.config)}
	if len(m.manifest.Permissions.Network) == 0 && len(n.Listen) == 0 {
		return nil
	}
	n.Connect, n.Any = m.manifest.Destinations(m.config, m.env)
	if len(m.manifest.Permissions.Network) > 0 {
		n.Connect = append(n.Connect, portDNS)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			if proxy, ok := o.Env(name); ok && proxy != "" && manifests.PortOf(proxy) != 0 {
				n.Connect = append(n.Connect, manifests.PortOf(proxy))
			}
		}
	}
	return n
}

// pathOf returns the absolute path of an entry of permissions.files.
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

// permitted lists the files that the manifest requests, for the owner.
func (f *files) permitted(m *manifests.Manifest) (all []string) {
	for _, file := range m.Permissions.Files {
		configured, _ := m.Configured(file.Path, m.Config).(string)
		if configured == "" {
			continue
		}
		path := pathOf(configured, m, f.options)
		if file.Write {
			path += " (write)"
		}
		all = append(all, path)
	}
	return all
}

// resolveAll resolves symbolic links, which could be changed later, and removes
// duplicates.
func resolveAll(paths []string) []string { return resolved(nil).all(paths) }

// resolved has paths whose links were resolved: most are those of the system, which each
// extension may use.
type resolved map[string]string

func (r resolved) all(paths []string) (out []string) {
	for _, path := range paths {
		p, known := r[path]
		if !known {
			if p = manifests.ResolveLinks(path); r != nil {
				r[path] = p
			}
		}
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// refuseFor returns a check that refuses manifests that request files of the kernel
// or of another extension.
func refuseFor(o Options, c *config.Config) func(*manifests.Manifest) error {
	return func(m *manifests.Manifest) error {
		if o.Home == nil { // Verify has none
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
			path := resolveAll([]string{pathOf(f.Path, m, o)})[0]
			writable := func(file string) bool { return within(file, path) }
			if f.Write && m.Run.Builtin == "" && slices.ContainsFunc(resolveAll(installed(m)), writable) {
				return refused("write access to %s covers the manifest or the program of the extension, "+
					"so it could grant itself any permission. It can always write to data/%s in the home; "+
					"or name another directory", f.Path, m.ID)
			}
			if slices.ContainsFunc(resolveAll(own), func(dir string) bool { return within(path, dir) }) {
				continue
			}
			for _, private := range resolveAll(o.Home.Private()) {
				if within(path, private) || within(private, path) {
					return refused("%s covers files of the kernel in %s, which no extension may access: "+
						"name a more specific path", f.Path, private)
				}
			}
		}
		return required(c, m, support.Detect())
	}
}

// installed returns the manifest file and the executable of an extension.
func installed(m *manifests.Manifest) []string {
	files := []string{m.File}
	if program := m.Executable(); filepath.IsAbs(program) {
		files = append(files, program)
	}
	return files
}

// required refuses a dropped-in extension if the configuration requires a sandbox and
// the system cannot limit files and the network.
func required(c *config.Config, m *manifests.Manifest, system support.System) error {
	if m.Run.Builtin != "" || c.Sandbox != config.SandboxRequired || !c.Sandboxed(m.ID) ||
		system.Landlock > 0 && system.Seccomp {
		return nil
	}
	return fmt.Errorf("config.yaml requires a sandbox, and %s", system)
}

// within reports whether a path is dir or below it.
func within(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, "../")
}
