package install

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract/words"
)

// Kind is the kind of a Source.
type Kind string

// Kinds of sources.
const (
	Directory Kind = "directory"
	Archive   Kind = "archive"
	Git       Kind = "git"
	Index     Kind = "index"
)

// Source is where an extension comes from.
type Source struct {
	Kind     Kind   `json:"kind"`
	Location string `json:"location"`          // an absolute path or a URL; of an index, the index
	Ref      string `json:"ref,omitempty"`     // of a git repository; empty: its default branch
	Name     string `json:"name,omitempty"`    // in an index
	Version  string `json:"version,omitempty"` // in an index; empty: the newest that fits
}

func (s Source) String() string {
	switch {
	case s.Kind == Index && s.Version != "":
		return fmt.Sprintf("%s@%s of %s", s.Name, s.Version, s.Location)
	case s.Kind == Index:
		return fmt.Sprintf("%s of %s", s.Name, s.Location)
	case s.Ref != "":
		return s.Location + "@" + s.Ref
	}
	return s.Location
}

// Most processes never need these.
var (
	indexName = lazy(`^([a-z][a-z0-9_]*)(?:@([0-9A-Za-z.+-]+))?$`)
	// user@host:path
	scpAddress = lazy(`^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^/\\:\s][^\s]*$`)
	hasScheme  = lazy(`^[A-Za-z][A-Za-z0-9+.-]*://`)
)

// lazy returns a regular expression that is compiled when it is first needed.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// ParseSource tells what a person means by a source: a path, a URL, or with an index a name
// in it.
func ParseSource(text, index string) (s Source, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", text, err)
		}
	}()
	switch {
	case text == "":
		return s, words.Errorf("the source is empty: give a directory, an archive, a git URL, or a name and --index")
	case strings.HasPrefix(text, "-"):
		return s, words.Errorf("a source does not begin with a hyphen; write ./ before a path")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return s, words.Errorf("the source has control characters")
	case index != "":
		return fromIndex(text, index)
	case hasScheme().MatchString(text):
		return fromURL(text)
	}
	if path, err := filepath.Abs(text); err == nil {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return Source{Kind: Directory, Location: path}, nil
		} else if err == nil {
			return Source{Kind: Archive, Location: path}, nil
		}
	}
	if scpAddress().MatchString(text) {
		host, path, _ := strings.Cut(text, ":")
		path, ref := splitRef(path)
		return Source{Kind: Git, Location: host + ":" + path, Ref: ref}, checkRef(ref)
	}
	if path, ref := splitRef(text); ref != "" {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			absolute, err := filepath.Abs(path)
			return Source{Kind: Git, Location: absolute, Ref: ref}, errors.Join(err, checkRef(ref))
		}
	}
	if indexName().MatchString(text) {
		return s, words.Errorf("no such file or directory; for a name in an index, add --index")
	}
	return s, words.Errorf("no such file or directory")
}

func fromIndex(text, index string) (s Source, err error) {
	m := indexName().FindStringSubmatch(text)
	if m == nil {
		return s, words.Errorf("with --index, give a name in it, or name@version")
	}
	s = Source{Kind: Index, Location: index, Name: m[1], Version: m[2]}
	if hasScheme().MatchString(index) {
		if _, err := url.Parse(index); err != nil {
			return s, fmt.Errorf("--index: %w", err)
		}
		return s, nil
	}
	if s.Location, err = filepath.Abs(index); err != nil {
		return s, err
	}
	if info, err := os.Stat(s.Location); err == nil && info.IsDir() {
		s.Location = filepath.Join(s.Location, indexFile)
	}
	return s, nil
}

func fromURL(text string) (s Source, err error) {
	scheme, rest, _ := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	bare, isGit := strings.CutPrefix(scheme, "git+")
	switch bare {
	case "https", "http", "ssh", "file":
	default:
		return s, words.Errorf("%s addresses are not supported: use https, ssh or a path", scheme)
	}
	plain, _, _ := strings.Cut(rest, "?")
	if !isGit && (bare == "https" || bare == "http") && isArchiveName(plain) {
		return Source{Kind: Archive, Location: bare + "://" + rest}, nil
	}
	host, path, _ := strings.Cut(rest, "/")
	path, ref := splitRef(path)
	location := bare + "://" + host + "/" + path
	u, err := url.Parse(location)
	if err != nil {
		return s, err
	}
	if _, secret := u.User.Password(); secret {
		return s, words.Errorf("the address has a password, which would be stored: let git ask a credential helper")
	}
	return Source{Kind: Git, Location: location, Ref: ref}, checkRef(ref)
}

// splitRef splits what follows the last @.
func splitRef(path string) (before, ref string) {
	if i := strings.LastIndexByte(path, '@'); i > 0 {
		return path[:i], path[i+1:]
	}
	return path, ""
}

var refSyntax = lazy(`^[A-Za-z0-9_][A-Za-z0-9_./+-]*$`)

func checkRef(ref string) error {
	if ref != "" && (!refSyntax().MatchString(ref) || strings.Contains(ref, "..")) {
		return words.Errorf("%q is not a branch, a tag or a commit", ref)
	}
	return nil
}

func isArchiveName(path string) bool {
	for _, suffix := range []string{".tar.gz", ".tgz", ".zip"} {
		if strings.HasSuffix(strings.ToLower(path), suffix) {
			return true
		}
	}
	return false
}

// loopback reports whether an address is on this machine.
func loopback(u *url.URL) bool {
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkTransport refuses addresses that anyone on the way could change.
func checkTransport(u *url.URL, insecure bool) error {
	switch {
	case u.Scheme == "https", u.Scheme == "http" && (insecure || loopback(u)):
		if u.Hostname() == "" {
			return words.Errorf("%s names no host", u.Redacted())
		}
		return nil
	case u.Scheme == "http":
		return words.Errorf("%s is not encrypted, so anyone on the way can change it: use https, or add --insecure",
			u.Redacted())
	}
	return words.Errorf("%s is no https address, and only those are supported here", u.Redacted())
}

// publisherOf returns who serves an address: its host and, on hosts of many, the owner.
func publisherOf(location string) string {
	if u, err := url.Parse(location); err == nil && u.Host != "" {
		owner, rest, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		if rest == "" {
			return u.Hostname()
		}
		return u.Hostname() + "/" + owner
	}
	if scpAddress().MatchString(location) {
		host, path, _ := strings.Cut(location, ":")
		if _, after, user := strings.Cut(host, "@"); user {
			host = after
		}
		owner, rest, _ := strings.Cut(path, "/")
		if rest == "" {
			return host
		}
		return host + "/" + owner
	}
	return ""
}
