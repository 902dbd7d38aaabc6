package sdktest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Patience bounds every wait for something that should happen soon.
const Patience = time.Minute

// Options is what Init hands over, and the state that the kernel begins with.
type Options struct {
	ID       string // of an extension that leaves it to the manifest
	Name     string // shown to people
	Config   any    // encoded as JSON
	Secrets  map[string]string
	Timezone string // IANA name; empty: UTC
	Agent    *extensionv1.AgentSpec
	DataDir  string
	KV       map[string]any // encoded as JSON unless []byte
	Channels []*kernelv1.Channel
	Commands []*kernelv1.Command // slash commands that people can give
}

func (o Options) init(t testing.TB, id string) *extensionv1.InitRequest {
	t.Helper()
	config := []byte("{}")
	if o.Config != nil {
		var err error
		if config, err = json.Marshal(o.Config); err != nil {
			t.Fatalf("sdktest: configuration: %v", err)
		}
	}
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	if o.Timezone == "" {
		o.Timezone = "UTC"
	}
	if o.Name == "" {
		o.Name = id
	}
	return &extensionv1.InitRequest{
		Id: id, Name: o.Name, Config: config, Secrets: o.Secrets, DataDir: o.DataDir,
		Timezone: o.Timezone, Agent: o.Agent,
	}
}
