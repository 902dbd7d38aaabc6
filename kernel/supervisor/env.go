package supervisor

import (
	"slices"
	"strings"
)

// passedOn are the variables every extension gets: where programs, files and
// certificates are, the language, the clock and the way out through a proxy.
var passedOn = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

var passedOnPrefixes = []string{"LC_", "XDG_", "SSL_CERT_"}

// AllowedEnv is the environment of an extension: of environ (usually
// os.Environ()) what is harmless, and what the manifest lists, each either as
// NAME, handed through if it is set, or as NAME=value.
func AllowedEnv(environ []string, listed ...string) []string {
	var env []string
	for _, entry := range environ {
		name, _, ok := strings.Cut(entry, "=")
		if ok && (slices.Contains(passedOn, name) || slices.Contains(listed, name) ||
			slices.ContainsFunc(passedOnPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })) {
			env = append(env, entry)
		}
	}
	for _, entry := range listed {
		if strings.Contains(entry, "=") {
			env = append(env, entry)
		}
	}
	return env
}

// mergeEnv is a followed by what b has and a has not.
func mergeEnv(a, b []string) []string {
	merged := slices.Clone(a)
	for _, entry := range b {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(a, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			merged = append(merged, entry)
		}
	}
	return merged
}
