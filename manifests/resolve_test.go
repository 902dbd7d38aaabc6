package manifests_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/manifests"
)

// entry builds an entry from "id", its requirements and more lines.
func entry(t interface{ Fatal(...any) }, id string, requires []string, more string) manifests.Entry {
	file := "x/" + id + "/manifest.yaml"
	m, err := manifests.Parse(file, fmt.Appendf(nil,
		"api: 1\nid: %s\nname: n\nversion: 1.0.0\nrun: {command: ./x}\n%s\nrequires: {extensions: [%s]%s}\n",
		id, before(more, "kernel"), strings.Join(requires, ", "), after(more, "kernel")))
	if err != nil {
		t.Fatal(err)
	}
	return manifests.Entry{ID: id, File: file, Manifest: m}
}

func before(s, mark string) string {
	if strings.HasPrefix(s, mark) {
		return ""
	}
	return s
}

func after(s, mark string) string {
	if strings.HasPrefix(s, mark) {
		return ", " + s
	}
	return ""
}

func levels(s *manifests.Set) string {
	var out []string
	for _, l := range s.Levels {
		var ids []string
		for _, m := range l {
			ids = append(ids, m.ID)
		}
		out = append(out, strings.Join(ids, " "))
	}
	return strings.Join(out, " | ")
}

func reasons(s *manifests.Set) string {
	var out []string
	for _, d := range s.Disabled {
		out = append(out, fmt.Sprintf("%s (%s): %s", d.ID, d.Cause, d.Reason))
	}
	return strings.Join(out, "\n")
}

func TestResolve(t *testing.T) {
	t.Parallel()
	e := func(id string, requires ...string) manifests.Entry { return entry(t, id, requires, "") }
	with := func(id, more string, requires ...string) manifests.Entry { return entry(t, id, requires, more) }
	broken := manifests.Entry{ID: "bad", File: "x/bad/manifest.yaml",
		Err: errors.New("x/bad/manifest.yaml:1:1: api: is required")}
	stale := e("a")
	stale.Err = errors.New("edited badly")
	for name, tc := range map[string]struct {
		entries      []manifests.Entry
		options      manifests.Options
		levels, away string
	}{
		"order": {
			entries: []manifests.Entry{e("d", "b", "c"), e("b", "a"), e("c", "a"), e("a"), e("z")},
			levels:  "a z | b c | d",
		},
		"a bad one takes its dependants along, and nothing else": {
			entries: []manifests.Entry{broken, e("a"), e("b", "bad"), e("c", "b"), e("d", "a")},
			levels:  "a | d",
			away: `bad (invalid): x/bad/manifest.yaml:1:1: api: is required
b (dependency): it requires the extension bad, which does not start (invalid)
c (dependency): it requires the extension b, which does not start (dependency)`,
		},
		"the last good one counts": {entries: []manifests.Entry{stale, e("b", "a")}, levels: "a | b"},
		"missing": {
			entries: []manifests.Entry{e("a", "nowhere"), e("b", "a"), e("c")},
			levels:  "c",
			away: `a (missing): it requires the extension nowhere, which is not installed
b (dependency): it requires the extension a, which does not start (missing)`,
		},
		"circle": {
			entries: []manifests.Entry{e("a", "b"), e("b", "c"), e("c", "a"), e("d", "a"), e("f"), e("g", "h"), e("h", "g")},
			levels:  "f",
			away: `a (cycle): it requires itself: a -> b -> c -> a
b (cycle): it requires itself: b -> c -> a -> b
c (cycle): it requires itself: c -> a -> b -> c
d (dependency): it requires the extension a, which does not start (cycle)
g (cycle): it requires itself: g -> h -> g
h (cycle): it requires itself: h -> g -> h`,
		},
		"two circles through one": {
			entries: []manifests.Entry{e("a", "b", "c"), e("b", "a"), e("c", "a")},
			away: `a (cycle): it requires itself: a -> b -> a
b (cycle): it requires itself: b -> a -> b
c (cycle): it requires itself: c -> a -> c`,
		},
		"same id": {
			entries: []manifests.Entry{e("a"), {ID: "a", File: "home/a/manifest.yaml", Manifest: e("a").Manifest}, e("b", "a")},
			levels:  "a | b",
			away:    `a (duplicate): x/a/manifest.yaml already has the id a, and the first one starts`,
		},
		"commands": {
			entries: []manifests.Entry{
				with("a", "provides: {commands: [photo]}"),
				with("b", "provides: {commands: [voice, photo]}"),
				with("c", "provides: {commands: [voice]}"), e("d", "b"),
			},
			levels: "a c",
			away: `b (clash): a already has the command /photo, and the first one starts
d (dependency): it requires the extension b, which does not start (clash)`,
		},
		"who does not start claims nothing": {
			entries: []manifests.Entry{with("a", "provides: {commands: [photo]}", "gone"),
				with("b", "provides: {commands: [photo]}")},
			levels: "b",
			away:   `a (missing): it requires the extension gone, which is not installed`,
		},
		"kernel version": {
			entries: []manifests.Entry{with("a", `kernel: ">=0.1"`), with("b", "kernel: ^2"), e("c", "b"),
				with("d", `kernel: "<0.2.0"`)},
			options: manifests.Options{KernelVersion: "0.1.0-dev"},
			levels:  "a d",
			away: `b (kernel): it requires kernel ^2, and this is 0.1.0-dev
c (dependency): it requires the extension b, which does not start (kernel)`,
		},
		"kernel without a version": {
			entries: []manifests.Entry{with("b", "kernel: ^2")}, options: manifests.Options{KernelVersion: "(devel)"},
			levels: "b",
		},
		"switched off": {
			entries: []manifests.Entry{e("a"), e("b", "a"), e("c")},
			options: manifests.Options{Enabled: func(id string, _ bool) bool { return id != "a" }},
			levels:  "c",
			away: `a (disabled): not enabled in the configuration (extensions.a.enabled)
b (dependency): it requires the extension a, which does not start (disabled)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := manifests.Resolve(tc.entries, tc.options)
			if diff := cmp.Diff(tc.levels, levels(set)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.away, reasons(set)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever requires whatever: everybody is in exactly one place, starts after
// what it requires, and stays out only for a reason.
func TestResolveRandom(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g", "missing"}
	seed.Check(t, func(t *rapid.T) {
		var entries []manifests.Entry
		requires := map[string][]string{}
		for _, id := range names[:7] {
			deps := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID[string]).Draw(t, id)
			deps = slices.DeleteFunc(deps, func(d string) bool { return d == id })
			requires[id] = deps
			entries = append(entries, entry(t, id, deps, ""))
		}
		set := manifests.Resolve(entries, manifests.Options{})
		started := map[string]bool{}
		for _, level := range set.Levels {
			for _, m := range level {
				for _, d := range requires[m.ID] {
					if !started[d] {
						t.Fatalf("%s starts before %s", m.ID, d)
					}
				}
			}
			for _, m := range level {
				if started[m.ID] {
					t.Fatalf("%s starts twice", m.ID)
				}
				started[m.ID] = true
			}
		}
		if len(started)+len(set.Disabled) != len(entries) {
			t.Fatalf("%d of %d are accounted for", len(started)+len(set.Disabled), len(entries))
		}
		for _, d := range set.Disabled {
			if !slices.ContainsFunc(requires[d.ID], func(r string) bool { return !started[r] }) {
				t.Fatalf("%s is disabled for nothing: %s", d.ID, d.Reason)
			}
			if d.Cause == manifests.Cycle && !slices.Contains(d.Others, d.ID) {
				t.Fatalf("the circle of %s does not hold it: %v", d.ID, d.Others)
			}
		}
	})
}
