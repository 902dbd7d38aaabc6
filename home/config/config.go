// Package config reads the user's settings (config.yaml, secrets.env and the
// environment) and locates the home, which holds all state.
//
// Everything is optional; a missing file means the defaults. All mistakes in a
// file are reported at once, with their positions. Live keeps the last valid
// version of each file in force. The environment overrides secrets.env.
//
// A *Config and a *Secrets are immutable and may be shared. The syntax of ids of
// extensions, agents and channels is checked here; References and the router check
// that they exist.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

type (
	// Problem is one mistake in a file.
	Problem = strictyaml.Problem
	// Problems are all mistakes in a file, as an error.
	Problems = strictyaml.Problems
)

// Config is the content of config.yaml, with defaults for missing values.
type Config struct {
	Timezone string `yaml:"timezone" check:"timezone"` // empty: the machine's, see Zone
	// Processes selects which built-ins share a process. A process of its own costs
	// about 5 MiB, has its own secrets and sandbox, and crashes alone.
	Processes string `yaml:"processes" default:"shared" enum:"shared|grouped|separate"`
	// Sandbox limits extensions to what their manifests declare.
	Sandbox    string               `yaml:"sandbox" default:"auto" enum:"auto|required|off"`
	Approve    []string             `yaml:"approve" check:"tool_pattern" unique:"-"` // tools that need a person's approval
	Agents     Agents               `yaml:"agents"`
	Channels   Channels             `yaml:"channels"`
	Models     Models               `yaml:"models"`
	People     map[string]Budget    `yaml:"people" keys:"text"` // by their names
	Links      []Link               `yaml:"links"`
	Retention  Retention            `yaml:"retention"`
	Files      Files                `yaml:"files"`
	Backup     Backup               `yaml:"backup"`
	MCP        MCP                  `yaml:"mcp"`
	Extensions map[string]Extension `yaml:"extensions" keys:"id"`

	doc *strictyaml.Document
}

// Agents configures the agents and which one answers in which channel. The default
// of Default applies only if that agent is enabled; otherwise Default is empty
// unless the file sets it.
type Agents struct {
	Default string            `yaml:"default" default:"orchestrator" check:"id"`
	Enabled []string          `yaml:"enabled" check:"id" unique:"-"` // nil: all; empty: none
	Routing map[string]string `yaml:"routing" alias:"channel_map" check:"id" keys:"id"`
	ByID    map[string]Agent  `yaml:",rest" keys:"id"`
}

// Agent holds the settings of one agent.
type Agent struct {
	// Tools change its uses_tools: +<extension>/<tool> adds, -<extension>/* takes away.
	Tools []string `yaml:"tools" check:"tool_change" unique:"-"`
}

// Channels are the settings for all channels and for each.
type Channels struct {
	Default string             `yaml:"default" check:"id"`
	Hold    time.Duration      `yaml:"hold" default:"15m" min:"0s"` // how long sends wait for an offline channel
	ByID    map[string]Channel `yaml:",rest" keys:"id"`
}

// Channel.Uncertain: how to handle a send whose outcome is unknown.
const (
	UncertainResend = "resend" // send it again, with a visible mark
	UncertainHold   = "hold"   // keep it until a person decides
)

// Channel holds the settings of one channel.
type Channel struct {
	AllowFrom []string `yaml:"allow_from" check:"text" unique:"-"` // user ids, "*": everyone
	Uncertain string   `yaml:"uncertain" default:"resend" enum:"resend|hold"`
}

// Of returns the settings of a channel, the defaults if it has none.
func (c Channels) Of(id string) Channel {
	if s, ok := c.ByID[id]; ok {
		return s
	}
	return Channel{Uncertain: UncertainResend}
}

// Models configures which models are used, and how much.
type Models struct {
	Default []string `yaml:"default,single" check:"model_name" unique:"-"` // in order of preference
	Scout   string   `yaml:"scout" check:"model_name"`
	// Transcribe are the models that write down voice messages and audio, in order of
	// preference; empty: they stay files.
	Transcribe  []string         `yaml:"transcribe,single" check:"model_name" unique:"-"`
	DailyTokens map[string]int64 `yaml:"daily_tokens" keys:"token_key" min:"1"` // by model, or TotalTokens
	Concurrency int              `yaml:"concurrency" default:"64" min:"1"`      // completions at a time
	// Currency is that of the prices and limits that name none.
	Currency string  `yaml:"currency" default:"USD" check:"currency"`
	Limits   []Limit `yaml:"limits"`
	// Providers are further servers, by the names that models begin with.
	Providers map[string]Provider `yaml:"providers" keys:"id"`
}

// TimeOfDay is the layout of Backup.At.
const TimeOfDay = "15:04"

// TotalTokens is the key in DailyTokens of the limit for all models together.
const TotalTokens = "total"

// Config.Processes.
const (
	ProcessesShared   = "shared"   // all that have a group share one process
	ProcessesGrouped  = "grouped"  // those of a group share a process
	ProcessesSeparate = "separate" // each has its own
)

// Config.Sandbox.
const (
	SandboxAuto     = "auto"     // as far as the system supports it
	SandboxRequired = "required" // without support, dropped-in extensions do not run
	SandboxOff      = "off"
)

// Link lets two agents talk.
type Link struct {
	From        string        `yaml:"from,required" check:"id"`
	To          string        `yaml:"to,required" check:"id"`
	Mode        string        `yaml:"mode" default:"conversation" enum:"conversation|task"`
	MaxMessages int           `yaml:"max_messages" default:"20" min:"1"` // of an exchange, both sides
	Idle        time.Duration `yaml:"idle" default:"30m" min:"1s"`
}

// Retention is how long settled and dead events are kept, and how far back the state of a
// cluster can be restored.
type Retention struct {
	Events  time.Duration `yaml:"events" default:"30d" min:"1h"`
	Dead    time.Duration `yaml:"dead" default:"90d" min:"1h"`
	Restore time.Duration `yaml:"restore" default:"7d" min:"1h"`
}

// Files bounds the files that come with messages.
type Files struct {
	File      strictyaml.Bytes `yaml:"file" default:"50MiB" min:"1MiB"`     // the largest one
	Extension strictyaml.Bytes `yaml:"extension" default:"2GiB" min:"1MiB"` // all that one extension stored
	Total     strictyaml.Bytes `yaml:"total" default:"10GiB" min:"1MiB"`
}

// Backup configures nightly backups.
type Backup struct {
	Nightly bool   `yaml:"nightly" default:"true"`
	At      string `yaml:"at" default:"03:30" check:"time_of_day"` // in Zone
	Keep    int    `yaml:"keep" default:"7" min:"1"`               // number of nightly backups
}

// Extension holds the settings of one extension.
type Extension struct {
	Enabled bool `yaml:"enabled" default:"true"`
	Sandbox bool `yaml:"sandbox" default:"true"` // false: no sandbox, also for those in its process
	// Data wins over data in the manifest; empty: that counts.
	Data   string         `yaml:"data" enum:"cache|pinned"`
	Config map[string]any `yaml:"config"` // see Effective
	// Allow is the owner's consent without a question: true, or of the extension mcp the
	// names of servers in mcp.json.
	Allow any `yaml:"allow"`
}

// Allows reports whether the configuration allows an extension what it asks for.
func (c *Config) Allows(id string) bool { return c.Extensions[id].Allow == true }

// AllowedServers returns the names of the MCP servers that the owner allowed.
func (c *Config) AllowedServers() (names []string) {
	list, _ := c.Extensions["mcp"].Allow.([]any)
	for _, entry := range list {
		if name, ok := entry.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// checkAllow checks the values of extensions.<id>.allow.
func (c *Config) checkAllow() {
	for id, e := range c.Extensions {
		at := strictyaml.Path("extensions", id, "allow")
		list, isList := e.Allow.([]any)
		_, isFlag := e.Allow.(bool)
		switch {
		case e.Allow == nil:
		case id == "mcp" && !isList:
			c.doc.Report(at, "expected a list of servers in mcp.json, such as [github]")
		case id != "mcp" && !isFlag:
			c.doc.Report(at, "expected true or false")
		}
		for i, entry := range list {
			if _, ok := entry.(string); !ok {
				c.doc.Report(strictyaml.Path("extensions", id, "allow", i), "expected the name of a server in mcp.json")
			}
		}
	}
}

// Sandboxed reports whether the configuration wants an extension limited.
func (c *Config) Sandboxed(id string) bool {
	e, ok := c.Extensions[id]
	return c.Sandbox != SandboxOff && (!ok || e.Sandbox)
}

// WhyUnconfined tells the owner why an extension has no sandbox.
func (c *Config) WhyUnconfined(id string) string {
	if c.Sandbox == SandboxOff {
		return "switched off in config.yaml (sandbox)"
	}
	return "switched off in config.yaml (extensions." + id + ".sandbox)"
}

// EnabledExtension reports whether an extension may start: one that is not
// optional unless it is disabled, an optional one if the configuration names it.
func (c *Config) EnabledExtension(id string, optional bool) bool {
	e, ok := c.Extensions[id]
	return e.Enabled || !ok && !optional
}

var checks = func() strictyaml.Checks {
	all := strictyaml.Checks{}
	maps.Copy(all, manifests.Checks)
	all["model_name"] = checkModelName
	all["model_id"] = checkModelID
	all["currency"] = func(s string) *strictyaml.Fault {
		if !currency.MatchString(s) {
			return strictyaml.Faultf("%q is not a currency: write its three letters, such as EUR", s)
		}
		return nil
	}
	all["key_name"] = checkKeyName
	all["cell"] = checkCell
	all["host_port"] = checkHostPort
	all["base_url"] = checkBaseURL
	all["vision"] = checkVision
	all["time_of_day"] = func(s string) *strictyaml.Fault {
		if _, err := time.Parse(TimeOfDay, s); err != nil {
			return strictyaml.Faultf("%q is not a time of day: write hours and minutes, such as 03:30", s)
		}
		return nil
	}
	all["tool_change"] = func(s string) *strictyaml.Fault {
		pattern := strings.TrimLeft(s, "+-")
		if len(s)-len(pattern) == 1 && manifests.Checks["tool_pattern"](pattern) == nil {
			return nil
		}
		f := strictyaml.Faultf("%q is neither +<extension>/<tool> nor -<extension>/<tool>; the tool may be *", s)
		if manifests.Checks["tool_pattern"](s) == nil {
			f.Suggestion = "+" + s
		}
		return f
	}
	all["token_key"] = func(s string) *strictyaml.Fault {
		if s == TotalTokens {
			return nil
		}
		return checkModelName(s)
	}
	return all
}()

func checkModelName(s string) *strictyaml.Fault {
	if s == "default" || s == "scout" || manifests.Checks["model"](s) != nil {
		return strictyaml.Faultf("%q is not a model: write <provider>/<model>, such as openai/gpt-4.1-mini", s)
	}
	return nil
}

// Default returns the configuration of an absent file.
func Default() *Config {
	c, err := Parse("config.yaml", nil)
	if err != nil {
		panic("config: the defaults are not valid: " + err.Error())
	}
	return c
}

// Parse parses a config.yaml; file is its name for messages. The error is a
// Problems with all mistakes.
func Parse(file string, data []byte) (*Config, error) {
	c := &Config{}
	c.doc = strictyaml.Decode(file, data, c, checks)
	c.checkRelations()
	c.checkProviders()
	c.checkLimits()
	c.allowMCPClients()
	c.splitWeb()
	c.checkAllow()
	if err := c.doc.Problems().Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Load reads a config.yaml; a missing file means the defaults.
func Load(file string) (*Config, error) {
	data, err := filewatch.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(file, data)
}

// checkRelations checks values against each other.
func (c *Config) checkRelations() {
	if !c.doc.Has("agents.default") && (c.Agents.Enabled != nil || !c.EnabledExtension(c.Agents.Default, false)) {
		c.Agents.Default = ""
	}
	a := c.Agents
	if a.Default != "" && c.doc.Has("agents.enabled") && !c.doc.Faulty("agents.enabled") &&
		!slices.Contains(a.Enabled, a.Default) {
		c.doc.ReportFault("agents.default", strictyaml.Fault{
			Message:    fmt.Sprintf("%q is not in agents.enabled", a.Default),
			Suggestion: near.Best(a.Default, a.Enabled),
		})
	}
	pairs := map[[2]string]int{}
	for i, l := range c.Links {
		at := strictyaml.Path("links", i)
		if l.From == "" || l.To == "" {
			continue
		}
		if l.From == l.To {
			c.doc.Report(at+".to", "%q cannot be linked to itself", l.To)
			continue
		}
		key := [2]string{min(l.From, l.To), max(l.From, l.To)}
		if first, ok := pairs[key]; ok {
			c.doc.Report(at, "links[%d] already links %s and %s", first, l.From, l.To)
			continue
		}
		pairs[key] = i
	}
}
