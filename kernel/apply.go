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

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Apply makes these the extensions and the settings in force. Extensions that did
// not change keep running; what an extension is to handle is kept for it while it
// is exchanged.
func (k *Kernel) Apply(specs []Spec, settings Settings) error {
	next, err := newPlan(specs, settings)
	if err != nil {
		return err
	}
	k.planning.Lock()
	defer k.planning.Unlock()
	return errors.Join(k.enforce(next), k.super.Apply(k.processes(next)), k.declareSchedules(next))
}

// enforce puts a plan in force for everything but the processes.
func (k *Kernel) enforce(next *plan) error {
	k.mu.Lock()
	k.plan = next
	maps.DeleteFunc(k.described, func(id string, _ offer) bool { return next.members[id] == nil })
	k.mu.Unlock()
	err := k.subscribe(next)
	k.refresh()
	return err
}

// subscribe gives the bus the subscriptions of the plan.
func (k *Kernel) subscribe(p *plan) (err error) {
	wanted := map[string][]bus.Subscription{}
	for _, l := range k.bus.Loads() {
		wanted[l.Extension] = nil
	}
	for id, s := range p.members {
		wanted[id] = s.subscriptions()
	}
	wanted[coretool.Extension] = []bus.Subscription{tools.Subscription()}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if failed := k.bus.Subscribe(id, wanted[id]); failed != nil {
			err = errors.Join(err, fmt.Errorf("store the subscriptions of %s: %w", id, failed))
		}
	}
	return err
}

// processes is the plan for the supervisor.
func (k *Kernel) processes(p *plan) []supervisor.Spec {
	all := make([]supervisor.Spec, 0, len(p.members))
	for _, id := range p.ids() {
		s := p.members[id]
		x := s.Process
		x.ID, x.Name, x.Check = s.ID, s.name(), s.Check
		x.Fingerprint = p.fingerprint(s)
		x.Init = func(generation int64) (*extensionv1.InitRequest, error) { return k.init(p, s, generation) }
		all = append(all, x)
	}
	return all
}

// fingerprint differs for an extension that has to start again.
func (p *plan) fingerprint(s *Spec) string {
	h := sha256.New()
	told, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.initRequest(s))
	fmt.Fprintln(h, s.Process.Fingerprint, s.Process.Command, err)
	h.Write(told)
	if s.Process.Policy != nil {
		fmt.Fprintln(h, s.Process.Policy.Encode())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// initRequest is what every generation of an extension is told alike.
func (p *plan) initRequest(s *Spec) *extensionv1.InitRequest {
	r := &extensionv1.InitRequest{
		Id: s.ID, Name: s.name(), Config: s.Config, Secrets: s.Secrets,
		RunDir: s.RunDir, DataDir: s.DataDir, Timezone: p.Location.String(),
	}
	if s.Agent != nil {
		r.Agent = proto.CloneOf(s.Agent.Spec)
		r.Agent.Completions = int32(min(p.Completions, math.MaxInt32))
	}
	return r
}

// init is what a generation is told at its start.
func (k *Kernel) init(p *plan, s *Spec, generation int64) (*extensionv1.InitRequest, error) {
	if s.Prepare != nil {
		if err := s.Prepare(); err != nil {
			return nil, err
		}
	}
	a := s.actor(generation)
	k.mu.Lock()
	k.actors[s.ID] = a
	k.mu.Unlock()
	r := p.initRequest(s)
	r.Generation, r.KernelAddress, r.KernelToken = generation, "unix:"+k.listener.Addr().String(), k.host.Admit(a)
	return r, nil
}

// declareSchedules publishes the schedules of each extension that differ from what
// was published last.
func (k *Kernel) declareSchedules(p *plan) error {
	const prefix = "schedules/"
	err := k.bus.Do(func(tx *bus.Tx) error {
		known, err := tx.KVScan(contract.KernelSource, prefix, "", 10_000)
		if err != nil {
			return err
		}
		wanted, published := map[string][]contract.DeclaredSchedule{}, map[string]string{}
		for _, v := range known {
			id := strings.TrimPrefix(v.Key, prefix)
			wanted[id], published[id] = nil, string(v.Value)
		}
		for id, s := range p.members {
			if len(s.Schedules) > 0 {
				wanted[id] = s.Schedules
			}
		}
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			schedules := append([]contract.DeclaredSchedule{}, wanted[id]...)
			text, err := json.Marshal(schedules)
			if err != nil {
				return err
			}
			if string(text) == published[id] {
				continue
			}
			declared := contract.SchedulesDeclared{Extension: id, Schedules: schedules}
			_, emitErr := tx.Emit(contract.TopicSchedulesDeclared, id, declared)
			_, putErr := tx.KVPut(contract.KernelSource, prefix+id, text)
			if err := errors.Join(emitErr, putErr); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("publish the declared schedules: %w", err)
	}
	return nil
}
