package sdktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk"
)

// Patience bounds every wait for something that should happen soon.
const Patience = time.Minute

// Options is what the kernel knows of the extension, and the state that it begins
// with.
type Options struct {
	// Manifest is the file of the extension's manifest, whose grants are in force.
	// Without one, the extension provides what it has, may use the topics below its
	// own id (<id>.*), and has every effect.
	Manifest string
	ID       string                 // of an extension without a manifest that has none
	Agent    *extensionv1.AgentSpec // of an agent without a manifest
	Config   any                    // encoded as JSON, over the defaults of the manifest
	Secrets  map[string]string
	Timezone string // IANA name; empty: UTC
	DataDir  string
	KV       map[string]any // encoded as JSON unless []byte
	// AllowFrom are the user ids of the people whom a channel under test admits; nil: everyone.
	AllowFrom []string
	// Channels are played by the test: everyone on them is admitted. One that is
	// Default gets what names no channel. Without Readiness a channel is ready.
	Channels []*kernelv1.Channel
}

// manifest reads the manifest; nil: there is none.
func (o Options) manifest() (*manifests.Manifest, error) {
	if o.Manifest == "" {
		return nil, nil
	}
	file, err := filepath.Abs(o.Manifest) // the place names the extension, too
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	name := filepath.Base(file)
	if name == manifests.FileName {
		return manifests.Parse(file, data)
	}
	entries, err := manifests.LoadBuiltin(fstest.MapFS{name: {Data: data}}, filepath.Dir(file))
	if err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("read the manifest %s: %w", file, err)
	}
	return entries[0].Manifest, entries[0].Err
}

// spec is the extension for the kernel, without how it runs.
func (o Options) spec(m *manifests.Manifest, ext sdk.Extension) (s kernel.Spec, err error) {
	defaults := map[string]any{}
	if m != nil {
		s, defaults = m.Spec(), m.Config
		s.Builtin = m.Run.Builtin != ""
		for _, secret := range m.Secrets {
			if secret.Required && o.Secrets[secret.Name] == "" {
				s.Missing = append(s.Missing, secret.Name)
			}
		}
	} else {
		s = o.granted(ext)
	}
	config, err := o.config(defaults)
	if err != nil {
		return s, err
	}
	if m != nil {
		for _, p := range m.CheckConfig(config) {
			return s, fmt.Errorf("%w: configuration: %s: %s", contract.ErrInvalid, strings.Join(p.Path, "."), p.Fault.Message)
		}
	}
	s.Config, err = json.Marshal(config)
	s.Secrets = o.Secrets
	if s.Provides.Channel != nil {
		s.Provides.Channel.AllowFrom = o.AllowFrom // the kernel stores no message of a stranger
		if o.AllowFrom == nil {
			s.Provides.Channel.AllowFrom = []string{"*"}
		}
	}
	return s, err
}

// granted is an extension without a manifest.
func (o Options) granted(ext sdk.Extension) kernel.Spec {
	s := kernel.Spec{ID: ext.ID}
	if s.ID == "" {
		s.ID = o.ID
	}
	own := s.ID + ".*"
	s.Permissions = kernel.Permissions{
		Publish: []string{own}, Subscribe: []bus.Subscription{{Pattern: own, Ordered: true}},
		Effects: kernel.EffectPermissions(), Presence: true, Blobs: true,
	}
	s.Provides.Tools = len(ext.Tools) > 0
	for _, t := range ext.Tools {
		if t.Command != "" {
			s.Provides.Commands = append(s.Provides.Commands, kernel.Command{Name: t.Command})
		}
	}
	if ext.Models != nil {
		s.Provides.Models = []string{s.ID + "/*"}
	}
	if ext.Channel != nil {
		_, drafts := ext.Channel.(sdk.Drafter)
		s.Provides.Channel = &kernel.Channel{Drafts: drafts}
		s.Permissions.Publish = append(s.Permissions.Publish, contract.TopicUserMessage)
	}
	if o.Agent != nil || ext.HandleAgent != nil {
		s.Agent = &kernel.Agent{Spec: &extensionv1.AgentSpec{TurnTimeoutMs: Patience.Milliseconds()}}
		if o.Agent != nil {
			s.Agent.Spec = o.Agent
		}
	}
	return s
}

// config is the configuration over the defaults.
func (o Options) config(defaults map[string]any) (map[string]any, error) {
	if o.Config == nil {
		return defaults, nil
	}
	text, err := json.Marshal(o.Config)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var given map[string]any
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return overlay(defaults, given), nil
}

func overlay(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		below, isTree := out[key].(map[string]any)
		if tree, ok := value.(map[string]any); ok && isTree {
			value = overlay(below, tree)
		}
		out[key] = value
	}
	return out
}

// topics are topics that the subscriptions of a specification match, one of each.
func topics(s *kernel.Spec) []string {
	var all []string
	for _, sub := range s.Permissions.Subscribe {
		all = append(all, strings.ReplaceAll(sub.Pattern, "*", "any"))
	}
	if s.Agent != nil {
		all = append(all, contract.TopicAgentInput+s.ID)
	}
	if s.Provides.Channel != nil {
		all = append(all, contract.TopicChannelSend+s.ID)
	}
	slices.Sort(all)
	return all
}

// encode is a value as the kernel stores it.
func encode(t testing.TB, value any) []byte {
	t.Helper()
	switch v := value.(type) {
	case []byte:
		return v
	case json.RawMessage:
		return v
	}
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("sdktest: encode %T: %v", value, err)
	}
	return b
}
