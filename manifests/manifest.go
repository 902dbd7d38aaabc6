// Package manifests parses and checks the manifests of extensions, and resolves which
// extensions may start, in which order.
//
// Parse checks one file: it guesses nothing, and reports all problems at once with their
// positions. Resolve checks several together: an invalid one, a conflict, a missing
// dependency or a cycle disables the extensions concerned and their dependents, and nothing
// else. Dir holds the manifests of a directory, keeps the last valid version after a bad
// edit, and watches for changes.
//
// The package starts no process. It does not check that an executable exists or runs: the
// supervisor does. Tools are known only once the extension describes itself.
//
// A *Manifest is immutable after Parse and may be shared. All functions are safe for
// concurrent use. The last valid version is kept in memory only.
package manifests

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// API is the version of the manifest format.
const API = 1

// AgentBuiltin is the built-in that runs agents without their own process.
const AgentBuiltin = "agent"

type (
	// Problem is one mistake in a file.
	Problem = strictyaml.Problem
	// Problems are all mistakes in a file, as an error.
	Problems = strictyaml.Problems
)

// Manifest is the declaration of an extension, with defaults for missing fields.
type Manifest struct {
	API          int            `yaml:"api,required"`
	ID           string         `yaml:"id,required" check:"id"`
	Name         string         `yaml:"name,required" check:"text"`
	Version      string         `yaml:"version,required" check:"version"`
	Description  string         `yaml:"description"`
	Optional     bool           `yaml:"optional"` // starts only if config.yaml has an entry for it under extensions
	Requires     Requires       `yaml:"requires"`
	Run          Run            `yaml:"run"`
	Provides     Provides       `yaml:"provides"`
	Permissions  Permissions    `yaml:"permissions"`
	Secrets      []Secret       `yaml:"secrets" unique:"name"`
	Restart      Restart        `yaml:"restart"`
	Data         string         `yaml:"data" default:"cache" enum:"cache|pinned"`
	Config       map[string]any `yaml:"config"`        // defaults; see EffectiveConfig
	ConfigSchema map[string]any `yaml:"config_schema"` // nil: any config is fine
	Agent        *Agent         `yaml:"agent"`         // nil: not an agent
	Schedules    []Schedule     `yaml:"schedules" unique:"name"`

	File   string // its path, for messages
	Digest string // of the file's bytes: equal for equal files

	doc     *strictyaml.Document
	source  []byte // of the file
	compile sync.Once
	schema  *schema.Schema
	invalid error // of the schema
	trusted bool  // built in: tests of the binary check config and config_schema
}

// Manifest.Data says what the data directory is to a cluster, whose nodes do not share it.
const (
	DataCache  = "cache"  // may be lost: another node takes over without it
	DataPinned = "pinned" // the cell stays on the node that has it
)

// Requires lists the required kernel version and extensions.
type Requires struct {
	Kernel     string   `yaml:"kernel" check:"semver_range"` // empty: any
	Extensions []string `yaml:"extensions" check:"id" unique:"-"`
}

// Run says how the extension's process is started: exactly one of Command and
// Builtin is set.
type Run struct {
	Command       string           `yaml:"command" check:"text"` // see Manifest.Executable
	Args          []string         `yaml:"args"`
	Env           []string         `yaml:"env" check:"env" unique:"-"` // NAME: inherited; NAME=value: set
	Builtin       string           `yaml:"builtin" check:"id_syntax"`
	Group         string           `yaml:"group" check:"id_syntax"` // built-ins of one group share a process
	StartTimeout  time.Duration    `yaml:"start_timeout" default:"10s" min:"100ms" max:"10m"`
	ShutdownGrace time.Duration    `yaml:"shutdown_grace" default:"5s" min:"0s" max:"10m"`
	Memory        strictyaml.Bytes `yaml:"memory" min:"16MiB"` // of all its processes; 0: no limit
	Processes     int              `yaml:"processes" default:"64" min:"1" max:"10000"`
	Disk          strictyaml.Bytes `yaml:"disk" default:"1GiB" min:"1MiB"` // of its data directory
}

// Provides lists what the extension offers to others.
type Provides struct {
	Channel  *Channel  `yaml:"channel"` // nil: not a channel
	Tools    bool      `yaml:"tools"`
	Commands []Command `yaml:"commands" unique:"name"`                  // for people
	Models   []string  `yaml:"models" check:"model_pattern" unique:"-"` // <id>/<name> or <id>/*
	// use its models only while no other provider is configured
	Fallback bool `yaml:"fallback"`
	Topology bool `yaml:"topology"` // links agents as in config.yaml; built-ins only
}

// Channel is a way to talk to people.
type Channel struct {
	MaxLength int           `yaml:"max_length" min:"0"` // of one message; 0: no limit
	Formats   []string      `yaml:"formats" enum:"text|markdown|html" unique:"-"`
	Dedupe    time.Duration `yaml:"dedupe" min:"0s"` // how long a repeated message id is suppressed
	Drafts    bool          `yaml:"drafts"`          // can show text while it is written
	Actions   bool          `yaml:"actions"`         // shows buttons below a message
	Local     bool          `yaml:"local"`           // only the owner can reach it; built-ins only
	// Attachments are the kinds of files that it sends; others are named in the text.
	Attachments []string `yaml:"attachments" enum:"image|audio|voice|video|document|sticker|location|contact" unique:"-"`

	MaxAttachment strictyaml.Bytes `yaml:"max_attachment" min:"1KiB"` // of one file; 0: no limit
}

// Command is a slash command; the file may give just its name.
type Command struct {
	Name        string `yaml:"name,required,short" check:"command"`
	Description string `yaml:"description"`
}

// Permissions are the extension's grants. Everything else is refused.
type Permissions struct {
	Publish   []string       `yaml:"publish" check:"publish" unique:"-"` // topic patterns
	Subscribe []Subscription `yaml:"subscribe" unique:"topic"`
	Effects   []string       `yaml:"effects" check:"effect" unique:"-"`
	Network   []string       `yaml:"network" check:"host" unique:"-"`       // see Destinations
	Listen    []int          `yaml:"listen" min:"1" max:"65535" unique:"-"` // TCP ports
	ListenOn  string         `yaml:"listen_on" check:"reference"`           // to an address or a port, see Ports
	Files     []File         `yaml:"files" unique:"path"`                   // besides its own
	Tools     []string       `yaml:"tools" check:"tool_pattern" unique:"-"` // to call for itself, outside of turns
	Models    []string       `yaml:"models" check:"model" unique:"-"`       // to call outside of turns
	Blobs     bool           `yaml:"blobs"`                                 // may store and read files of messages
	Presence  bool           `yaml:"presence"`                              // may read when people were last active
	Sessions  bool           `yaml:"sessions"`                              // may read all sessions
	Admin     string         `yaml:"admin" enum:"read|manage"`              // services of adminv1; manage: built-ins only
}

// File is a file or directory tree that the extension may use besides its own. The manifest
// may give just its path: absolute, in the user's home (~/) or relative to the manifest;
// of a built-in also $config.<key>.
type File struct {
	Path  string `yaml:"path,required,short" check:"path"`
	Write bool   `yaml:"write"` // also change, create and delete
}

// Subscription is one declared subscription; the file may give just its topic.
type Subscription struct {
	Topic      string        `yaml:"topic,required,short" check:"subscribe"` // a pattern
	Ordered    bool          `yaml:"ordered" default:"true"`                 // in order for each key
	AckWait    time.Duration `yaml:"ack_wait" default:"30s" min:"1s" max:"24h"`
	MaxDeliver int           `yaml:"max_deliver" default:"4" min:"1" max:"1000"`
	MaxAge     time.Duration `yaml:"max_age" default:"24h" min:"1s"`
	Own        bool          `yaml:"own"` // of agent.output: only events for this extension
}

// Secret names a value of the environment or the secrets file; the manifest may give just
// its name. That of a built-in may be $config.<key>, see SecretsOf.
type Secret struct {
	Name     string `yaml:"name,required,short" check:"env_name_or_reference"`
	Required bool   `yaml:"required"` // without it the extension is unconfigured
}

// Restart policies.
const (
	RestartAlways    = "always"
	RestartOnFailure = "on-failure" // not after exit code 0
	RestartNever     = "never"
)

// Restart configures restarts of an ended process: at most Max within Window, with waits
// that grow from Backoff to MaxBackoff.
type Restart struct {
	Policy     string        `yaml:"policy" default:"always" enum:"always|on-failure|never"`
	Backoff    time.Duration `yaml:"backoff" default:"1s" min:"1ms"`
	MaxBackoff time.Duration `yaml:"max_backoff" default:"2m" min:"1ms"`
	Max        int           `yaml:"max" default:"5" min:"1" max:"1000"`
	Window     time.Duration `yaml:"window" default:"5m" min:"1s"`
}

// Agent makes the extension an agent.
type Agent struct {
	Model        string   `yaml:"model" default:"default" check:"model"` // default, scout or <provider>/<name>
	Instructions string   `yaml:"instructions"`
	UsesTools    []string `yaml:"uses_tools" check:"tool_pattern" unique:"-"` // <extension>/<tool> or <extension>/*
	// tools described in each request; empty: all
	Offers  []string `yaml:"offers" check:"tool_pattern" unique:"-"`
	Context []string `yaml:"context" check:"tool" unique:"-"`
	Memory  []string `yaml:"memory" check:"id_syntax" unique:"-"`
	Approve []string `yaml:"approve" check:"tool_pattern" unique:"-"` // tools that need a person's approval
	History string   `yaml:"history" default:"session" enum:"session|none"`
	Limits  Limits   `yaml:"limits"`
	Echo    bool     `yaml:"echo"` // answers with its input, without a model
}

// Histories of an agent.
const (
	HistorySession = "session" // requests include the session's history
	HistoryNone    = "none"    // each input is handled as the first one
)

// Limits bound one turn of an agent, and its tokens per day.
type Limits struct {
	MaxSteps    int           `yaml:"max_steps" default:"20" min:"1" max:"1000"`
	TurnTimeout time.Duration `yaml:"turn_timeout" default:"10m" min:"1s" max:"24h"`
	MaxTokens   int           `yaml:"max_tokens" min:"1000"` // 0: by the window of the model
	DailyTokens int64         `yaml:"daily_tokens" min:"0"`  // 0: no limit of its own
}

// Schedule is published to the scheduler, which owns it. Exactly one of Cron and Every is
// set, and either may refer to the extension's config; see Timing.
type Schedule struct {
	Name     string         `yaml:"name,required" check:"id_syntax"`
	Cron     string         `yaml:"cron" check:"cron_or_reference"`
	Every    string         `yaml:"every" check:"every_or_reference"` // a duration
	Topic    string         `yaml:"topic,required" check:"fired"`
	Timezone string         `yaml:"timezone" check:"timezone"` // empty: the configured one
	Payload  map[string]any `yaml:"payload"`
}

// Source returns the text of the file.
func (m *Manifest) Source() string { return string(m.source) }

// Dir returns the directory of a dropped-in extension.
func (m *Manifest) Dir() string { return filepath.Dir(m.File) }

// Executable returns the path of the command: a name with a slash is relative to the
// manifest's directory, one without is to be looked up in PATH. It is empty for a built-in.
func (m *Manifest) Executable() string {
	c := m.Run.Command
	if c == "" || filepath.IsAbs(c) || !strings.ContainsRune(c, filepath.Separator) {
		return c
	}
	return filepath.Join(m.Dir(), c)
}
