package metering

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
)

// maxCurrencies bounds the currencies of one sum: a provider reports them.
const maxCurrencies = 8

// Sum is the cost of several completions. It is stored as JSON.
type Sum struct {
	Calls     int64 `json:"calls"`
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Cached    int64 `json:"cached,omitempty"`    // input tokens that came from a cache of the provider
	Estimated int64 `json:"estimated,omitempty"` // calls whose tokens the provider did not report
	// Costs is the money by its currency, in millionths.
	Costs map[string]int64 `json:"costs,omitempty"`
}

// Add adds a completion.
func (s *Sum) Add(u contract.ModelUsage) {
	s.Calls++
	s.Input += u.InputTokens
	s.Output += u.OutputTokens
	s.Cached += u.CachedTokens
	if s.Costs == nil {
		s.Costs = map[string]int64{}
	}
	if _, known := s.Costs[u.Currency]; u.CostMicros > 0 && (known || len(s.Costs) < maxCurrencies) {
		s.Costs[u.Currency] += u.CostMicros
	}
	if u.Estimated {
		s.Estimated++
	}
}

// Key names the sum of one day, agent and model, for one account or for no person.
type Key struct{ Day, Agent, Person, Model string }

// String formats a key as <day>/<agent>[~<account>]/<model>.
func (k Key) String() string {
	return k.Day + "/" + strings.TrimSuffix(k.Agent+"~"+k.Person, "~") + "/" + k.Model
}

// ParseKey parses what Key.String returns.
func ParseKey(s string) (k Key, ok bool) {
	parts := strings.SplitN(s, "/", 3)
	if len(parts) != 3 {
		return k, false
	}
	k.Day, k.Model = parts[0], parts[2]
	k.Agent, k.Person, _ = strings.Cut(parts[1], "~")
	return k, true
}

// Row is the sum of a Key.
type Row struct {
	Key
	Sum
}

// Tally counts what was spent, by what a limit may be for.
type Tally map[Subject]int64

// Subject is an agent, a model or an account; empty: all together. The unit is a
// currency; empty: tokens.
type Subject struct{ Agent, Model, Account, Unit string }

// Add adds a completion, or with -1 takes it off.
func (t Tally) Add(u *contract.ModelUsage, sign int64) {
	subjects := []Subject{{}, {Agent: u.Agent}, {Model: u.Model}, {Account: u.Person}}
	if u.Person == "" {
		subjects = subjects[:3]
	}
	for _, of := range subjects {
		t[of] += sign * (u.InputTokens + u.OutputTokens)
		of.Unit = u.Currency
		t[of] += sign * u.CostMicros
	}
}

// Counts reports whether the tally of a subject includes a completion.
func (s Subject) Counts(u *contract.ModelUsage) bool {
	return (s.Agent == "" || s.Agent == u.Agent) && (s.Model == "" || s.Model == u.Model) &&
		(s.Account == "" || s.Account == u.Person)
}
