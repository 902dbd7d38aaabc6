package manifests_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/manifests"
)

func TestTiming(t *testing.T) {
	t.Parallel()
	m, err := manifests.Parse(file, []byte(head+`schedules:
- {name: a, every: $config.every, topic: a.b}
- {name: b, cron: $config.deep.cron, topic: a.b}
- {name: c, every: 90s, topic: a.b}
- {name: d, cron: "0 3 * * *", topic: a.b}
- {name: e, every: $config.later, topic: a.b}
config: {every: 10m, deep: {cron: "* * * * *"}}
config_schema: {type: object, properties: {later: {type: string}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"every": "1d", "deep": map[string]any{"cron": "*/5 * * * *"}, "later": "2h"}
	want := []manifests.Timing{{Every: 24 * time.Hour}, {Cron: "*/5 * * * *"}, {Every: 90 * time.Second},
		{Cron: "0 3 * * *"}, {Every: 2 * time.Hour}}
	for i, s := range m.Schedules {
		got, err := m.Timing(s, config)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
	}
	if problems := m.CheckConfig(config); len(problems) != 0 {
		t.Errorf("a good config: %+v", problems)
	}
	for name, bad := range map[string]map[string]any{
		"missing": {"every": "1d", "deep": map[string]any{"cron": "*/5 * * * *"}},
		"no text": {"every": "1d", "deep": map[string]any{"cron": "*/5 * * * *"}, "later": true},
		"no time": {"every": "1d", "deep": map[string]any{"cron": "*/5 * * * *"}, "later": "soon"},
	} {
		problems := m.CheckConfig(bad)
		if len(problems) != 1 || !cmp.Equal(problems[0].Path, []string{"later"}) ||
			problems[0].Missing != (name == "missing") {
			t.Errorf("%s: %+v", name, problems)
		}
		if _, err := m.Timing(m.Schedules[4], bad); err == nil {
			t.Errorf("%s: a timing", name)
		}
	}
}
