package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// FileName is the name of the manifest in an extension's directory.
const FileName = "manifest.yaml"

// RecordName is the name of the file beside it that says where an installed extension comes
// from. It changes with each installation.
const RecordName = ".installed.json"

// Parse parses one manifest; file is its name for messages. The id must be the name of the
// directory, or of the file if it is not called manifest.yaml. The error is a Problems with
// all mistakes.
func Parse(file string, data []byte) (*Manifest, error) {
	return parse(file, data, false, idOf(file))
}

// parse reads a manifest whose id has to be want, unless that is empty.
func parse(file string, data []byte, trusted bool, want string) (*Manifest, error) {
	sum := sha256.Sum256(data)
	m := &Manifest{File: file, Digest: hex.EncodeToString(sum[:]), trusted: trusted, source: data}
	m.doc = strictyaml.Decode(file, data, m, Checks)
	if m.doc.Has("") {
		m.checkIdentity(want)
		m.checkRun()
		m.checkProvides()
		m.checkPermissions()
		m.checkTimes()
		m.checkSchedules()
		m.checkAgent()
		m.checkSecrets()
		if !trusted {
			m.checkSchema()
		}
	}
	if err := m.doc.Problems().Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// idOf returns the id for the path of a manifest.
func idOf(file string) string {
	file = filepath.ToSlash(file)
	base := file[strings.LastIndexByte(file, '/')+1:]
	if base != FileName {
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	dir := strings.TrimSuffix(strings.TrimSuffix(file, base), "/")
	return dir[strings.LastIndexByte(dir, '/')+1:]
}

func (m *Manifest) checkIdentity(want string) {
	if m.API != 0 && m.API != API {
		m.doc.Report("api", "this kernel reads manifests of api %d, not %d", API, m.API)
	}
	if m.ID != "" && want != "" && m.ID != want {
		kind := "file"
		if filepath.Base(m.File) == FileName {
			kind = "directory"
		}
		m.doc.Report("id", "is %q, but the %s is named %q: they must be the same", m.ID, kind, want)
	}
	for i, id := range m.Requires.Extensions {
		if id == m.ID && id != "" {
			m.doc.Report(strictyaml.Path("requires", "extensions", i), "the extension requires itself")
		}
	}
}

func (m *Manifest) checkRun() {
	switch {
	case m.doc.Has("run.command") && m.doc.Has("run.builtin"):
		m.doc.Report("run.builtin", "command and builtin exclude each other: remove one")
	case m.doc.Has("run.command") || m.doc.Has("run.builtin"):
	case m.Agent != nil:
		m.Run.Builtin = AgentBuiltin
	case m.doc.Has("agent"), m.doc.Faulty("run"):
	default:
		m.doc.Report("run", "needs command (an executable) or builtin")
	}
	if m.doc.Has("run.group") && !m.doc.Has("run.builtin") && m.Agent == nil {
		m.doc.Report("run.group", "only built-in extensions share a process")
	}
	if p := m.Permissions; !m.trusted && len(p.Files)+len(p.Network)+len(p.Listen)+len(p.ListenOn)+len(m.Secrets) > 0 {
		m.Run.Group = "" // extensions in one process would share these
	}
	if m.doc.Has("run.args") && !m.doc.Has("run.command") {
		m.doc.Report("run.args", "needs command: a built-in takes no arguments")
	}
	names := map[string]int{}
	for i, e := range m.Run.Env {
		name, _, _ := strings.Cut(e, "=")
		if first, ok := names[name]; ok && m.Run.Env[first] != e {
			m.doc.Report(strictyaml.Path("run", "env", i), "%s is already set by run.env[%d]", name, first)
			continue
		}
		names[name] = i
	}
	for i, s := range m.Secrets {
		if _, ok := names[s.Name]; ok && s.Name != "" {
			m.doc.Report(strictyaml.Path("secrets", i, "name"),
				"%s is also in run.env: remove it there, secrets are passed separately", s.Name)
		}
	}
}

func (m *Manifest) checkProvides() {
	p := m.Provides
	if m.Agent != nil && m.Run.Builtin == AgentBuiltin {
		for _, path := range []string{"provides.channel", "provides.tools", "provides.commands", "provides.models"} {
			if m.doc.Has(path) && (path != "provides.tools" || p.Tools) {
				m.doc.Report(path, "needs an executable (run.command)")
			}
		}
	}
	if c := p.Channel; c != nil && c.MaxLength > 0 && c.MaxLength < contract.MinChannelLength {
		m.doc.Report("provides.channel.max_length", "must be at least %d, or 0 for no limit", contract.MinChannelLength)
	}
	for path, set := range map[string]bool{
		"provides.channel.local": p.Channel != nil && p.Channel.Local, "provides.topology": p.Topology,
	} {
		if set && !m.trusted {
			m.doc.Report(path, "is for built-in extensions only")
		}
	}
	if p.Fallback && len(p.Models) == 0 {
		m.doc.Report("provides.fallback", "needs provides.models")
	}
	for i, pattern := range p.Models {
		provider, _, _ := strings.Cut(pattern, "/")
		if pattern != "" && m.ID != "" && provider != m.ID {
			m.doc.Report(strictyaml.Path("provides", "models", i),
				"%q must start with the extension's own id: %s/", pattern, m.ID)
		}
	}
}

func (m *Manifest) checkPermissions() {
	if m.Permissions.Admin == bus.AdminManage && !m.trusted {
		m.doc.Report("permissions.admin",
			"manage is for built-in extensions only: it would let the extension approve what only you may approve; "+
				"read shows it everything")
	}
	if path, ok := parseReference(m.Permissions.ListenOn); ok && !m.doc.Faulty("permissions.listen_on") {
		m.checkReference("permissions.listen_on", m.Permissions.ListenOn, path)
	}
	implied := map[string]string{}
	if m.Provides.Channel != nil {
		implied["channel.send."+m.ID] = "provides.channel"
	}
	if m.Agent != nil {
		implied["agent.input."+m.ID] = "agent"
	}
	for _, c := range m.Provides.Commands {
		implied["command."+c.Name], implied["command.*"] = "provides.commands", "provides.commands"
	}
	for i, s := range m.Permissions.Subscribe {
		at := strictyaml.Path("permissions", "subscribe", i)
		if by, ok := implied[s.Topic]; ok {
			m.doc.Report(at+".topic", "%s implies it: remove it here", by)
		}
		if s.Own && s.Topic != contract.TopicAgentOutput {
			m.doc.Report(at+".own", "is for the topic %s only", contract.TopicAgentOutput)
		}
		if s.MaxAge > 0 && s.MaxAge < s.AckWait {
			m.doc.Report(at+".max_age", "%s is shorter than ack_wait (%s)", s.MaxAge, s.AckWait)
		}
	}
	for i, a := range m.Permissions.Publish {
		for j, b := range m.Permissions.Publish {
			if i != j && a != b && topic.ValidTopic(a) && topic.Match(b, a) {
				m.doc.Report(strictyaml.Path("permissions", "publish", i), "%q is already granted by %q", a, b)
				break
			}
		}
	}
}

func (m *Manifest) checkTimes() {
	if r := m.Restart; r.MaxBackoff < r.Backoff {
		at := "restart.max_backoff"
		if !m.doc.Has(at) {
			at = "restart.backoff"
		}
		m.doc.Report(at, "max_backoff (%s) is shorter than backoff (%s)", r.MaxBackoff, r.Backoff)
	}
}

func (m *Manifest) checkAgent() {
	a := m.Agent
	if a == nil {
		return
	}
	if !a.Echo && !m.doc.Has("agent.instructions") {
		m.doc.Report("agent.instructions", "is required (or echo: true, for an agent without a model)")
	}
	if a.Echo {
		for _, path := range []string{"agent.model", "agent.uses_tools", "agent.context"} {
			if m.doc.Has(path) {
				m.doc.Report(path, "has no effect with echo: true")
			}
		}
	}
}

func (m *Manifest) checkSecrets() {
	for i, s := range m.Secrets {
		_, refers := parseReference(s.Name)
		switch {
		case refers && !m.trusted:
			m.doc.Report(strictyaml.Path("secrets", i, "name"), "only the configuration of built-in extensions names secrets")
		case !refers && s.Name != "" && s.Name != strings.ToUpper(s.Name):
			m.doc.ReportFault(strictyaml.Path("secrets", i, "name"), strictyaml.Fault{
				Message: fmt.Sprintf("%q must be in capitals", s.Name), Suggestion: strings.ToUpper(s.Name),
			})
		}
	}
}
