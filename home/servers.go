package home

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/manifests"
)

// serversExtension connects the servers of mcp.json.
const serversExtension = "mcp"

// offeredVariable names the variable with the file of the tools that the extension
// offered last.
const offeredVariable = "SWITCHBOARD_MCP_OFFERED"

// readServers reads mcp.json. With mistakes in it, the servers of the previous plan stay
// in force.
func (f *files) readServers(previous *plan) ([]mcpfile.Server, error) {
	data, err := f.live.Servers()
	if err == nil && data == nil {
		return nil, nil
	}
	var all []mcpfile.Server
	if err == nil {
		userHome, _ := f.options.Env("HOME")
		all, err = mcpfile.Read(data, mcpfile.Options{
			File: filepath.Base(f.options.Home.Servers()), Lookup: f.live.Secrets().Lookup, Home: userHome,
		})
	}
	if err != nil && previous != nil {
		all = previous.servers
	}
	return all, err
}

// runsServers reports whether mcp.json has servers to connect.
func (p *plan) runsServers() bool { return len(mcpfile.Running(p.servers)) > 0 }

// enabledWith is enabled, with the extension for MCP servers only if there are some.
func (f *files) enabledWith(p *plan) func(id string, optional bool) bool {
	enabled := f.enabled(p.config)
	return func(id string, optional bool) bool {
		if id == serversExtension {
			return p.runsServers() && enabled(id, false)
		}
		return enabled(id, optional)
	}
}

// connectServers adds the servers to the extension that connects them. Its process may
// use what any of them may, because they are started by it.
func (f *files) connectServers(p *plan, s *kernel.Spec) error {
	setup := mcpfile.Setup{Allow: p.config.AllowedServers(), Confine: f.options.Confine}
	for _, server := range mcpfile.Running(p.servers) {
		l := mcpfile.Launch{Server: server, Dir: filepath.Join(s.DataDir, "servers", server.ID)}
		if server.Transport == mcpfile.Stdio {
			if err := os.MkdirAll(l.Dir, 0o700); err != nil {
				return err
			}
			l.Environ = f.serverEnviron()
			if s.Process.Policy != nil {
				l.Policy = f.serverPolicy(l, s.Process.Policy.FileSize)
			}
		}
		setup.Servers = append(setup.Servers, l)
	}
	for _, l := range setup.Servers {
		switch {
		case s.Process.Policy == nil:
		case l.Policy != nil:
			s.Process.Policy = sandbox.Union(s.Process.Policy, l.Policy)
		default:
			other := *s.Process.Policy
			other.Network = remoteNetwork(l.URL)
			s.Process.Policy = sandbox.Union(s.Process.Policy, &other)
		}
	}
	s.Process.Limits.Alone = false
	s.Process.Env = append(s.Process.Env, offeredVariable+"="+filepath.Join(s.DataDir, "offered.json"))
	s.Secrets = mcpfile.Secrets(p.servers)
	merged := map[string]any{}
	if err := json.Unmarshal(s.Config, &merged); err != nil {
		return err
	}
	merged["setup"] = setup
	var err error
	s.Config, err = json.Marshal(merged)
	return err
}

// remoteNetwork is what a server on another machine needs: its port, and that of
// authorization servers. One without encryption may be on any port of this machine, and so
// may what it logs in to.
func remoteNetwork(address string) *sandbox.Network {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return &sandbox.Network{Any: true}
	}
	n := &sandbox.Network{Connect: []uint16{portDNS, 443}}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && port != 443 {
		n.Connect = append(n.Connect, uint16(port))
	}
	return n
}

// ownVariables begin those that each server has of its own.
var ownVariables = []string{"HOME=", "TMPDIR=", "XDG_"}

// serverEnviron returns the environment that all servers have.
func (f *files) serverEnviron() []string {
	return slices.DeleteFunc(allowedEnv(f.options.Environ, f.options.Env), func(entry string) bool {
		return slices.ContainsFunc(ownVariables, func(own string) bool { return strings.HasPrefix(entry, own) })
	})
}

// serverPolicy returns the part of the machine that the process of a server may use.
func (f *files) serverPolicy(l mcpfile.Launch, fileSize uint64) *sandbox.Policy {
	p := &sandbox.Policy{
		Execute: append(slices.Clone(systemPrograms), programDirs(l.Command)...), Read: slices.Clone(systemFiles),
		Write: append(slices.Clone(systemWritable), l.Dir), Sockets: []string{l.Dir},
		Background: true, KeepModes: !l.Installs(), OpenFiles: maxOpenFiles, FileSize: fileSize,
	}
	if l.Installs() {
		p.Execute = append(p.Execute, l.Dir) // what it downloads
	}
	for _, file := range l.Files {
		if f.private(file.Path) {
			continue // the kernel's own files, which no server may use
		}
		if file.Write {
			p.Write = append(p.Write, file.Path)
		} else {
			p.Read = append(p.Read, file.Path)
		}
	}
	p.Execute, p.Read, p.Write = resolveAll(p.Execute), resolveAll(p.Read), resolveAll(p.Write)
	switch {
	case l.AnyNetwork():
		p.Network = &sandbox.Network{Any: true}
	case len(l.Network) > 0:
		p.Network = &sandbox.Network{Connect: []uint16{portDNS}}
		for _, host := range l.Network {
			p.Network.Connect = append(p.Network.Connect, mcpfile.Port(host))
		}
	}
	return p
}

// private reports whether a path covers files of the kernel, or is one.
func (f *files) private(path string) bool {
	for _, own := range resolveAll(f.options.Home.Private()) {
		if path := manifests.ResolveLinks(path); within(own, path) || within(path, own) {
			return true
		}
	}
	return false
}

// programDirs returns the directories with the program of a command and what comes with
// it: of bin/node the directory above bin, which has its library.
func programDirs(command string) (dirs []string) {
	path := executable([]string{command}, "/")
	for _, p := range []string{path, manifests.ResolveLinks(path)} {
		dir := filepath.Dir(p)
		if !filepath.IsAbs(dir) {
			continue
		}
		if up := filepath.Dir(dir); filepath.Base(dir) == "bin" && strings.Count(up, "/") > 2 {
			dir = up
		}
		dirs = append(dirs, dir)
	}
	return dirs
}
