package home

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// files reads the files that configure what runs.
type files struct {
	options  Options
	live     *config.Live
	dropped  *manifests.Dir
	builtins []manifests.Entry
	consent  *consent.Live
	gate     *gate
	pins     pin.Checker
}

func openFiles(o Options, live *config.Live) (f *files, err error) {
	f = &files{options: o, live: live, gate: newGate(), pins: pin.Checker{Home: o.Home}}
	var builtinErr error
	var reading sync.WaitGroup
	reading.Go(func() { f.builtins, builtinErr = manifests.LoadBuiltin(o.Builtins, o.BuiltinsPrefix) })
	f.dropped, err = manifests.OpenDir(o.Home.Extensions())
	reading.Wait()
	if err = errors.Join(builtinErr, err); err != nil {
		return nil, err
	}
	f.openConsent()
	return f, nil
}

// plan is a snapshot of which extensions run, and how, made of manifests,
// configuration and secrets. It is immutable.
type plan struct {
	config   *config.Config
	zone     *time.Location
	entries  []manifests.Entry
	disabled map[string]manifests.Disabled // by manifest file
	members  map[string]*member            // running extensions, by id
	policies map[string]*sandbox.Policy    // of members; nil: not limited
	resolved resolved                      // paths in policies
	problems map[string]error              // of edits that are not in force, by extension
	// linkProblems are those of links that are not in force, fileErrors those of
	// config.yaml, secrets.env and mcp.json.
	linkProblems config.Problems
	fileErrors   []error
	servers      []mcpfile.Server // of mcp.json

	asked      map[string]*asked              // dropped-in extensions that ask for something, by id
	newest     map[string]*manifests.Manifest // those in force that the owner did allow, or that ask for nothing
	consentErr error                          // of the file with the owner's decisions
}

// member is one extension of a plan.
type member struct {
	manifest *manifests.Manifest
	config   map[string]any
	secrets  map[string]string
	missing  []string // required secrets that are not set
	builtin  bool
	// env has the values for run.env: the environment's, and for a built-in also those of
	// secrets.env.
	env    func(string) (string, bool)
	linked string // id of the extension whose tools a link in force grants
}

// plan reads the files. If the config of an extension is invalid, the one of the
// previous plan stays in force.
func (f *files) plan(previous *plan) *plan {
	c := f.live.Config()
	p := &plan{
		config: c, entries: append(withProviders(f.builtins, c), f.dropped.Entries()...),
		disabled: map[string]manifests.Disabled{}, members: map[string]*member{},
		policies: map[string]*sandbox.Policy{}, resolved: resolved{}, problems: map[string]error{},
		asked: map[string]*asked{}, newest: map[string]*manifests.Manifest{},
	}
	configErr, secretsErr := f.live.Errors()
	p.fileErrors = slices.DeleteFunc([]error{configErr, secretsErr}, func(err error) bool { return err == nil })
	p.zone, _ = c.Zone(config.ThisMachine())
	var serversErr error
	if p.servers, serversErr = f.readServers(previous); serversErr != nil {
		p.fileErrors = append(p.fileErrors, serversErr)
	}
	f.judge(p)
	set := manifests.Resolve(p.entries, manifests.Options{
		KernelVersion: f.options.Version, Enabled: f.enabledWith(p), Refuse: f.refuse(c),
		Consent: p.permitted,
	})
	for _, d := range set.Disabled {
		p.disabled[d.File] = d
	}
	builtin := map[*manifests.Manifest]bool{}
	for _, e := range p.entries {
		if e.Err != nil {
			p.problems[e.ID] = e.Err
		}
		if e.Builtin && e.Manifest != nil {
			builtin[e.Manifest] = true
		}
	}
	for _, m := range slices.Concat(set.Levels...) {
		effective, err := c.Effective(m)
		if err != nil {
			p.problems[m.ID] = errors.Join(p.problems[m.ID], err)
			if previous != nil && previous.members[m.ID] != nil {
				effective, err = previous.members[m.ID].config, nil
			}
		}
		if err != nil {
			p.disabled[m.File] = manifests.Disabled{
				ID: m.ID, File: m.File, Cause: manifests.Invalid, Reason: err.Error(),
			}
			continue
		}
		x := &member{
			manifest: m, config: effective, secrets: map[string]string{}, builtin: builtin[m], env: f.options.Env,
		}
		if x.builtin {
			x.env = f.live.Secrets().Lookup
		}
		for _, s := range m.SecretsOf(effective) {
			value, ok := f.live.Secrets().Lookup(s.Name)
			if ok {
				x.secrets[s.Name] = value
			} else if s.Required {
				x.missing = append(x.missing, s.Name)
			}
		}
		p.members[m.ID] = x
	}
	p.planLinks()
	return p
}

// refuse returns why an extension does not run on this machine.
func (f *files) refuse(c *config.Config) func(*manifests.Manifest) error {
	refused := refuseFor(f.options, c)
	return func(m *manifests.Manifest) error {
		err := refused(m)
		if err == nil && f.options.Pinned && m.Run.Command != "" {
			err = f.pins.Check(m)
		}
		return err
	}
}

// settings returns the kernel's settings for a plan.
func (f *files) settings(p *plan) kernel.Settings {
	c := p.config
	s := kernel.Settings{
		Location: p.zone, DefaultAgent: c.Agents.Default, EnabledAgents: c.Agents.Enabled, Routing: c.Agents.Routing,
		DefaultChannel: c.Channels.Default, Hold: c.Channels.Hold, ModelOrder: p.modelOrder(),
		ModelNames: map[string][]string{},
		Limits:     p.limits(), Currency: c.Models.Currency, Price: p.charge,
		Completions: c.Models.Concurrency, Approve: c.Approve,
		KeepEvents: c.Retention.Events, KeepDead: c.Retention.Dead, SecretsFile: f.options.Home.Secrets(),
		Program: f.options.Program,
		Blobs: directory.BlobLimits{
			File: int64(c.Files.File), Extension: int64(c.Files.Extension), Total: int64(c.Files.Total),
		},
	}
	if c.Models.Scout != "" {
		s.ModelNames["scout"] = []string{c.Models.Scout}
	}
	if len(c.Models.Transcribe) > 0 {
		s.ModelNames[contract.ModelTranscribe] = c.Models.Transcribe
	}
	return s
}

// specs returns the kernel's specs for a plan, including extensions that do not run.
func (f *files) specs(p *plan) []kernel.Spec {
	groups := map[string][]string{} // members of each process of built-ins
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		if m := p.members[id]; m.manifest.Run.Builtin != "" {
			group := m.group(p.config)
			groups[group] = append(groups[group], m.manifest.Run.Builtin+":"+id)
		}
	}
	all := make([]kernel.Spec, 0, len(p.members))
	for _, e := range p.entries {
		if _, off := p.disabled[e.File]; off {
			continue
		}
		s, err := f.spec(p, p.members[e.ID], groups)
		if err != nil { // not for a configuration that was checked
			p.disabled[e.File] = manifests.Disabled{ID: e.ID, File: e.File, Cause: manifests.Invalid, Reason: err.Error()}
			continue
		}
		p.policies[e.ID] = s.Process.Policy
		all = append(all, s)
	}
	return all
}

// spec returns the kernel's spec for one extension.
func (f *files) spec(p *plan, m *member, groups map[string][]string) (s kernel.Spec, err error) {
	x, dirs := m.manifest, f.directories(m)
	s = x.Spec()
	s.Builtin, s.Process, s.Secrets, s.Missing = m.builtin, f.process(p, m, groups), m.secrets, m.missing
	s.DataDir, s.RunDir, s.Prepare = dirs.data, dirs.run, dirs.make
	if c := s.Provides.Channel; c != nil {
		set := p.config.Channels.Of(x.ID)
		c.AllowFrom, c.HoldUncertain = set.AllowFrom, set.Uncertain == config.UncertainHold
	}
	if s.Agent != nil {
		m.link(s.Agent.Spec)
		s.Agent.Spec.UsesTools = p.toolsOf(x.ID, s.Agent.Spec.GetUsesTools())
	}
	if s.Config, err = json.Marshal(m.config); err != nil {
		return s, err
	}
	if x.ID == serversExtension && m.builtin {
		if err := f.connectServers(p, &s); err != nil {
			return s, err
		}
	}
	if a := p.asked[x.ID]; a != nil && !m.builtin {
		allowed := a.allowed.Offers()
		s.Offer = func(tools []directory.Tool) []directory.Tool {
			return f.gate.offer(x.ID, allowed, a.byConfig, tools)
		}
	}
	s.Schedules, err = m.schedules()
	return s, err
}

func (m *member) schedules() (all []contract.DeclaredSchedule, err error) {
	for _, s := range m.manifest.Schedules {
		t, err := m.manifest.Timing(s, m.config)
		if err != nil {
			return nil, err
		}
		all = append(all, contract.DeclaredSchedule{
			Name: s.Name, Cron: t.Cron, Every: int64(t.Every / time.Second), Topic: s.Topic,
			Timezone: s.Timezone, Payload: s.Payload,
		})
	}
	return all, nil
}

// sharedGroup is the process of all built-ins that have a group. Its spaces keep it
// apart from group names in manifests.
const sharedGroup = "built-in extensions"

// group returns the name of the process that a built-in shares.
func (m *member) group(c *config.Config) string {
	switch {
	case m.manifest.Run.Group == "":
		return m.manifest.ID
	case c.Processes == config.ProcessesShared:
		return sharedGroup
	case c.Processes == config.ProcessesGrouped:
		return m.manifest.Run.Group
	}
	return m.manifest.ID
}

// process returns how to run the extension.
func (f *files) process(p *plan, m *member, groups map[string][]string) supervisor.Spec {
	run := m.manifest.Run
	s := supervisor.Spec{
		Env: allowedEnv(f.options.Environ, m.env, run.Env...), StartTimeout: run.StartTimeout,
		ShutdownGrace: run.ShutdownGrace, Requires: m.manifest.Requires.Extensions,
		Limits: sandbox.Limits{Memory: int64(run.Memory), Processes: run.Processes},
		Restart: supervisor.Restart{
			Policy: supervisor.Policy(m.manifest.Restart.Policy), Backoff: m.manifest.Restart.Backoff,
			MaxBackoff: m.manifest.Restart.MaxBackoff,
			Max:        m.manifest.Restart.Max, Window: m.manifest.Restart.Window,
		},
		Fingerprint: m.manifest.Digest,
	}
	if f.options.Node != "" {
		s.Env = append(s.Env, contract.NodeVariable+"="+f.options.Node)
	}
	if run.Builtin != "" {
		s.Group = m.group(p.config)
		s.Limits.Alone = true
		s.Command = f.options.Builtin(groups[s.Group])
	} else {
		s.Command = append([]string{m.manifest.Executable()}, run.Args...)
		s.Dir = m.manifest.Dir()
		s.Confine = f.options.Confine
		s.Fingerprint += " " + stamp(executable(s.Command, s.Dir)) + stamps(m.manifest)
	}
	f.confine(p, m, &s)
	return s
}
