package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

func TestThePageMayBeSetUpUnderWeb(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		web, page  []string // settings; nil: it doesn't start
	}{
		{"nothing", "", nil, nil},
		{"the tools", "web: {config: {searxng: \"http://a:1\"}}", []string{"searxng"}, nil},
		{"the tools as they are", "web: {}", []string{}, nil},
		{"the page", "web: {config: {listen: \"127.0.0.1:1\"}}", nil, []string{"listen"}},
		{"the page, switched off", "web: {enabled: false, config: {listen: \"127.0.0.1:1\"}}", nil, nil},
		{"both", "web: {config: {url: \"https://a\", searxng: \"http://a:1\"}}", []string{"searxng"}, []string{"url"}},
		{"both by their names", "web: {config: {url: \"https://a\"}}, web_channel: {config: {listen: \"127.0.0.1:1\"}}", nil,
			[]string{"listen", "url"}},
	} {
		cfg, err := config.Parse("config.yaml", []byte("extensions: {"+c.text+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for id, want := range map[string][]string{"web": c.web, "web_channel": c.page} {
			if runs := cfg.EnabledExtension(id, true); runs != (want != nil) {
				t.Errorf("%s: %s starts: %v", c.name, id, runs)
			}
			if got := slices.Sorted(maps.Keys(cfg.Extensions[id].Config)); want != nil && !slices.Equal(got, want) {
				t.Errorf("%s: %s has the settings %v, want %v", c.name, id, got, want)
			}
		}
	}
}

func TestAMistakeOfThePageIsShownWhereItStands(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("config.yaml", []byte("extensions:\n  web:\n    config:\n      listen: everywhere\n"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := manifests.LoadBuiltin(manifests.FS, "")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(e manifests.Entry) bool { return e.ID == "web_channel" })
	if _, err := cfg.Effective(all[i].Manifest); err == nil || !strings.Contains(err.Error(), "config.yaml:4:") {
		t.Errorf("the mistake is reported as: %v", err)
	}
}
