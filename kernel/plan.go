package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
	"github.com/switchboard-run/switchboard/manifests"
)

// plan is which extensions shall run, and how, as manifests, configuration and
// secrets say it now.
type plan struct {
	config   *config.Config
	zone     *time.Location
	entries  []manifests.Entry
	disabled map[string]manifests.Disabled
	members  map[string]*member // those that may start
	problems map[string]error   // of an edit that is not in force, by extension
	// linkProblems are of links that are not in force.
	linkProblems config.Problems
}

// member is one extension of a plan.
type member struct {
	manifest *manifests.Manifest
	config   map[string]any
	raw      []byte // config as JSON
	secrets  map[string]string
	missing  []string // required secrets that nobody has set
	builtin  bool
	linked   bool // an agent that a link in force names
}

// Replan reads the files as they are now and makes it so. What is wrong with
// one extension concerns it and its dependants alone.
func (k *Kernel) Replan() {
	k.planning.Lock()
	defer k.planning.Unlock()
	next := k.makePlan()
	k.enforce(next)
	if err := k.super.Apply(k.keepPolicies(k.specs(next))); err != nil {
		k.log.Error("applying the plan failed", "error", err)
	}
	k.declareSchedules(next)
}

// enforce makes a plan what everybody goes by but the processes.
func (k *Kernel) enforce(next *plan) {
	k.mu.Lock()
	previous := k.plan
	k.plan = next
	maps.DeleteFunc(k.described, func(id string, _ *offer) bool { return next.members[id] == nil })
	k.mu.Unlock()
	k.reportProblems(previous, next)
	k.subscribe(next)
	k.refresh()
}

func (k *Kernel) makePlan() *plan {
	c := k.live.Config()
	p := &plan{
		config: c, entries: append(slices.Clone(k.builtins), k.dropped.Entries()...),
		disabled: map[string]manifests.Disabled{}, members: map[string]*member{}, problems: map[string]error{},
	}
	p.zone, _ = c.Zone(config.ThisMachine())
	set := manifests.Resolve(p.entries, manifests.Options{KernelVersion: k.options.Version, Enabled: c.EnabledExtension, Refuse: refuseFor(k.options, c)})
	for _, d := range set.Disabled {
		p.disabled[d.ID] = d
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
			k.mu.Lock()
			if k.plan != nil && k.plan.members[m.ID] != nil {
				effective, err = k.plan.members[m.ID].config, nil // the last good one stays in force
			}
			k.mu.Unlock()
		}
		if err != nil {
			p.disabled[m.ID] = manifests.Disabled{ID: m.ID, File: m.File, Cause: manifests.Invalid, Reason: err.Error()}
			continue
		}
		raw, err := json.Marshal(effective)
		if err != nil {
			p.disabled[m.ID] = manifests.Disabled{ID: m.ID, File: m.File, Cause: manifests.Invalid, Reason: err.Error()}
			continue
		}
		member := &member{manifest: m, config: effective, raw: raw, secrets: map[string]string{}, builtin: builtin[m]}
		for _, s := range m.Secrets {
			value, ok := k.live.Secrets().Lookup(s.Name)
			if ok {
				member.secrets[s.Name] = value
			} else if s.Required {
				member.missing = append(member.missing, s.Name)
			}
		}
		p.members[m.ID] = member
	}
	if err := p.planLinks(); err != nil {
		p.problems[linksExtension] = errors.Join(p.problems[linksExtension], err)
	}
	return p
}

// reportProblems logs each problem once.
func (k *Kernel) reportProblems(previous, next *plan) {
	for id, err := range next.problems {
		if previous == nil || previous.problems[id] == nil || previous.problems[id].Error() != err.Error() {
			k.log.Warn("a file of an extension is wrong; what was in force before stays", "extension", id, "error", err)
		}
	}
	for _, problem := range newProblems(previous, next) {
		k.log.Warn("a link is not in force", "problem", problem.String())
	}
	configErr, secretsErr := k.live.Errors()
	if err := errors.Join(configErr, secretsErr); err != nil {
		k.log.Warn("the configuration is wrong; what was in force before stays", "error", err)
	}
}

// subscribe makes the manifests' subscriptions those of the bus.
func (k *Kernel) subscribe(p *plan) {
	wanted := map[string][]bus.Subscription{}
	for _, id := range k.bus.Subscribers() {
		wanted[id] = nil
	}
	for id, m := range p.members {
		wanted[id] = m.subscriptions(p.config)
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if err := k.bus.Subscribe(id, wanted[id]); err != nil {
			k.log.Error("storing subscriptions failed", "extension", id, "error", err)
		}
	}
}

// What the kernel grants by itself: a channel its own sends, an agent its own
// inputs.
const (
	sendWait    = time.Minute
	sendDeliver = 10
	sendAge     = 7 * 24 * time.Hour
	turnDeliver = 5
)

func (m *member) subscriptions(c *config.Config) (subs []bus.Subscription) {
	id := m.manifest.ID
	for _, s := range m.manifest.Permissions.Subscribe {
		subs = append(subs, bus.Subscription{Pattern: s.Topic, Ordered: s.Ordered, AckWait: s.AckWait, MaxDeliver: s.MaxDeliver, MaxAge: s.MaxAge, Own: s.Own})
	}
	if channel := m.manifest.Provides.Channel; channel != nil {
		subs = append(subs, bus.Subscription{
			Pattern: contract.TopicChannelSend + id, Ordered: true, AckWait: sendWait, MaxDeliver: sendDeliver, MaxAge: sendAge,
			Dedupe: channel.Dedupe, Hold: c.Channels.Of(id).Uncertain == config.UncertainHold,
		})
	}
	if agent := m.manifest.Agent; agent != nil {
		subs = append(subs, bus.Subscription{
			Pattern: contract.TopicAgentInput + id, Ordered: true, AckWait: agent.Limits.TurnTimeout, MaxDeliver: turnDeliver,
		})
	}
	return append(subs, m.commands()...)
}

func (m *member) actor(generation int64) *bus.Actor {
	a := &bus.Actor{
		Builtin: m.builtin, ID: m.manifest.ID, Generation: generation, Publish: m.manifest.Permissions.Publish, Effects: m.manifest.Permissions.Effects,
		Tools: m.manifest.Permissions.Tools, Models: m.manifest.Permissions.Models, Presence: m.manifest.Permissions.Presence,
		Channel: m.manifest.Provides.Channel != nil, Agent: m.manifest.Agent != nil,
	}
	for _, s := range m.manifest.Permissions.Subscribe {
		a.Subscribe = append(a.Subscribe, s.Topic)
	}
	return a
}

// specs is the plan as the supervisor takes it.
func (k *Kernel) specs(p *plan) []supervisor.Spec {
	groups := map[string][]string{} // the members of each process of built-ins
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		if m := p.members[id]; m.manifest.Run.Builtin != "" {
			group := m.group(p.config)
			groups[group] = append(groups[group], m.manifest.Run.Builtin+":"+id)
		}
	}
	specs := make([]supervisor.Spec, 0, len(p.members))
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		specs = append(specs, k.spec(p, p.members[id], groups))
	}
	return specs
}

// sharedGroup is the process of all built-ins that have a group. The space keeps
// it apart from those that manifests name.
const sharedGroup = "built-in extensions"

// group is the process that a built-in shares. Only built-ins do.
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

func (k *Kernel) spec(p *plan, m *member, groups map[string][]string) supervisor.Spec {
	run := m.manifest.Run
	s := supervisor.Spec{
		ID: m.manifest.ID, Name: m.manifest.Name, Env: supervisor.AllowedEnv(k.options.Environ, run.Env...),
		StartTimeout: run.StartTimeout, ShutdownGrace: run.ShutdownGrace, Memory: int64(run.Memory),
		Processes: run.Processes, Disk: int64(run.Disk), Requires: m.manifest.Requires.Extensions,
		Restart: supervisor.Restart{
			Policy: supervisor.Policy(m.manifest.Restart.Policy), Backoff: m.manifest.Restart.Backoff, MaxBackoff: m.manifest.Restart.MaxBackoff,
			Max: m.manifest.Restart.Max, Window: m.manifest.Restart.Window,
		},
		Check: func(d *extensionv1.Description) error { return k.check(m, d) },
		Init:  func(generation int64) (*extensionv1.InitRequest, error) { return k.init(p, m, generation) },
	}
	if run.Builtin != "" {
		s.Group = m.group(p.config)
		s.Alone = true
		s.Command = k.options.Builtin(groups[s.Group])
	} else {
		s.Command = append([]string{m.manifest.Executable()}, run.Args...)
		s.Dir = m.manifest.Dir()
		s.Confine = k.options.Confine
	}
	k.confine(p, m, &s)
	s.Fingerprint = m.fingerprint(p, s)
	return s
}

// fingerprint changes when the extension has to be started anew.
func (m *member) fingerprint(p *plan, s supervisor.Spec) string {
	h := sha256.New()
	fmt.Fprintln(h, m.manifest.Digest, string(m.raw), p.zone, s.Command)
	if s.Policy != nil {
		fmt.Fprintln(h, s.Policy.Encode())
	}
	for _, name := range slices.Sorted(maps.Keys(m.secrets)) {
		fmt.Fprintln(h, name, m.secrets[name])
	}
	if m.manifest.Agent != nil {
		fmt.Fprintln(h, "completions", p.config.Models.Concurrency)
		if m.linked {
			fmt.Fprintln(h, "linked")
		}
	}
	if m.manifest.Run.Builtin == "" {
		fmt.Fprintln(h, supervisor.Stamp(s.Command, m.manifest.Dir()))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// init is what a generation is told at its start.
func (k *Kernel) init(p *plan, m *member, generation int64) (*extensionv1.InitRequest, error) {
	id := m.manifest.ID
	dirs := k.directories(m)
	if err := dirs.make(); err != nil {
		return nil, fmt.Errorf("making the directories of %s: %w", id, err)
	}
	a := m.actor(generation)
	k.mu.Lock()
	k.actors[id] = a
	k.mu.Unlock()
	r := &extensionv1.InitRequest{
		Id: id, Name: m.manifest.Name, Generation: generation, KernelAddress: "unix:" + k.listener.Addr().String(), KernelToken: k.host.Admit(a),
		Config: m.raw, Secrets: m.secrets, RunDir: dirs.run, DataDir: dirs.data, Timezone: p.zone.String(),
		Agent: m.agentSpec(),
	}
	if r.Agent != nil {
		r.Agent.Completions = int32(min(p.config.Models.Concurrency, math.MaxInt32))
	}
	return r, nil
}

func agentSpec(a *manifests.Agent) *extensionv1.AgentSpec {
	if a == nil {
		return nil
	}
	return &extensionv1.AgentSpec{
		Model: a.Model, Instructions: a.Instructions, UsesTools: a.UsesTools, Offers: a.Offers, Context: a.Context, Echo: a.Echo,
		NoHistory: a.History == manifests.HistoryNone, Memory: a.Memory,
		MaxSteps: int32(a.Limits.MaxSteps), TurnTimeoutMs: a.Limits.TurnTimeout.Milliseconds(), MaxTokens: int64(a.Limits.MaxTokens),
	}
}

// maxDescription is what an extension may say of itself, in bytes: it is kept,
// and models are told of the tools.
const maxDescription = 512 << 10

// check refuses a description that is more than the manifest provides, or that
// claims what another extension has.
func (k *Kernel) check(m *member, d *extensionv1.Description) error {
	id, provides := m.manifest.ID, m.manifest.Provides
	switch size := proto.Size(d); {
	case size > maxDescription:
		return fmt.Errorf("%w: its description of itself has %d KiB, mostly its tools, and may have %d", contract.ErrTooLarge, size>>10, maxDescription>>10)
	case d.GetChannel() && provides.Channel == nil:
		return fmt.Errorf("%w: it is a channel, but the manifest lacks \"provides: {channel: ...}\"", contract.ErrDenied)
	case d.GetModels() && len(provides.Models) == 0:
		return fmt.Errorf("%w: it completes prompts, but the manifest lacks \"provides: {models: [%s/*]}\"", contract.ErrDenied, id)
	case len(d.GetTools()) > 0 && !provides.Tools:
		return fmt.Errorf("%w: it has tools, but the manifest lacks \"provides: {tools: true}\"", contract.ErrDenied)
	}
	seen := map[string]bool{}
	for _, t := range d.GetTools() {
		if seen[t.GetName()] {
			return fmt.Errorf("%w: it describes the tool %q twice", contract.ErrInvalid, t.GetName())
		}
		seen[t.GetName()] = true
		if err := m.checkTool(t); err != nil {
			return err
		}
		if err := m.checkCommand(t); err != nil {
			return err
		}
	}
	return nil
}

// checkTool refuses a tool with a bad name or schema. The schemas of built-ins
// were checked when the binary was tested, and are compiled when they are needed.
func (m *member) checkTool(t *extensionv1.Tool) error {
	if m.builtin {
		return tools.CheckName(t)
	}
	_, err := tools.Compile(m.manifest.ID, t)
	return err
}

// declareSchedules publishes the manifests' schedules where they differ from
// what was published last.
func (k *Kernel) declareSchedules(p *plan) {
	err := k.bus.Do(func(tx *bus.Tx) error {
		known, err := tx.KVScan(contract.KernelSource, "schedules/", "", 10_000)
		if err != nil {
			return err
		}
		published := map[string]string{}
		for _, v := range known {
			published[strings.TrimPrefix(v.Key, "schedules/")] = string(v.Value)
		}
		wanted := map[string][]contract.DeclaredSchedule{}
		for id := range published {
			wanted[id] = []contract.DeclaredSchedule{}
		}
		for id, m := range p.members {
			for _, s := range m.manifest.Schedules {
				t, err := m.manifest.Timing(s, m.config)
				if err != nil {
					return err
				}
				wanted[id] = append(wanted[id], contract.DeclaredSchedule{
					Name: s.Name, Cron: t.Cron, Every: int64(t.Every / time.Second), Topic: s.Topic, Timezone: s.Timezone, Payload: s.Payload,
				})
			}
		}
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			text, err := json.Marshal(wanted[id])
			if err != nil {
				return err
			}
			if string(text) == published[id] {
				continue
			}
			if _, err := tx.Emit(contract.TopicSchedulesDeclared, id, contract.SchedulesDeclared{Extension: id, Schedules: wanted[id]}); err != nil {
				return err
			}
			if _, err := tx.KVPut(contract.KernelSource, "schedules/"+id, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		k.log.Error("publishing the declared schedules failed", "error", err)
	}
}
