package home

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent/consenttest"
	"github.com/switchboard-run/switchboard/kernel"
)

// planned is the plan of a home with the agents a, b and c, of which the last
// needs what nobody provides, and with these lines behind the first one of
// config.yaml.
func planned(t *testing.T, lines string) (*files, *plan) {
	t.Helper()
	home, err := config.OpenHomeAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, path ...string) {
		t.Helper()
		file := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for id, needs := range map[string]string{"a": "", "b": "", "c": "nobody"} {
		manifest := fmt.Sprintf("api: 1\nid: %[1]s\nname: Agent %[1]s\nversion: 1.0.0\ndescription: Is %[1]s.\nrequires: "+
			"{extensions: [%[2]s]}\nagent: {instructions: You are %[1]s.}\n", id, needs)
		write(manifest, home.Extensions(), id, "manifest.yaml")
		if err := consenttest.Allow(home.Path(), id, manifest); err != nil {
			t.Fatal(err)
		}
	}
	write("timezone: Europe/Berlin\n"+lines, home.Config())
	o := Options{
		Home: home, Env: func(string) (string, bool) { return "", false }, Builtins: os.DirFS("../manifests"),
		BuiltinsPrefix: "manifests",
		Builtin:        func(members []string) []string { return members },
	}
	live := config.Open(home, o.Env)
	f, err := openFiles(o, live)
	if err != nil {
		t.Fatal(err)
	}
	if err, _ := live.Errors(); err != nil {
		t.Fatal(err)
	}
	return f, f.plan(nil)
}

// liveOf reads the files of a home again, with the environment of the options.
func liveOf(t *testing.T, f *files) *config.Live {
	t.Helper()
	live := config.Open(f.options.Home, f.options.Env)
	if err, _ := live.Errors(); err != nil {
		t.Fatal(err)
	}
	return live
}

// specOf is an extension of a plan as the kernel gets it.
func specOf(t *testing.T, f *files, p *plan, id string) kernel.Spec {
	t.Helper()
	specs := f.specs(p)
	i := slices.IndexFunc(specs, func(s kernel.Spec) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("there is no extension %s", id)
	}
	return specs[i]
}

// linksOf returns the links in the extension's config.
func linksOf(t *testing.T, f *files, p *plan) []plannedLink {
	t.Helper()
	var c struct{ Links []plannedLink }
	if err := json.Unmarshal(specOf(t, f, p, "links").Config, &c); err != nil {
		t.Fatal(err)
	}
	return c.Links
}

func TestALinkThatCannotBeInForceIsAProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lines, problem string }{
		"nobody has the id": {"links: [{from: a, to: bb}]",
			`config.yaml:2:23: links[0].to: there is no agent "bb" (did you mean b?)`},
		"the first one is unknown": {"links:\n- {from: zebra, to: a}",
			`config.yaml:3:10: links[0].from: there is no agent "zebra"`},
		"it is no agent": {"links: [{from: a, to: memory}]",
			`config.yaml:2:23: links[0].to: "memory" is not an agent, so this link is not in force`},
		"it is not enabled": {"agents: {enabled: [a]}\nlinks: [{from: b, to: a}]",
			`config.yaml:3:16: links[0].from: the agent "b" is not in agents.enabled, so this link is not in force`},
		"it is switched off": {"extensions: {b: {enabled: false}}\nlinks: [{from: a, to: b}]",
			`config.yaml:3:23: links[0].to: the agent "b" is disabled or cannot start, so this link is not in force`},
		"it cannot start": {"links: [{from: a, to: c}]",
			`config.yaml:2:23: links[0].to: the agent "c" is disabled or cannot start, so this link is not in force`},
		"the extension is off": {"extensions: {links: {enabled: false}}\nlinks: [{from: a, to: b}]",
			`config.yaml:3:9: links[0]: links are not in force: the extension links is disabled or cannot start`},
		"another one is in force": {"links: [{from: a, to: b}, {from: b, to: zebra}]",
			`config.yaml:2:41: links[1].to: there is no agent "zebra"`},
		"both of its agents are bad": {"links: [{from: c, to: zebra}]",
			`config.yaml:2:16: links[0].from: the agent "c" is disabled or cannot start, so this link is not in force`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, p := planned(t, c.lines)
			if len(p.linkProblems) != 1 || !strings.HasSuffix(p.linkProblems[0].String(), c.problem) {
				t.Fatalf("the problems are %q, want %q", p.linkProblems, c.problem)
			}
			if p.members["a"] == nil {
				t.Error("the agent a does not run")
			}
			if p.members["links"] == nil {
				return
			}
			found := linksOf(t, f, p)
			if last := found[len(found)-1]; last.Problem != p.linkProblems[0].String() {
				t.Errorf("the extension is told %+v", last)
			}
			if len(found) > 1 && found[0].Problem != "" {
				t.Errorf("the extension is told %+v", found[0])
			}
		})
	}
}

// What is wrong with the pair itself is an error of the file.
func TestALinkToItselfOrASecondOneOfAPairIsAnErrorOfTheFile(t *testing.T) {
	t.Parallel()
	for lines, problem := range map[string]string{
		"links: [{from: a, to: a}]":                      `config.yaml:1:23: links[0].to: "a" cannot be linked to itself`,
		"links: [{from: a, to: b}, {from: a, to: b}]":    `config.yaml:1:27: links[1]: links[0] already links a and b`,
		"links:\n- {from: a, to: b}\n- {from: b, to: a}": `config.yaml:3:3: links[1]: links[0] already links b and a`,
	} {
		_, err := config.Parse("config.yaml", []byte(lines))
		if err == nil || err.Error() != problem {
			t.Errorf("%s: %v, want %s", lines, err, problem)
		}
	}
}

func TestAgentsThatAreLinkedCanTalk(t *testing.T) {
	t.Parallel()
	f, p := planned(t, "links: [{from: a, to: b, mode: task, max_messages: 7, idle: 90s}]")
	if len(p.linkProblems) != 0 {
		t.Fatalf("the problems are %q", p.linkProblems)
	}
	want := plannedLink{From: "a", To: "b", FromAbout: "Agent a: Is a.", ToAbout: "Agent b: Is b.", Mode: "task",
		MaxMessages: 7, IdleSeconds: 90}
	if found := linksOf(t, f, p); !slices.Equal(found, []plannedLink{want}) {
		t.Errorf("the extension is told %+v, want %+v", found, want)
	}
	for _, id := range []string{"a", "b"} {
		spec := specOf(t, f, p, id).Agent.Spec
		if !slices.Contains(spec.GetUsesTools(), "links/*") || !slices.Contains(spec.GetContext(), "links/peers") {
			t.Errorf("%s has the tools %q and the context %q", id, spec.GetUsesTools(), spec.GetContext())
		}
		if own := p.members[id].manifest.Agent; slices.Contains(own.UsesTools, "links/*") ||
			slices.Contains(own.Context, "links/peers") {
			t.Errorf("the manifest of %s was changed: %+v", id, own)
		}
	}
	f, p = planned(t, "")
	if spec := specOf(t, f, p, "a").Agent.Spec; slices.Contains(spec.GetContext(), "links/peers") {
		t.Errorf("an agent without links is asked about them: %q", spec.GetContext())
	}
}

// A problem is said when it is new, and not with each change of a file.
func TestAProblemOfALinkIsSaidOnce(t *testing.T) {
	t.Parallel()
	_, before := planned(t, "links: [{from: a, to: zebra}]")
	if fresh := newProblems(nil, before); len(fresh) != 1 {
		t.Errorf("at the start: %q", fresh)
	}
	if fresh := newProblems(before, &plan{linkProblems: slices.Clone(before.linkProblems)}); len(fresh) != 0 {
		t.Errorf("and again: %q", fresh)
	}
}
