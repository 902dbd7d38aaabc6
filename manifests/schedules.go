package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Timing is when a schedule is due: one of the two.
type Timing struct {
	Cron  string
	Every time.Duration // whole seconds
}

// minInterval and maxInterval bound the interval of a schedule. The scheduler
// may be set to a longer minimum.
const (
	minInterval = time.Second
	maxInterval = 366 * 24 * time.Hour
)

// reference marks a value of a schedule that is looked up in the config.
const reference = "$config."

// referred is the path in the config that a value refers to.
func referred(value string) (path []string, ok bool) {
	rest, ok := strings.CutPrefix(value, reference)
	return strings.Split(rest, "."), ok
}

// Timing is when a schedule is due with a config that CheckConfig accepts.
func (m *Manifest) Timing(s Schedule, config map[string]any) (Timing, error) {
	t, problem := s.timing(config)
	if problem != nil {
		return Timing{}, fmt.Errorf("schedule %s of %s: config.%s: %s", s.Name, m.ID, strings.Join(problem.Path, "."), problem.Fault.Message)
	}
	return t, nil
}

func (s Schedule) timing(config map[string]any) (t Timing, problem *ConfigProblem) {
	text, check := s.Cron, checkCron
	if s.Every != "" {
		text, check = s.Every, checkEvery
	}
	if path, ok := referred(text); ok {
		value := lookup(config, path)
		if value == nil {
			return t, &ConfigProblem{Path: path, Missing: true, Fault: strictyaml.Fault{
				Message: fmt.Sprintf("is required: the schedule %s is timed by it", s.Name),
			}}
		}
		if text, ok = value.(string); !ok {
			return t, &ConfigProblem{Path: path, Fault: *strictyaml.Faultf("must be a string: the schedule %s is timed by it", s.Name)}
		}
		if f := check(text); f != nil {
			return t, &ConfigProblem{Path: path, Fault: *f}
		}
	}
	if s.Every == "" {
		return Timing{Cron: text}, nil
	}
	t.Every, _ = strictyaml.ParseDuration(text) // it was checked
	return t, nil
}

// timingProblems are the values of a config that no schedule can be timed by,
// without those that are known to be wrong already.
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
			if path, ok := referred(value); ok && !m.doc.Faulty(at+field) {
				m.checkReferred(at+field, value, path)
			}
		}
	}
}

// checkReferred checks that the config has, or may have, what a schedule takes
// from it.
func (m *Manifest) checkReferred(at, value string, path []string) {
	parent, last := path[:len(path)-1], path[len(path)-1]
	known := properties(m.ConfigSchema, parent)
	if below, ok := lookup(m.Config, parent).(map[string]any); ok {
		known = append(known, slices.Sorted(maps.Keys(below))...)
	}
	if slices.Contains(known, last) {
		return
	}
	f := strictyaml.Fault{Message: fmt.Sprintf("%q refers to nothing: neither config nor config_schema has %s", value, strings.Join(path, "."))}
	if guess := strictyaml.Suggest(last, known); guess != "" {
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

// orReference lets a value be one of the config instead of being what check
// wants.
func orReference(check func(string) *strictyaml.Fault) func(string) *strictyaml.Fault {
	return func(s string) *strictyaml.Fault {
		path, ok := referred(s)
		switch {
		case !ok && strings.HasPrefix(s, "$"):
			return strictyaml.Faultf("%q is no reference: write $config. and a key of the config, such as $config.every", s)
		case !ok:
			return check(s)
		case slices.Contains(path, ""):
			return strictyaml.Faultf("%q names no key of the config", s)
		}
		return nil
	}
}
