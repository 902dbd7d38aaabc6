package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Timing is the timing of a schedule: one field is set.
type Timing struct {
	Cron  string
	Every time.Duration // whole seconds
}

// minInterval and maxInterval bound the interval of a schedule. The scheduler may have a
// longer minimum.
const (
	minInterval = time.Second
	maxInterval = 366 * 24 * time.Hour
)

// reference is the prefix of a value taken from the config.
const reference = "$config."

// parseReference returns the path in the config that a value refers to.
func parseReference(value string) (path []string, ok bool) {
	rest, ok := strings.CutPrefix(value, reference)
	return strings.Split(rest, "."), ok
}

// Timing returns the timing of a schedule with a config that CheckConfig accepts.
func (m *Manifest) Timing(s Schedule, config map[string]any) (Timing, error) {
	t, problem := s.timing(config)
	if problem != nil {
		return Timing{}, fmt.Errorf("schedule %s of %s: config.%s: %s",
			s.Name, m.ID, strings.Join(problem.Path, "."), problem.Fault.Message)
	}
	return t, nil
}

func (s Schedule) timing(config map[string]any) (t Timing, problem *ConfigProblem) {
	text, check := s.Cron, checkCron
	if s.Every != "" {
		text, check = s.Every, checkEvery
	}
	if path, ok := parseReference(text); ok {
		value := lookup(config, path)
		if value == nil {
			return t, &ConfigProblem{Path: path, Missing: true, Fault: strictyaml.Fault{
				Message: fmt.Sprintf("is required: the schedule %s uses it", s.Name),
			}}
		}
		if text, ok = value.(string); !ok {
			fault := strictyaml.Faultf("must be a string: the schedule %s uses it", s.Name)
			return t, &ConfigProblem{Path: path, Fault: *fault}
		}
		if f := check(text); f != nil {
			return t, &ConfigProblem{Path: path, Fault: *f}
		}
	}
	if s.Every == "" {
		return Timing{Cron: text}, nil
	}
	t.Every, _ = strictyaml.ParseDuration(text) // checked above, or by Parse
	return t, nil
}

// timingProblems returns problems with config values that schedules use, except at paths
// with known problems.
func (m *Manifest) timingProblems(config map[string]any, known []ConfigProblem) (out []ConfigProblem) {
	for _, s := range m.Schedules {
		_, p := s.timing(config)
		same := func(other ConfigProblem) bool { return slices.Equal(other.Path, p.Path) }
		if p != nil && !slices.ContainsFunc(known, same) && !slices.ContainsFunc(out, same) {
			out = append(out, *p)
		}
	}
	return out
}

func lookup(config map[string]any, path []string) any {
	var value any = config
	for _, step := range path {
		below, _ := value.(map[string]any)
		value = below[step]
	}
	return value
}

func (m *Manifest) checkSchedules() {
	for i, s := range m.Schedules {
		at := strictyaml.Path("schedules", i)
		hasCron, hasEvery := m.doc.Has(at+".cron"), m.doc.Has(at+".every")
		switch {
		case hasCron && hasEvery:
			m.doc.Report(at+".every", "cron and every exclude each other: remove one")
		case !hasCron && !hasEvery && m.doc.Has(at):
			m.doc.Report(at, "needs cron (such as \"0 3 * * *\") or every (such as 10m)")
		}
		for field, value := range map[string]string{".cron": s.Cron, ".every": s.Every} {
			if path, ok := parseReference(value); ok && !m.doc.Faulty(at+field) {
				m.checkReference(at+field, value, path)
			}
		}
	}
}

// checkReference checks that config or config_schema has the key that a value refers to.
func (m *Manifest) checkReference(at, value string, path []string) {
	parent, last := path[:len(path)-1], path[len(path)-1]
	known := properties(m.ConfigSchema, parent)
	if below, ok := lookup(m.Config, parent).(map[string]any); ok {
		known = append(known, slices.Sorted(maps.Keys(below))...)
	}
	if slices.Contains(known, last) {
		return
	}
	f := strictyaml.Fault{
		Message: fmt.Sprintf("%q: neither config nor config_schema has %s", value, strings.Join(path, ".")),
	}
	if guess := near.Best(last, known); guess != "" {
		f.Suggestion = reference + strings.Join(append(slices.Clone(parent), guess), ".")
	}
	m.doc.ReportFault(at, f)
}

func checkEvery(s string) *strictyaml.Fault {
	d, err := strictyaml.ParseDuration(s)
	switch {
	case err != nil:
		return strictyaml.Faultf("%s", err)
	case d < minInterval:
		return strictyaml.Faultf("%q is too short: must be at least 1s", s)
	case d > maxInterval:
		return strictyaml.Faultf("%q is too long: must be at most 366d", s)
	case d%time.Second != 0:
		return strictyaml.Faultf("%q must be whole seconds", s)
	}
	return nil
}

// orReference accepts a reference to the config, or a value that check accepts.
func orReference(check func(string) *strictyaml.Fault) func(string) *strictyaml.Fault {
	return func(s string) *strictyaml.Fault {
		path, ok := parseReference(s)
		switch {
		case !ok && strings.HasPrefix(s, "$"):
			return strictyaml.Faultf("%q is not a reference: write $config.<key>, such as $config.every", s)
		case !ok:
			return check(s)
		case slices.Contains(path, ""):
			return strictyaml.Faultf("%q has no key: write $config.<key>", s)
		}
		return nil
	}
}
