package home

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// passedOn are the variables that every extension gets: the paths of programs,
// files and certificates, the language, the time zone and the proxy.
var passedOn = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

var passedOnPrefixes = []string{"LC_", "XDG_", "SSL_CERT_"}

// allowedEnv is the environment of an extension: the harmless variables of environ
// (usually os.Environ()), and those that the manifest lists, each either as NAME,
// passed on if it is set, or as NAME=value.
func allowedEnv(environ []string, listed ...string) []string {
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

// executable is the path of the executable of a command: a path with a slash is
// relative to dir, a bare name is looked up in PATH.
func executable(command []string, dir string) string {
	path := command[0]
	if !strings.ContainsRune(path, filepath.Separator) {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
		return path
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}

// stamp identifies an executable by its path, inode, size and time of change: it
// differs once the file is replaced.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + " missing"
	}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", path, inode, info.Size(), info.ModTime().UnixNano())
}
