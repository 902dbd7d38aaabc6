package home

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// files are the files that say what runs.
type files struct {
	options  Options
	live     *config.Live
	dropped  *manifests.Dir
	builtins []manifests.Entry
}

func openFiles(o Options, live *config.Live) (f *files, err error) {
	f = &files{options: o, live: live}
	if f.builtins, err = manifests.LoadBuiltin(o.Builtins, o.BuiltinsPrefix); err != nil {
		return nil, err
	}
	f.dropped, err = manifests.OpenDir(o.Home.Extensions())
	return f, err
}

// plan is which extensions run, and how, as manifests, configuration and secrets
// say it at one moment.
type plan struct {
	config   *config.Config
	zone     *time.Location
	entries  []manifests.Entry
	disabled map[string]manifests.Disabled // by the file of the manifest
	members  map[string]*member            // those that run
	policies map[string]*sandbox.Policy    // of members; nil: not limited
	problems map[string]error              // of an edit that is not in force, by extension
	// linkProblems are of links that are not in force, fileErrors of config.yaml and
	// secrets.env.
	linkProblems config.Problems
	fileErrors   []error
}

// member is one extension of a plan.
type member struct {
	manifest *manifests.Manifest
	config   map[string]any
	secrets  map[string]string
	missing  []string // required secrets that are not set
	builtin  bool
	linked   string // the extension whose tools a link in force grants it
}

// plan reads the files as they are now. A configuration that does not fit its
// extension leaves the one of the plan before in force.
func (f *files) plan(before *plan) *plan {
	c := f.live.Config()
	p := &plan{
		config: c, entries: append(slices.Clone(f.builtins), f.dropped.Entries()...),
		disabled: map[string]manifests.Disabled{}, members: map[string]*member{},
		policies: map[string]*sandbox.Policy{}, problems: map[string]error{},
	}
	configErr, secretsErr := f.live.Errors()
	p.fileErrors = slices.DeleteFunc([]error{configErr, secretsErr}, func(err error) bool { return err == nil })
	p.zone, _ = c.Zone(config.ThisMachine())
	set := manifests.Resolve(p.entries, manifests.Options{
		KernelVersion: f.options.Version, Enabled: c.EnabledExtension, Refuse: refuseFor(f.options, c),
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
			if before != nil && before.members[m.ID] != nil {
				effective, err = before.members[m.ID].config, nil
			}
		}
		if err != nil {
			p.disabled[m.File] = manifests.Disabled{ID: m.ID, File: m.File, Cause: manifests.Invalid, Reason: err.Error()}
			continue
		}
		x := &member{manifest: m, config: effective, secrets: map[string]string{}, builtin: builtin[m]}
		for _, s := range m.Secrets {
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

// settings are those of the plan for the kernel.
func (f *files) settings(p *plan) kernel.Settings {
	c := p.config
	s := kernel.Settings{
		Location: p.zone, DefaultAgent: c.Agents.Default, EnabledAgents: c.Agents.Enabled, Routing: c.Agents.Routing,
		DefaultChannel: c.Channels.Default, Hold: c.Channels.Hold, ModelOrder: c.Models.Default,
		ModelNames:  map[string][]string{},
		DailyTokens: c.Models.DailyTokens, Completions: c.Models.Concurrency, Approve: c.Approve,
		KeepEvents: c.Retention.Events, KeepDead: c.Retention.Dead, SecretsFile: f.options.Home.Secrets(),
		Program: f.options.Program,
	}
	if c.Models.Scout != "" {
		s.ModelNames["scout"] = []string{c.Models.Scout}
	}
	return s
}

// specs are the extensions of the plan for the kernel.
func (f *files) specs(p *plan) []kernel.Spec {
	groups := map[string][]string{} // the members of each process of built-ins
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

// spec is one extension for the kernel.
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
	}
	if s.Config, err = json.Marshal(m.config); err != nil {
		return s, err
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

// sharedGroup is the process of all built-ins that have a group. The space keeps
// it apart from those that manifests name.
const sharedGroup = "built-in extensions"

// group is the process that a built-in shares.
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

// process says how the extension runs.
func (f *files) process(p *plan, m *member, groups map[string][]string) supervisor.Spec {
	run := m.manifest.Run
	s := supervisor.Spec{
		Env: allowedEnv(f.options.Environ, run.Env...), StartTimeout: run.StartTimeout,
		ShutdownGrace: run.ShutdownGrace,
		Memory:        int64(run.Memory), Processes: run.Processes, Disk: int64(run.Disk), Requires: m.manifest.Requires.Extensions,
		Restart: supervisor.Restart{
			Policy: supervisor.Policy(m.manifest.Restart.Policy), Backoff: m.manifest.Restart.Backoff,
			MaxBackoff: m.manifest.Restart.MaxBackoff,
			Max:        m.manifest.Restart.Max, Window: m.manifest.Restart.Window,
		},
		Fingerprint: m.manifest.Digest,
	}
	if run.Builtin != "" {
		s.Group = m.group(p.config)
		s.Alone = true
		s.Command = f.options.Builtin(groups[s.Group])
	} else {
		s.Command = append([]string{m.manifest.Executable()}, run.Args...)
		s.Dir = m.manifest.Dir()
		s.Confine = f.options.Confine
		s.Fingerprint += " " + stamp(executable(s.Command, s.Dir))
	}
	f.confine(p, m, &s)
	return s
}
