package install

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// indexFile is the name of an index in a directory.
const indexFile = "index.yaml"

// Entries is the content of an index.
type Entries struct {
	API        int     `yaml:"api,required" min:"1" max:"1"`
	Publisher  string  `yaml:"publisher" check:"text"`
	Extensions []Entry `yaml:"extensions"`
}

// Entry is one version of an extension in an index.
type Entry struct {
	Name        string `yaml:"name,required" check:"id"`
	Version     string `yaml:"version,required" check:"version"`
	Kernel      string `yaml:"kernel" check:"semver_range"` // empty: any
	Archive     string `yaml:"archive,required" check:"archive"`
	SHA256      string `yaml:"sha256,required" check:"sha256"`
	Description string `yaml:"description"`
	Publisher   string `yaml:"publisher" check:"text"`
}

var sha256Syntax = regexp.MustCompile(`^[0-9A-Fa-f]{64}$`)

var indexChecks = func() strictyaml.Checks {
	all := strictyaml.Checks{}
	for _, name := range []string{"id", "version", "semver_range", "text"} {
		all[name] = manifests.Checks[name]
	}
	all["sha256"] = func(s string) *strictyaml.Fault {
		if !sha256Syntax.MatchString(s) {
			return strictyaml.Faultf("must have 64 hexadecimal digits, as sha256sum prints them")
		}
		return nil
	}
	all["archive"] = func(s string) *strictyaml.Fault {
		switch {
		case hasScheme().MatchString(s):
			if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
				return strictyaml.Faultf("%q is not an https address", s)
			}
		case !filepath.IsLocal(filepath.FromSlash(s)) || strings.Contains(s, `\`):
			return strictyaml.Faultf("%q must be an https address, or a path below the index", s)
		}
		return nil
	}
	return all
}()

// ParseIndex parses an index; file is its name for messages. The error has all mistakes.
func ParseIndex(file string, data []byte) (*Entries, error) {
	all := &Entries{}
	doc := strictyaml.Decode(file, data, all, indexChecks)
	seen := map[string]int{}
	for i, e := range all.Extensions {
		if e.Name == "" || e.Version == "" {
			continue
		}
		key := e.Name + " " + e.Version
		if first, twice := seen[key]; twice {
			doc.Report(strictyaml.Path("extensions", i), "extensions[%d] is %s already", first, key)
			continue
		}
		seen[key] = i
	}
	return all, doc.Problems().Err()
}

// find reads an index and returns the entry that from names, its archive as an address or an
// absolute path.
func (i *Installer) find(ctx context.Context, dir string, from Source) (Entry, error) {
	file, base := from.Location, (*url.URL)(nil)
	if hasScheme().MatchString(from.Location) {
		u, err := url.Parse(from.Location)
		if err != nil {
			return Entry{}, err
		}
		if !strings.HasSuffix(u.Path, ".yaml") && !strings.HasSuffix(u.Path, ".yml") { // a directory
			u = u.JoinPath(indexFile)
		}
		base, file = u, filepath.Join(dir, indexFile)
		if err := i.download(ctx, u, file, filewatch.ReadLimit); err != nil {
			return Entry{}, err
		}
		defer os.Remove(file)
	}
	data, err := filewatch.Read(file)
	if err != nil {
		return Entry{}, words.Errorf("read the index: %w", err)
	}
	all, err := ParseIndex(indexFile, data)
	if err != nil {
		return Entry{}, words.Errorf("the index has mistakes:\n%w", err)
	}
	e, err := all.choose(from.Name, from.Version, i.options.KernelVersion)
	if err != nil {
		return e, err
	}
	switch {
	case hasScheme().MatchString(e.Archive):
	case base != nil:
		e.Archive = base.ResolveReference(&url.URL{Path: e.Archive}).String()
	default:
		e.Archive = filepath.Join(filepath.Dir(file), filepath.FromSlash(e.Archive))
	}
	if e.Publisher == "" {
		e.Publisher = all.Publisher
	}
	if e.Publisher == "" {
		e.Publisher = publisherOf(from.Location)
	}
	return e, nil
}

// choose returns the newest version of an extension that runs on this kernel, or the given
// one. A pre-release is chosen only by its version.
func (x *Entries) choose(name, version, kernel string) (Entry, error) {
	var names []string
	var best, newest *Entry
	var versions []string
	for k := range x.Extensions {
		e := &x.Extensions[k]
		names = append(names, e.Name)
		if e.Name != name {
			continue
		}
		versions = append(versions, e.Version)
		v := semver.MustParse(e.Version)
		if version != "" && e.Version != version || version == "" && v.Prerelease() != "" {
			continue
		}
		if newest == nil || v.GreaterThan(semver.MustParse(newest.Version)) {
			newest = e
		}
		if manifests.KernelFits(e.Kernel, kernel) && (best == nil || v.GreaterThan(semver.MustParse(best.Version))) {
			best = e
		}
	}
	switch {
	case best != nil:
		return *best, nil
	case newest != nil:
		return Entry{}, words.Errorf("%s %s needs kernel %s, and this is %s: update Switchboard first",
			name, newest.Version, newest.Kernel, kernel)
	case len(versions) > 0:
		return Entry{}, words.Errorf("the index has no version %s of %s; it has %s", version, name,
			strings.Join(versions, ", "))
	}
	if s := near.Best(name, names); s != "" {
		return Entry{}, words.Errorf("the index has no extension %s (did you mean %s?)", name, s)
	} else if names = slices.Compact(slices.Sorted(slices.Values(names))); len(names) > 0 {
		return Entry{}, words.Errorf("the index has no extension %s; it has %s", name,
			strings.Join(names[:min(len(names), 10)], ", "))
	}
	return Entry{}, words.Errorf("the index has no extension %s", name)
}
